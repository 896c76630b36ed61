#include "support/parse_config.h"

const char *const example_config =
    "model:\n"
    "  name: logistic\n"
    "  data: heart.libsvm\n"
    "  prior_scale: 10\n"
    "sampler:\n"
    "  name: hmc\n"
    "  step_size: adapt\n"
    "  adapt_every: 1\n"
    "  target_accept: 0.8\n"
    "  leapfrog_steps: 10\n"
    "  minibatch: 100\n"
    "mass:\n"
    "  estimator: fisher\n"
    "  structure: dense\n"
    "  share: all\n"
    "  s_count: 100\n"
    "  kappa: {k0: 1, eta: 1}\n"
    "run: {chains: 8, shards: 1, warmup: 1000, draws: 1000, thin: 1, seed: 1, init_radius: 2}\n"
    "stop: {r_hat: 1.01, ess: 400, check_every: 200, consecutive: 2, max_time: 3h}\n"
    "output: {file: heart.h5, save_warmup: false, variables: [beta], flush_every: 100, "
    "checkpoint_every: 10m}\n";

em_config *parse_config(const char *path, const char *text, int n_override,
                        const char *const *override)
{
    em_config *config;
    em_status status = em_config_parse(path, text, n_override, override, &config);

    ck_assert_msg(status == EM_OK, "%s", em_error_text());
    return config;
}

void check_config_fails(const char *text, int n_override, const char *const *override,
                        const char *message)
{
    em_config *config;

    ck_assert_int_eq(em_config_parse("heart.yaml", text, n_override, override, &config),
                     EM_ECONFIG);
    ck_assert_ptr_null(config);
    ck_assert_str_eq(em_error_text(), message);
}
