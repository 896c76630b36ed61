/*
 * Code that is not ours may not come back: a model's density, what it reports. Whoever calls it
 * says so, and a signal's handler can then tell a call that never ends from one that is merely
 * slow.
 */
#ifndef EM_BASE_SYSTEM_FOREIGN_CALL_WATCHDOG_H
#define EM_BASE_SYSTEM_FOREIGN_CALL_WATCHDOG_H

/* The process leaves for such a call, or (within one) for the next of many; it is back. Local. */
void em_foreign_call_begin(void);
void em_foreign_call_end(void);

/* Seconds that the present call has taken so far, 0 where there is none; that the longest of those
 * before it took. Local; a handler of signals may ask. */
double em_foreign_call_seconds(void);
double em_foreign_call_longest(void);

#endif
