/* Compiles the passes in double precision. */
#define REAL        double
#define GEMM        cblas_dgemm
#define BYTES(name) em_bytes_##name
#define PASS        em_pass_double
#define NAME        "double"
#include "network/network_pass.inc"

int64_t em_pass_batch(const em_layers *layers)
{
    enum { NUMBERS = 1 << 20, MOST = 256 };
    int64_t n = n_in(&layers->layer[0]);

    for (int l = 0; l < layers->n; l++)
        n += n_out(&layers->layer[l]) + n_under(&layers->layer[l]);
    return n > NUMBERS ? 1 : NUMBERS / n < MOST ? NUMBERS / n : MOST;
}
