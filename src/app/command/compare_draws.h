/* The draws of a variable in two files, number by number. All Local. */
#pragma once

#include "emass/status.h"
#include "io/draws/reader.h"

#include <stdbool.h>

/* The first pair of numbers that differ, and how many pairs differ in all. */
typedef struct em_difference {
    int64_t count, of; /* pairs that differ, and pairs compared */
    int64_t chain, draw, element;
    double value[2];
} em_difference;

/* Draws `first` .. first + n - 1 of one chain in two files, each of `size` numbers. */
typedef struct em_draw_pair {
    const double *a, *b;
    int64_t size, chain, first, n;
    bool bits; /* bits are compared; else two NaN are equal */
} em_draw_pair;

/* Adds the differences to *out, which the caller sets to zeros first. */
void em_compare_block(const em_draw_pair *pair, em_difference *out);

/* Compares a variable in the chains and draws that both files have. variable[k] is its number in
 * reader[k]; its size is the same in both. Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_compare_draws(em_reader **reader, const int64_t *variable, bool bits,
                           em_difference *out);
