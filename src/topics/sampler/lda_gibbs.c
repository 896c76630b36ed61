/* The name under which topic models are known to be sampled by their own update. */
#include "sampler/gibbs.h"

extern const em_sampler_ops em_lda_gibbs;

const em_sampler_ops em_lda_gibbs = {
    .name = "lda_gibbs",
    .doc = "gibbs for topic models: partially collapsed, exact",
    .source = "Magnusson, Jonsson, Villani & Broman 2018; Terenin et al. 2019",
    EM_GIBBS};
