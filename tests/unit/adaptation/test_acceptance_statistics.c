/* When trajectories of one length do not fit: chains of one law never look so, one that is stuck or
 * trajectories that diverge do. */
#include "adaptation/trajectory/trajectory_criterion.h"
#include "math/rng.h"
#include "support/tap.h"

#include <string.h>

enum { MOST = 1000, LENGTH = 40 };

/* Acceptance rates of mean 0.8 and standard deviation 0.24, wider than Gaussian targets have them;
 * those of the first chain are multiplied by `share`. */
static void move(int64_t n_chain, int64_t length, uint64_t seed, double share,
                 em_acceptance_statistics *statistics)
{
    memset(statistics, 0, (size_t)n_chain * sizeof *statistics);
    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t t = 0; t < length; t++) {
            const em_stream stream = {seed, (uint64_t)c, (uint64_t)t, EM_RNG_TEST};
            const double u = em_uniform(&stream, 0), rate = u < 0.4 ? 0.5 + 1.25 * u * u * 2.5 : 1;
            em_acceptance_observe((c == 0 ? share : 1) * rate, false, true, &statistics[c]);
        }
}

/* Where steps may not become shorter any more. */
static em_acceptance_verdict judge(int64_t n_chain, const em_acceptance_statistics *statistics,
                                   const bool *outlying)
{
    return em_judge_acceptance(n_chain, statistics, outlying, true, 1);
}

START_TEST(chains_of_one_law_are_even)
{
    static const int64_t n_chain[] = {1, 4, 64, MOST};
    static em_acceptance_statistics statistics[MOST];
    const bool outlying[MOST] = {false};

    for (uint64_t seed = 1; seed <= 50; seed++)
        for (int i = 0; i < 4; i++) {
            move(n_chain[i], LENGTH, seed, 1, statistics);
            ck_assert(judge(n_chain[i], statistics, outlying) == EM_ACCEPTANCE_EVEN);
        }
}
END_TEST

START_TEST(a_chain_that_sticks_is_noticed)
{
    static em_acceptance_statistics statistics[MOST];
    bool outlying[MOST] = {false};

    for (uint64_t seed = 1; seed <= 50; seed++) {
        move(4, LENGTH, seed, 0.6, statistics);
        ck_assert(judge(4, statistics, outlying) == EM_ACCEPTANCE_UNEVEN);
        move(MOST, LENGTH, seed, 0.5, statistics);
        ck_assert(judge(MOST, statistics, outlying) == EM_ACCEPTANCE_UNEVEN);
    }
    outlying[0] = true; /* the others left it behind: it is no sign of theirs */
    ck_assert(judge(MOST, statistics, outlying) == EM_ACCEPTANCE_EVEN);
    outlying[0] = false;
    move(4, 10, 1, 0.2, statistics);
    ck_assert(judge(4, statistics, outlying) == EM_ACCEPTANCE_EVEN); /* too few to tell */
}
END_TEST

START_TEST(divergences_are_noticed)
{
    em_acceptance_statistics statistics[4];
    const bool outlying[4] = {false};

    move(4, LENGTH, 1, 1, statistics);
    statistics[2].n_diverging = 2; /* may be chance */
    ck_assert(judge(4, statistics, outlying) == EM_ACCEPTANCE_EVEN);
    statistics[3].n_diverging = 1;
    ck_assert(judge(4, statistics, outlying) == EM_ACCEPTANCE_UNEVEN);
    move(4, 10 * LENGTH, 1, 1, statistics);
    statistics[3].n_diverging = 16;
    ck_assert(judge(4, statistics, outlying) == EM_ACCEPTANCE_EVEN); /* 1 % */
}
END_TEST

static em_acceptance_verdict lost(const em_acceptance_statistics *statistics, const bool *outlying)
{
    return em_judge_acceptance(4, statistics, outlying, true, 0.01);
}

START_TEST(lost_trajectories_are_noticed)
{
    em_acceptance_statistics statistics[4];
    bool outlying[4] = {false};

    for (uint64_t seed = 1; seed <= 50; seed++) {
        move(4, LENGTH, seed, 1, statistics);
        ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_EVEN);
    }
    em_acceptance_observe(0.0009, false, true, &statistics[1]);
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_EVEN); /* may be chance */
    em_acceptance_observe(0.001, false, true, &statistics[2]);
    em_acceptance_observe(0, false, false, &statistics[2]); /* by a step that is not kept */
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_EVEN);
    em_acceptance_observe(0, false, true, &statistics[2]);
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_LOST);
    ck_assert(judge(4, statistics, outlying) == EM_ACCEPTANCE_EVEN);
    outlying[2] = true;
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_EVEN);
    outlying[2] = false;
    move(4, 5 * LENGTH, 1, 1, statistics);
    statistics[0].n_lost = 8;
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_EVEN); /* 1 % */
    statistics[0].n_lost = 9;
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_LOST);
    move(4, LENGTH, 1, 0.6, statistics); /* a chain that sticks needs more than shorter steps */
    statistics[1].n_lost = 3;
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_UNEVEN);
}
END_TEST

START_TEST(steps_are_shorter_where_a_run_would_have_too_many_divergences)
{
    static em_acceptance_statistics statistics[64];
    bool outlying[64] = {false};

    move(4, LENGTH, 1, 1, statistics);
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_EVEN);
    em_acceptance_observe(0.7, true, false, &statistics[2]); /* of any step */
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_DIVERGING);
    ck_assert(judge(4, statistics, outlying) == EM_ACCEPTANCE_EVEN);
    outlying[2] = true;
    ck_assert(lost(statistics, outlying) == EM_ACCEPTANCE_EVEN);
    move(64, LENGTH, 1, 1, statistics);
    statistics[3].n_diverging = 2; /* of 2560 */
    outlying[2] = false;
    ck_assert(em_judge_acceptance(64, statistics, outlying, true, 0.01) == EM_ACCEPTANCE_EVEN);
    statistics[5].n_diverging = 1;
    ck_assert(em_judge_acceptance(64, statistics, outlying, true, 0.01) == EM_ACCEPTANCE_DIVERGING);
}
END_TEST

static em_acceptance_verdict of_u_turns(const em_acceptance_statistics *statistics,
                                        const bool *outlying, double most_lost)
{
    return em_judge_acceptance(4, statistics, outlying, false, most_lost);
}

/* With trajectories that end at a U-turn chains may accept unevenly; steps may still be too long.
 */
START_TEST(divergences_with_u_turns_are_lost_trajectories)
{
    em_acceptance_statistics statistics[4];
    bool outlying[4] = {false};

    move(4, LENGTH, 1, 0.6, statistics);
    ck_assert(of_u_turns(statistics, outlying, 0.01) == EM_ACCEPTANCE_EVEN);
    em_acceptance_observe(0.7, true, true, &statistics[1]);
    em_acceptance_observe(0.7, true, false, &statistics[1]); /* by a step that is not kept */
    ck_assert(of_u_turns(statistics, outlying, 0.01) == EM_ACCEPTANCE_EVEN); /* may be chance */
    em_acceptance_observe(0.7, true, true, &statistics[2]);
    ck_assert(of_u_turns(statistics, outlying, 0.01) == EM_ACCEPTANCE_LOST);
    ck_assert(of_u_turns(statistics, outlying, 1) == EM_ACCEPTANCE_EVEN);
    outlying[1] = true;
    ck_assert(of_u_turns(statistics, outlying, 0.01) == EM_ACCEPTANCE_EVEN);
    move(4, 10, 1, 1, statistics);
    statistics[0].n_lost = 4;
    outlying[1] = false;
    ck_assert(of_u_turns(statistics, outlying, 0.01) == EM_ACCEPTANCE_EVEN); /* too few to tell */
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("acceptance_statistics");

    tcase_add_test(all, chains_of_one_law_are_even);
    tcase_add_test(all, a_chain_that_sticks_is_noticed);
    tcase_add_test(all, divergences_are_noticed);
    tcase_add_test(all, lost_trajectories_are_noticed);
    tcase_add_test(all, steps_are_shorter_where_a_run_would_have_too_many_divergences);
    tcase_add_test(all, divergences_with_u_turns_are_lost_trajectories);
    return run_case(all, CK_FORK);
}
