/* Chooses the structure of the masses of a run. */
#include "adaptation/adaptation_internal.h"

#include <math.h>

/* MOST_DENSE: LAPACK's dsyevd counts its work space of 2 n^2 + 6 n + 1 numbers in an int. At this
 * limit the work space takes 17 GB. */
enum { MOST_DENSE = 32766, MOST_DENSE_BY_CHOICE = 200 };

/* A mass of low rank is chosen only if memory allows at least this many directions. */
enum { LEAST_RANK = 8 };

/* Whether estimates may be of low rank. This requires that one rank gathers their samples and that
 * each estimate replaces the one before. */
static bool gathers(const em_adapt *adapt)
{
    const double eta = adapt->options->kappa_eta;

    return adapt->estimator->add_directions && (isnan(eta) || eta == 0);
}

/* The number of directions that fit into 64 MB. */
static int64_t most_rank(int64_t dim)
{
    const int64_t fit = (INT64_C(1) << 23) / dim, most = fit < dim ? fit : dim;

    return most > EM_MASS_MOST_RANK ? EM_MASS_MOST_RANK : most < 1 ? 1 : most;
}

static em_status set_low_rank(em_adapt *adapt)
{
    adapt->form.most_rank = most_rank(adapt->dim);
    if (!em_learns(adapt) || gathers(adapt))
        return EM_OK;
    return em_fail(EM_ECONFIG,
                   "mass.structure is low_rank with mass.estimator %s and mass.kappa.eta %g: "
                   "expected the estimator fisher, whose estimates replace one another (eta 0)",
                   adapt->estimator->name, adapt->options->kappa_eta);
}

/* Reads the blocks that the config lists. */
static em_status set_parts(em_adapt *adapt)
{
    const em_reals *blocks = &adapt->options->blocks;
    const em_status status =
        em_mass_parts(adapt->dim, blocks->count, blocks->value, &adapt->form.n_part, &adapt->part);

    adapt->form.part = adapt->part;
    return status == EM_EDATA ? em_fail(EM_ECONFIG,
                                        "mass.blocks: found %lld sizes, expected those of the "
                                        "blocks of mass.structure block_diagonal: whole numbers "
                                        "from 1, of at most %lld parameters in all",
                                        (long long)blocks->count, (long long)adapt->dim)
                              : status;
}

/* The order of the largest dense block of the mass; 1 if there is none. */
static int64_t largest_order(const em_mass_form *form)
{
    int64_t largest = 1;

    for (int64_t i = 0; i < em_form_n_part(form); i++) {
        const em_part part = em_form_part(form, i);
        if (part.structure == EM_MASS_DENSE && part.count > largest)
            largest = part.count;
    }
    return largest;
}

/* Samples of the last planned E-step; 0: not known. */
static int64_t planned_samples(const em_adapt *adapt)
{
    if (!adapt->windows)
        return 0;
    return adapt->estimator->windowed
               ? em_schedule_last_window(&adapt->windows->schedule, em_chains_per_pool(adapt))
               : adapt->options->s_count;
}

/* Checks the order of the largest dense block. LAPACK must be able to index it, and there must be
 * enough samples. With an initial phase no least number of samples is needed, because its estimates
 * are shrunk if samples are few. */
static em_status check_order(const em_adapt *adapt)
{
    const bool windowed = adapt->estimator->windowed, noise = adapt->estimator->noise;
    const int64_t order = largest_order(&adapt->form), planned = planned_samples(adapt);
    const int64_t least = noise ? 10 * order : windowed ? 2 : order + 2;
    const char *name = adapt->form.ops->name;

    if (order > MOST_DENSE)
        return em_fail(EM_ECONFIG,
                       "mass.structure is %s in dimension %lld: expected at most %d, or diag or "
                       "low_rank",
                       name, (long long)order, MOST_DENSE);
    if (order > 1 && em_learns(adapt) && planned > 0 && planned < least)
        return em_fail(EM_ECONFIG,
                       "mass.structure is %s but an E-step has %lld samples of dimension %lld: "
                       "expected at least %lld (raise mass.s_count or run.warmup), or diag",
                       name, (long long)planned, (long long)order, (long long)least);
    return EM_OK;
}

/* The structure for mass.structure auto: dense if the dimension is small and there are enough
 * samples, low rank in larger dimensions for kernels with exact gradients, else diagonal. */
static const em_mass_ops *choose(const em_adapt *adapt, const em_sampler_ops *sampler)
{
    const bool draws = adapt->estimator->windowed && !adapt->estimator->noise;
    const int64_t dim = adapt->dim, wanted = draws ? 2 * dim : 10 * dim;

    if (!em_learns(adapt))
        return &em_mass_diag;
    if (dim <= MOST_DENSE_BY_CHOICE)
        return adapt->plan || planned_samples(adapt) >= wanted ? &em_mass_dense : &em_mass_diag;
    return sampler->trajectory && adapt->shares && gathers(adapt) && most_rank(dim) >= LEAST_RANK
               ? &em_mass_low_rank
               : &em_mass_diag;
}

em_status em_choose_form(em_adapt *adapt, const em_sampler_ops *sampler)
{
    const int structure = adapt->options->structure;
    em_status status = EM_OK;

    adapt->form = (em_mass_form){.dim = adapt->dim};
    adapt->form.ops = structure == EM_STRUCTURE_AUTO
                          ? choose(adapt, sampler)
                          : em_mass_structures[structure - EM_STRUCTURE_DIAG];
    if (adapt->form.ops == &em_mass_low_rank)
        status = set_low_rank(adapt);
    if (adapt->form.ops == &em_mass_block_diagonal)
        status = set_parts(adapt);
    return status ? status : check_order(adapt);
}
