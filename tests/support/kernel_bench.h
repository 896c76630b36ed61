/* A kernel at work on a Gaussian: 8 chains whose states are recorded, and compared with an exact
 * law. */
#ifndef TESTS_SUPPORT_KERNEL_BENCH_H
#define TESTS_SUPPORT_KERNEL_BENCH_H

#include "run/config/config.h"
#include "support/linear_law.h"
#include "support/noisy_model.h"
#include "support/tap.h"

enum { N_CHAIN = 8 };

/* A kernel at work: 8 chains with one mass, step size and estimate of V. */
typedef struct kernel_run {
    const em_sampler_ops *ops;
    const void *options;
    const em_mass *mass;
    const em_noise *noise; /* may be NULL */
    double step_size;
    uint64_t seed;
    em_trajectory trajectory; /* of each iteration but for its number; {0}: by the options */
} kernel_run;

/* A kernel by the text of its `sampler:` section but for the minibatch. `config` is to be
 * destroyed. */
kernel_run configured_with(int minibatch, const char *sampler, const em_mass *mass,
                           const em_noise *noise, uint64_t seed, em_config **config);

/* The same with the minibatches of noisy_covariance. */
kernel_run configured(const char *sampler, const em_mass *mass, const em_noise *noise,
                      uint64_t seed, em_config **config);

typedef struct kernel_bench {
    const kernel_run *run;
    em_posterior *posterior;
    em_block *block;
    em_sampler *sampler;
    const em_mass *mass[N_CHAIN];
    const em_noise *noise[N_CHAIN];
    double step_size[N_CHAIN];
} kernel_bench;

em_step_context bench_context(const kernel_bench *b, int64_t iteration);
/* Ended by bench_close. */
void bench_open(em_model *model, em_grid *grid, const kernel_run *run, kernel_bench *b);
void number_chains(em_block *block, int64_t first);

/* To be called when theta is set. */
void bench_start(kernel_bench *b);

void bench_close(kernel_bench *b);

/* What a run visited: (theta - mean) and, with n_state = 2 dim, p; [n_state][N_CHAIN][n_draw]. */
typedef struct visited {
    int64_t n_state, n_draw;
    double *x;
    double acceptance;   /* the mean probability */
    double fewest, most; /* steps of an iteration */
} visited;

/* Chains start in the target's law and forget it in n_draw / 20 iterations. */
visited visit(law_model *model, em_grid *grid, const kernel_run *run, int64_t n_state,
              int64_t n_draw);

/* The largest deviation of means from 0 and of second moments from S [n_state][n_state], in their
 * Monte Carlo standard errors; infinite where a number is not finite. */
double visited_z(const visited *v, const double *S);

/* The same for the moments of theta under the law itself, of n_draw iterations: below 4 for a
 * kernel that is right, but for chance of 6e-5 per moment. `moves`: what they were like, without x;
 * may be NULL. */
double law_worst_z(const gaussian_law *law, em_grid *grid, const kernel_run *run, int64_t n_draw,
                   visited *moves);

/* The largest difference between the linear part of an iteration of the kernel and F of the step
 * that the test wrote down, over the first n_state of (theta, p). */
double linear_part_error(noisy_model *model, em_grid *grid, const kernel_run *run, int64_t n_state,
                         linear_step *step, const void *self);

/* Allocations of 20 iterations after the first. */
int64_t allocations_of_steps(noisy_model *model, em_grid *grid, const kernel_run *run);

#endif
