/* How every Check program of this project runs: TAP for the driver, a line for a person. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <check.h>
#include <errno.h>
#include <stdlib.h>

/* Runs the suite; the exit status of main. */
static inline int run_suite(Suite *suite, enum fork_status fork)
{
    SRunner *runner = srunner_create(suite);
    const char *tap = getenv("EMASS_TAP");

    srunner_set_fork_status(runner, fork);
    srunner_set_tap(runner, tap ? tap : "/dev/null");
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The same for a program with one test case. */
static inline int run_case(TCase *tests, enum fork_status fork)
{
    Suite *suite = suite_create(program_invocation_short_name);

    suite_add_tcase(suite, tests);
    return run_suite(suite, fork);
}

#endif
