#include "math/exact.h"

#include <math.h>

/* A sum has N_DIGIT digits of 32 bits. The digit of place 64 counts units. */
enum { N_DIGIT = 4, BITS = 32, UNITS = 64 };

em_exact_sum em_exact_of(double x)
{
    em_exact_sum sum = {0};
    int exponent;

    if (x == 0)
        return sum;
    if (!isfinite(x))
        return (em_exact_sum){.place = INT64_MAX};
    frexp(x, &exponent);
    sum.place = (exponent - 1 + BITS * UNITS) / BITS;
    double rest =
        ldexp(x, BITS * (int)(UNITS - sum.place)); /* below 2^32, and what follows exact */
    for (int k = 0; k < N_DIGIT; k++) {
        sum.digit[k] = (int64_t)rest;
        rest = (rest - (double)sum.digit[k]) * 0x1p32;
    }
    return sum;
}

void em_exact_add(const em_exact_sum *from, em_exact_sum *into)
{
    if (from->place > into->place) { /* digits that the new places leave behind are dropped */
        const int64_t up = from->place - into->place;
        for (int k = N_DIGIT - 1; k >= 0; k--)
            into->digit[k] = k >= up ? into->digit[k - up] : 0;
        into->place = from->place;
    }
    const int64_t down = into->place - from->place;
    for (int64_t k = down; k < N_DIGIT; k++)
        into->digit[k] += from->digit[k - down];
}

double em_exact_value(const em_exact_sum *sum)
{
    const __int128 unit = (__int128)1 << BITS, narrow = (__int128)1 << 90;
    const int64_t last = sum->digit[N_DIGIT - 1] & (unit - 1); /* its carry goes to the others */
    const __int128 total = (sum->digit[0] * unit + sum->digit[1]) * unit + sum->digit[2] +
                           (sum->digit[N_DIGIT - 1] - last) / unit;
    const int exponent = BITS * (int)(sum->place - UNITS - (N_DIGIT - 1));

    if (sum->place == INT64_MAX)
        return NAN;
    if (-narrow < total && total < narrow)
        return ldexp((double)(total * unit + last), exponent);
    /* For rounding, it only matters whether the bits below these are all zero. */
    return ldexp((double)(total | (last != 0)), exponent + BITS);
}
