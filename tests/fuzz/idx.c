/* IDX files, plain or packed: what is accepted has as many bytes as its shape says. */
#include "fuzz/fuzz.h"

#include "base/memory.h"
#include "data/reader/idx.h"
#include "emass/status.h"

enum { MOST = 1 << 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    em_idx *idx = NULL;
    uint8_t *out = NULL;
    uint64_t hash = 0;
    em_status status = em_idx_open(path, &idx);

    em_idx_is(path);
    if (!status) {
        const em_idx_shape shape = *em_idx_shape_of(idx);
        int64_t n = 1;
        REQUIRE(shape.n_axis >= 1 && shape.n_axis <= EM_IDX_AXES);
        for (int i = 0; i < shape.n_axis; i++) {
            REQUIRE(shape.length[i] >= 1);
            n *= shape.length[i];
        }
        REQUIRE(n == shape.size);
        if (n <= MOST) {
            status = em_allocate(n, 1, &out);
            status = status ? status : em_idx_read(idx, 0, shape.length[0], out, &hash);
        }
    }
    REQUIRE(!status || *em_error_text());
    em_release(&out);
    em_idx_close(&idx);
    return 0;
}
