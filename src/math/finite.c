#include "math/finite.h"

#include "base/clones.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Whether all numbers are finite. The exponent of a number that is not finite has only ones, so an
 * addition to it carries into the sign. The loop does not end early, so that it is vectorised. */
EM_CLONES static bool all_finite(int64_t count, const double *x)
{
    const uint64_t size = UINT64_MAX >> 1, one = UINT64_C(1) << (DBL_MANT_DIG - 1);
    uint64_t carried = 0;

    for (int64_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, x + i, sizeof bits);
        carried |= (bits & size) + one;
    }
    return !(carried >> 63);
}

bool em_all_finite(int64_t count, const double *x)
{
    return all_finite(count, x);
}

bool em_all_positive(int64_t count, const double *x)
{
    for (int64_t i = 0; i < count; i++)
        if (!(x[i] > 0 && isfinite(x[i])))
            return false;
    return true;
}

bool em_all_equal(int64_t count, const double *x)
{
    for (int64_t i = 1; i < count; i++)
        if (!(x[i] == x[0]))
            return false;
    return true;
}
