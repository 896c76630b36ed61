/* Truth values in tables: True and False as Python, R and others write them. As levels of a factor
 * they stay texts. Where a number is needed they are 1 and 0. */
#pragma once

#include "data/table/table.h"

/* 1: the text is True, TRUE or true; 0: False, FALSE or false; -1: another text. Local. */
int em_truth_of(const char *text);

/* The truth value of the name of a level in an option. The names 1 and 0 count too. Local. */
int em_truth_named(const char *name);

/* The truth value of a value of column j, which is a text or a number. The numbers 1 and 0 count
 * too. Local. */
int em_truth_of_value(const em_table *table, int64_t j, double value);

/* If column j has only texts that are truth values, and more than two of them (such as TRUE and
 * True), gives each truth value one text: the first in the order of texts. Local. */
void em_truth_merge(em_table *table, int64_t j);

/* Gives the values of column j the levels of a factor with two levels, both truth values, however
 * either is written: TRUE, True and 1 are one level. Other factors stay as they are. Local. */
void em_truth_match(em_table *table, int64_t j, int64_t n, const double *level);
