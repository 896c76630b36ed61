/* Status codes and the error message that goes with a fatal one. */
#pragma once

#include "emass/export.h"

EM_BEGIN_C

/*
 * The status that a function returns. 0: success. Positive: recoverable, such as a density that is
 * not finite; the move is rejected and the chain continues. Negative: fatal; em_error_text() has
 * the message, and in a parallel run the ranks must agree on the status (par/world.h) before any of
 * them leaves a Collective function.
 */
typedef int em_status;

enum {
    EM_OK = 0,
    EM_NONFINITE = 1,  /* recoverable: the log density or its gradient is not finite here */
    EM_EUSAGE = -1,    /* the command line; exit status 2 */
    EM_ECONFIG = -2,   /* the config; exit status 2 */
    EM_EDATA = -3,     /* a data file; exit status 2 */
    EM_EIO = -4,       /* reading or writing failed while running; exit status 1 */
    EM_EMEMORY = -5,   /* an allocation failed; exit status 1 */
    EM_EMODEL = -6,    /* a model or sampler cannot go on; exit status 1 */
    EM_ENUMERIC = -7,  /* a matrix factorisation failed; exit status 1 */
    EM_EINTERNAL = -8, /* an internal error of emass; exit status 1 */
    EM_ESTOPPED =
        -9 /* stopped by a signal or the time limit, with a valid checkpoint; exit status 75 */
};

#if defined(__GNUC__)
#define EM_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define EM_PRINTF(format_index, first)
#endif

/*
 * Sets the error message of this thread and returns `status`. A failing function writes
 *     return em_fail(EM_EDATA, "%s:%ld: found '%s', expected a number", file, line, text);
 * The message is one line: what is wrong, where (file:line of the config or data), what was
 * expected or what to do. Local. Like errno, the message is the one of the last failure.
 */
EM_API em_status em_fail(em_status status, const char *format, ...) EM_PRINTF(2, 3);

/* The message of the last em_fail of this thread; "" when there was none. Local. */
EM_API const char *em_error_text(void);

/* The exit status of the program for a status: 0, 1, 2 or 75. Local. */
EM_API int em_exit_status(em_status status);

EM_END_C
