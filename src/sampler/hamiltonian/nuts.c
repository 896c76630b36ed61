/* The No-U-Turn sampler with multinomial draws (Hoffman & Gelman 2014; Betancourt 2017), as in
 * Stan: the trees of sampler/hamiltonian/trees.h, whose leaves are leapfrog steps. */
#include "sampler/hamiltonian/nuts.h"

static const em_field fields[] = {EM_SAMPLER_FIELDS_WITH("adapt", "0.8", "3"),
                                  EM_NUTS_FIELD(em_nuts_options, max_treedepth),
                                  {0}};

typedef struct nuts_sampler {
    em_sampler base;
    const em_nuts_options *options;
    em_trees trees;
} nuts_sampler;

static em_status nuts_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    nuts_sampler *s = (nuts_sampler *)base;

    s->options = base->options;
    return em_trees_create(&base->memory, n_chain, dim, s->options->max_treedepth, &s->trees);
}

/* Processes the result of a leapfrog step of a row. Returns false if its trajectory has ended. */
static bool nuts_advance(void *to, const em_posterior *posterior, int64_t row)
{
    em_trees *trees = to;
    const double energy = em_hamiltonian_energy(&trees->moving, row);

    trees->tree[trees->chain[row]].n_gradient++;
    if (!em_hamiltonian_failed(posterior, &trees->moving, row))
        return em_trees_grow(trees, row, energy, energy);
    em_trees_fail(trees, row);
    return false;
}

static em_status nuts_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    nuts_sampler *s = (nuts_sampler *)base;
    em_trees *trees = &s->trees;

    em_trees_init(trees, context, block, s->options->max_treedepth);
    return em_trees_run(trees, context->posterior, trees->step, nuts_advance, trees, block);
}

static em_status nuts_probe(em_sampler *base, const em_step_context *context, const em_block *block,
                            double *acceptance)
{
    return em_hamiltonian_probe(context, block, &((nuts_sampler *)base)->trees.moving, acceptance);
}

const em_sampler_ops em_nuts = {
    .name = "nuts",
    .doc = "No-U-Turn sampler: multinomial, with a trajectory that ends where it turns back",
    .source = "Hoffman & Gelman 2014; Betancourt 2017, arXiv:1701.02434, appendix A; Stan",
    .size = sizeof(nuts_sampler),
    .options_size = sizeof(em_nuts_options),
    .fields = fields,
    .stats = em_tree_stats,
    .set_up = nuts_set_up,
    .step = nuts_step,
    .trajectory = em_trees_trajectory,
    .probe = nuts_probe,
};
