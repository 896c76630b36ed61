/*
 * Fuzzing: a program per parser of what comes from outside, run by libFuzzer (tests/run/fuzz.sh).
 * Each must take any bytes without a crash, a leak, undefined behaviour or a broken promise.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What libFuzzer calls with every input; the result is 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the fuzzing with a report unless `holds`; fuzz.sh closes standard error to the rest. */
#define REQUIRE(holds)                                                                             \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            printf("%s:%d: broken promise: %s\n", __FILE__, __LINE__, #holds);                     \
            fflush(stdout);                                                                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Writes the bytes to the file "input" of the current folder; returns its path. */
static inline const char *fuzz_file(const void *data, size_t size)
{
    static const char path[] = "input";
    FILE *file = fopen(path, "wb");

    REQUIRE(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    return path;
}

/* An input as a recipe: the rest of it, which goes on with zeros. They always choose what is usual.
 */
typedef struct recipe {
    const uint8_t *next;
    size_t left;
} recipe;

static inline unsigned next(recipe *r, unsigned n)
{
    if (r->left == 0)
        return 0;
    r->left--;
    return *r->next++ % n;
}

#endif
