/*
 * Capability `latent`: state that a model keeps for each chain beside theta (latent variables, warm
 * starts), and a transition of the model's own (a Gibbs update), which sampler gibbs makes.
 */
#ifndef EMASS_MODEL_LATENT_H
#define EMASS_MODEL_LATENT_H

#include "emass/model.h"
#include "emass/shards.h"
#include "emass/visitor.h"

EM_BEGIN_C

/* What a model with a transition of its own is asked for a panel of chains: to move them. */
typedef struct em_update {
    int64_t n_chain, stride;
    const int64_t *chain; /* [n_chain] their numbers in the run, in any order */
    double *theta;        /* [n_chain][stride] replaced */
    double *log_density;  /* [n_chain] what is to be reported as lp; left alone: as it was */
    uint64_t seed;
    int64_t number; /* of the update, from 0: it counts the random numbers (em_update_draw) */
    bool warmup;    /* what is learned may change */
    const em_shards *shards;
    const em_parameters *block; /* what alone is to be moved; NULL: all */
} em_update;

/* The random numbers of chain c of the panel. */
static inline em_draw em_update_draw(const em_update *update, int64_t c)
{
    const em_draw draw = {update->seed, update->chain[c], update->number, EM_DRAW_UPDATE};

    return draw;
}

/* Each function is OPTIONAL. */
typedef struct em_model_latent {
    /*
     * A transition of the model's own, which leaves its posterior invariant (a Gibbs update, of
     * theta and of what it keeps beside it); sampler gibbs makes it. All ranks of a group make it
     * at the same time and must agree on theta. em_model.update_of names the one block that it is
     * of, if it is not of all parameters. Collective over the ranks of a group. Errors: EM_EMODEL.
     */
    em_status (*update)(em_model *model, const em_update *update);
    /*
     * Shows the state that the model keeps for each chain of this rank beside theta to a visitor,
     * which saves it in a checkpoint or replaces it. It is that of the chains, not of their places:
     * a panel says which they are. Collective.
     */
    em_status (*visit)(em_model *model, const em_visitor *visitor);
    /*
     * Looks at where an iteration has left a panel of chains, for what the model keeps of it beside
     * them (averages, scores): theta and log_density are read alone, `number` is that of the
     * iteration. Collective over the ranks of a group. Errors: EM_EMODEL.
     */
    em_status (*after_iteration)(em_model *model, const em_update *after);
} em_model_latent;

EM_END_C

#endif
