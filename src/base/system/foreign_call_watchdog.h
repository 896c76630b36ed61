/*
 * Times calls of foreign code (a model's density or report), which may never return. The caller
 * marks the beginning and the end of each call. With these times a signal handler can distinguish a
 * call that hangs from a slow one.
 */
#pragma once

/* Mark the beginning of a call of foreign code and its end. In a series of calls, each begin also
 * ends the call before it. Local. */
void em_foreign_call_begin(void);
void em_foreign_call_end(void);

/* Seconds that the current call has taken so far (0: there is none), and that the longest earlier
 * call took. Local; safe in a signal handler. */
double em_foreign_call_seconds(void);
double em_foreign_call_longest(void);
