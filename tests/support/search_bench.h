/* Targets and their mode searches, for tests of starts. */
#pragma once

#include "adaptation/starts/mode_search.h"
#include "sampler/kernel/sampler.h"

enum { N_CHAIN = 16, MOST_DIM = 81 };

/* Set by run_suite_on_grid. */
extern em_grid *search_grid;

typedef double density(const void *of, const double *x, double *slope);

typedef struct target {
    em_model base;
    density *log_density;
    const void *of;
} target;

typedef struct search_bench {
    target target;
    em_posterior *posterior;
    em_block *block;
    em_mode_search *search;
    uint64_t seed;
    double radius, gradients[N_CHAIN];
} search_bench;

/* Starts are uniform between -radius and radius, which is 2. */
em_start_law search_start_law;

/* Creates a target, and its chains at their first draws. */
void open_search_with(const em_search_plan *plan, density *log_density, const void *of, int dim,
                      uint64_t seed, search_bench *out);
void open_search(density *log_density, const void *of, int dim, uint64_t seed, search_bench *out);
void close_search(search_bench *bench);

void search_start(search_bench *bench);
em_mode_findings search_conclude(search_bench *bench);

/* Neal's funnel in 10 dimensions: v ~ N(0, 9), x_i ~ N(0, e^v). Its density grows without end into
 * the neck. */
density funnel;
