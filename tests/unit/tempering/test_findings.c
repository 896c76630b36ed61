/* What the findings of ladders say, and which of it more draws would change. */
#include "support/tap.h"
#include "tempering/tempering.h"

#include <math.h>
#include <string.h>

enum { N_LADDER = 4, ESS_LIMIT = 400 };

/* Two legs of three rungs each that agree, with enough of everything. */
static em_tempering_findings sound(void)
{
    em_tempering_findings found = {.ladder = em_ladder_create(2, 3), .n_round = 2, .reach = 1};

    found.draws = (em_tempering_round){.barrier = {1, 1},
                                       .log_evidence = {-10, -10.05},
                                       .error = {0.02, 0.02},
                                       .restarts = 4000,
                                       .round_trips = 100 * N_LADDER};
    found.round[0] = found.round[1] = found.draws;
    return found;
}

static const char *warning_of(const em_tempering_findings *found)
{
    static char text[512];

    em_tempering_warning(found, N_LADDER, ESS_LIMIT, sizeof text, text);
    return text;
}

static bool needs_draws(const em_tempering_findings *found)
{
    return em_tempering_needs_draws(found, N_LADDER, ESS_LIMIT);
}

START_TEST(sound_ladders_call_for_nothing)
{
    const em_tempering_findings found = sound();

    ck_assert_str_eq(warning_of(&found), "");
    ck_assert(!needs_draws(&found));
}
END_TEST

START_TEST(more_draws_help_against_chance)
{
    em_tempering_findings legs = sound(), trips = sound(), visits = sound();

    legs.draws.log_evidence[0] = -9;
    trips.draws.round_trips = 9 * N_LADDER;
    visits.draws.restarts = 2 * ESS_LIMIT - 2;
    ck_assert_ptr_nonnull(strstr(warning_of(&legs), "two legs differs by 1"));
    ck_assert_ptr_nonnull(strstr(warning_of(&trips), "9.0 round trips"));
    ck_assert_ptr_nonnull(strstr(warning_of(&visits), "about 399 independent draws"));
    ck_assert(needs_draws(&legs));
    ck_assert(needs_draws(&trips));
    ck_assert(needs_draws(&visits));
}
END_TEST

/* Whether the legs agree can be seen from the error of their difference. */
START_TEST(the_difference_has_its_error)
{
    em_tempering_findings found = sound();
    char text[512];

    found.draws.both_error = 0.012;
    found.draws.error[0] = 0.3;
    found.draws.error[1] = 0.4;
    found.draws.log_evidence[1] = found.draws.log_evidence[0] + 0.39;
    em_tempering_describe(&found, N_LADDER, sizeof text, text);
    ck_assert_ptr_nonnull(strstr(text, "(standard error 0.012, reference"));
    ck_assert_ptr_nonnull(strstr(text, "legs differ by 0.39 (standard error 0.5);"));
}
END_TEST

/* draws: auto would sample up to its limit for these, in vain. */
START_TEST(more_draws_do_not_change_what_warmup_learned)
{
    em_tempering_findings reference = sound(), barrier = sound(), pair = sound();

    reference.reach = 3;
    barrier.round[1].barrier[1] = 0.2;
    pair.rejection[1] = 0.999;
    ck_assert_ptr_nonnull(strstr(warning_of(&reference), "narrower than the draws"));
    ck_assert_ptr_nonnull(strstr(warning_of(&barrier), "barrier still grows"));
    ck_assert_ptr_nonnull(strstr(warning_of(&pair), "rungs 1 and 2 are rejected"));
    ck_assert(!needs_draws(&reference));
    ck_assert(!needs_draws(&barrier));
    ck_assert(!needs_draws(&pair));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("findings");

    tcase_add_test(tests, sound_ladders_call_for_nothing);
    tcase_add_test(tests, more_draws_help_against_chance);
    tcase_add_test(tests, the_difference_has_its_error);
    tcase_add_test(tests, more_draws_do_not_change_what_warmup_learned);
    return run_case(tests, CK_FORK);
}
