/* Compiles the passes in single precision: half the memory to read, and twice the numbers in a
 * vector. */
#define REAL        float
#define GEMM        cblas_sgemm
#define BYTES(name) em_bytes_##name##_single
#define PASS        em_pass_single
#define NAME        "single"
#include "network/network_pass.inc"
