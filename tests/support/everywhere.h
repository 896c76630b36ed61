/* Assertions of tests on several ranks. */
#pragma once

#include <stdbool.h>

/* All ranks say the same, or all fail: a rank that fails alone would leave the others waiting.
 * Collective. */
void assert_everywhere(bool holds, const char *what);
