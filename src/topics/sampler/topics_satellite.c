/* Registers the topic models, and the name of the sampler that is their own update. */
#include "model/satellite.h"
#include "sampler/gibbs.h"

extern const em_satellite em_topics_satellite;
extern const em_model_ops em_model_lda, em_model_pfa, em_model_dpfa;

static const em_sampler_ops lda_gibbs = {
    .name = "lda_gibbs",
    .doc = "gibbs for topic models: partially collapsed, exact",
    .source = "Magnusson, Jonsson, Villani & Broman 2018; Terenin et al. 2019",
    EM_GIBBS};

static const em_model_ops *const models[] = {&em_model_lda, &em_model_pfa, &em_model_dpfa};
static const em_sampler_ops *const samplers[] = {&lda_gibbs};

const em_satellite em_topics_satellite = {"topics", 3, 1, models, samplers};
