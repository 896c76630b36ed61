#!/usr/bin/env bash
# Models with state of their own: what they keep for each chain beside its position, an update of
# their own, an estimate of their density. The exact law, the same bytes on any ranks and shards, and
# after a restart.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# Observations y_i from N(1, 1) with probability w, else from N(-1, 1); w is one of 0.01 .. 0.99, all
# alike. Which of the two each of them is from is kept beside w, on the shard that holds it, and both
# are drawn in turn.
cat >mixture.c <<'C'
#include <emass/plugin.h>
#include <math.h>
#include <stdlib.h>
enum { N = 300, PART = 64, N_PART = (N + PART - 1) / PART, N_W = 99 };
typedef struct {
    em_model model;
    int64_t first_chain, n_chain;
    uint8_t *z;  /* [n_chain][rows.count] */
    double *ones; /* [n_chain] of all shards, after the last update */
} mixture;
static const em_variable variables[] = {{.name = "w"}, {.name = "ones"}};
static double y(int64_t i) { return (double)(i * 37 % 101 - 50) / 25 + 0.4; }
static void destroy(em_model *model)
{
    free(((mixture *)model)->z);
    free(((mixture *)model)->ones);
    free(model);
}
static em_status create(const void *options, const em_model_context *context, em_model **out)
{
    mixture *self = calloc(1, sizeof *self);
    const int64_t first = N_PART * context->shard / context->n_shard * PART;
    int64_t end = N_PART * (context->shard + 1) / context->n_shard * PART;
    (void)options;
    end = end < N ? end : N;
    self->first_chain = context->first_chain;
    self->n_chain = context->n_chain;
    self->model = (em_model){.ops = context->ops, .dim = 1, .n_variable = 2, .variable = variables,
                             .rows = {.total = N, .part = PART, .first = first, .count = end - first}};
    self->z = calloc((size_t)(self->n_chain * (end - first)) + 1, 1);
    self->ones = calloc((size_t)self->n_chain, sizeof(double));
    *out = &self->model;
    return EM_OK;
}
static em_status place(em_model *model, const em_draw *draw, double *theta)
{
    mixture *self = (mixture *)model;
    const int64_t count = model->rows.count;
    uint8_t *z = self->z + (draw->chain - self->first_chain) * count;
    for (int64_t i = 0; i < count; i++) {
        double u;
        em_draw_uniforms(draw, (uint64_t)(model->rows.first + i), 1, &u);
        z[i] = u < 0.5;
    }
    theta[0] = 0.5;
    return EM_OK;
}
static double draw_weight(const em_draw *draw, double ones)
{
    double p[N_W], sum = 0, u;
    for (int k = 0; k < N_W; k++) {
        const double w = (k + 1) / 100.;
        sum += p[k] = exp(ones * log(w / 0.5) + (N - ones) * log((1 - w) / 0.5));
    }
    em_draw_uniforms(draw, 0, 1, &u);
    u *= sum;
    for (int k = 0; k < N_W; k++)
        if ((u -= p[k]) <= 0)
            return (k + 1) / 100.;
    return N_W / 100.;
}
static em_status update(em_model *model, const em_update *update)
{
    mixture *self = (mixture *)model;
    const em_share *own = &model->rows;
    em_status status = EM_OK;
    for (int64_t c = 0; c < update->n_chain; c++) {
        const em_draw draw = em_update_draw(update, c);
        const int64_t local = update->chain[c] - self->first_chain;
        uint8_t *z = self->z + local * own->count;
        int64_t ones = 0;
        double *w = update->theta + c * update->stride;
        for (int64_t i = 0; i < own->count; i++)
            ones += z[i];
        status = update->shards->sum(update->shards->context, EM_OK, 1, &ones);
        if (status)
            return status;
        *w = draw_weight(&draw, (double)ones);
        ones = 0;
        for (int64_t i = 0; i < own->count; i++) {
            double u, x = y(own->first + i) * SCALE;
            em_draw_uniforms(&draw, 1 + (uint64_t)(own->first + i), 1, &u);
            ones += z[i] = u < 1 / (1 + (1 / *w - 1) * exp(-2 * x));
        }
        status = update->shards->sum(update->shards->context, FAILS(update->number), 1, &ones);
        if (status)
            return status;
        self->ones[local] = (double)ones;
        update->log_density[c] = (double)ones;
    }
    return status;
}
static em_status visit(em_model *model, const em_visitor *visitor)
{
    mixture *self = (mixture *)model;
    const em_share *own = &model->rows;
    return visitor->sharded(visitor->context, "z", EM_NUMBER_UINT8, own->total, own->first, own->count,
                          self->z);
}
static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    mixture *self = (mixture *)model;
    out[0] = theta[0];
    out[1] = self->ones[draw->chain - self->first_chain];
    return EM_OK;
}
EMASS_PLUGIN({.name = "mixture", .create = create, .destroy = destroy, .sampler = "gibbs",
              .start = place, .report = report,
              .latent = &(const em_model_latent){.update = update, .visit = visit}});
C
build() { # NAME [FLAG...]: NAME.so of the mixture
    cc -std=c17 -Wall -Wextra -Werror -shared -fPIC -I"$project/include" "${@:2}" mixture.c \
        -o "$1.so" -lm
}
check 'a model with an update builds' build mixture -DSCALE=1 '-DFAILS(n)=EM_OK'
cat >mixture.yaml <<'YAML'
model: {name: mixture, library: mixture.so}
run: {chains: 3, warmup: 100, draws: 4000}
output: {keep_checkpoint: true}
YAML

# The exact mean of w, by summing over its values.
exact=$(awk 'BEGIN { for (k = 1; k < 100; k++) { w = k / 100; l = 0
    for (i = 0; i < 300; i++) { y = (i * 37 % 101 - 50) / 25 + 0.4
        l += log(w * exp(-(y - 1) ^ 2 / 2) + (1 - w) * exp(-(y + 1) ^ 2 / 2)) }
    if (k == 1 || l > top) top = l; L[k] = l }
    for (k = 1; k < 100; k++) { p = exp(L[k] - top); s += p; m += p * k / 100 }
    printf "%.12g", m / s }')
away() { # FILE: of the mean of w from the exact one, in its standard errors
    "$emass" summary "$1" --csv --var w | awk -F, -v exact="$exact" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { z = ($at["mean"] - exact) / $at["mcse_mean"]; print z < 0 ? -z : z }'
}
exact_law() {
    limited "$emass" run mixture.yaml --quiet --output one.h5 2>said && [ ! -s said ] && away one.h5 &&
        awk -v z="$(away one.h5)" 'BEGIN { exit !(z != "" && z < 4) }'
}
check 'Gibbs draws have the exact law' exact_law
twin() {
    build wrong -DSCALE=1.1 '-DFAILS(n)=EM_OK' && limited "$emass" run mixture.yaml --quiet \
        --output wrong.h5 --set model.library=wrong.so && awk -v z="$(away wrong.h5)" 'BEGIN { exit !(z > 4) }'
}
check 'and those of a wrong update have not' twin

same() { # RANKS SHARDS: as on one rank
    limited mpirun -n "$1" "$emass" run mixture.yaml --quiet --overwrite --output "$1.$2.h5" \
        --set "run.shards=$2" && cmp one.h5 "$1.$2.h5"
}
check 'the same bytes on 2 ranks' same 2 1
check 'on 3 shards' same 3 3
check 'on 2 x 2' same 4 2
resumed() {
    limited mpirun -n 2 "$emass" run mixture.yaml --quiet --output part.h5 --set run.draws=1000 \
        --set run.shards=2 && limited mpirun -n 3 "$emass" run mixture.yaml --quiet --output part.h5 --resume &&
        "$emass" summary one.h5 --csv >one.csv && "$emass" summary part.h5 --csv >part.csv &&
        cmp one.csv part.csv && h5dump -H -d model_z part.h5.checkpoint | grep -q U8
}
check '1000 draws on 2 shards, then 3000 on 3 ranks, are 4000' resumed

fails_together() { # a failure of one shard ends all of them
    build broken -DSCALE=1 '-DFAILS(n)=(own->first > 0 && (n) == 7 ? em_fail(EM_EMODEL, "lost") : EM_OK)'
    limited mpirun -n 3 "$emass" run mixture.yaml --quiet --output broken.h5 \
        --set model.library=broken.so --set run.shards=3 >said 2>&1
    [ $? = 1 ] && grep -q 'lost' said
}
check 'what fails on one shard fails on all' fails_together

check 'a kernel that needs a density' refused_twice 'hmc needs a density.*mixture' mixture.yaml --set sampler.name=hmc
checked() {
    limited "$emass" check mixture.yaml | grep -q 'not compared.*update of its own'
}
check 'emass check says that there is no gradient' checked

# A density N(0, 1) whose gradient is off by (e_k + e_(k-1)) / 2 with e_k of evaluation k: the last
# one is kept for each chain.
cat >noisy.c <<'C'
#include <emass/plugin.h>
#include <stdlib.h>
typedef struct { em_model model; int64_t first_chain; double *last; } noisy;
static const em_variable theta = {.name = "theta"};
static void destroy(em_model *model) { free(((noisy *)model)->last); free(model); }
static em_status create(const void *options, const em_model_context *context, em_model **out)
{
    noisy *self = calloc(1, sizeof *self);
    (void)options;
    self->first_chain = context->first_chain;
    self->last = calloc((size_t)context->n_chain, sizeof(double));
    self->model = (em_model){.ops = context->ops, .dim = 1, .estimates = true, .n_variable = 1,
                             .variable = &theta};
    *out = &self->model;
    return EM_OK;
}
static em_status add_prior(em_model *model, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c++) {
        const em_draw draw = em_query_draw(query, c);
        double *last = &((noisy *)model)->last[query->chain[c] - ((noisy *)model)->first_chain];
        const double at = query->theta[c * query->stride];
        double e;
        em_draw_normals(&draw, 0, 1, &e);
        query->log_density[c] -= at * at / 2;
        query->gradient[c * query->stride] += (e + *last) / 2 - at;
        *last = e;
    }
    return EM_OK;
}
static em_status visit(em_model *model, const em_visitor *visitor)
{
    return visitor->chains(visitor->context, "last", 1, ((noisy *)model)->last);
}
static em_status report(em_model *model, const em_draw *draw, const double *theta_of, double *out)
{
    (void)model, (void)draw;
    *out = *theta_of;
    return EM_OK;
}
EMASS_PLUGIN({.name = "noisy", .create = create, .destroy = destroy, .add_prior = add_prior,
              .report = report, .sampler = "sgld",
              .latent = &(const em_model_latent){.visit = visit}});
C
check 'a model that estimates builds' cc -std=c17 -Wall -Wextra -Werror -shared -fPIC \
    -I"$project/include" noisy.c -o noisy.so
cat >noisy.yaml <<'YAML'
model: {name: noisy, library: noisy.so}
sampler: {step_size: 0.05, leapfrog_steps: 3}
run: {chains: 3, warmup: 20, draws: 200}
YAML
estimates() {
    limited "$emass" run noisy.yaml --quiet --output n1.h5 &&
        limited mpirun -n 3 "$emass" run noisy.yaml --quiet --output n3.h5 && cmp n1.h5 n3.h5 &&
        limited mpirun -n 2 "$emass" run noisy.yaml --quiet --output part2.h5 --set run.draws=70 &&
        limited "$emass" run noisy.yaml --quiet --output part2.h5 --resume &&
        "$emass" summary n1.h5 --csv >n1.csv && "$emass" summary part2.h5 --csv >part2.csv && cmp n1.csv part2.csv
}
check 'an estimate draws the same on any ranks, and after a restart' estimates
check 'a kernel that needs an exact density' refused_twice 'hmc needs an exact density.*noisy' noisy.yaml \
    --set sampler.name=hmc --set sampler.leapfrog_steps=3

# Where iterations of warmup use more and more of the data, here up to number 60, no time left is told before.
cat >pace.c <<'C'
#define _POSIX_C_SOURCE 199309L
#include <emass/plugin.h>
#include <stdlib.h>
#include <time.h>
static const em_variable mu = {.name = "mu"};
static void destroy(em_model *model) { free(model); }
static em_status create(const void *options, const em_model_context *context, em_model **out)
{
    em_model *self = calloc(1, sizeof *self);
    (void)options;
    *self = (em_model){.ops = context->ops, .n_parameter = 1, .parameter = &mu, .even_from = 60};
    *out = self;
    return EM_OK;
}
static em_status update(em_model *model, const em_update *update)
{
    const struct timespec wait = {0, update->number < 60 ? 100000000 : 200000000};
    (void)model;
    nanosleep(&wait, NULL);
    return EM_OK;
}
EMASS_PLUGIN({.name = "pace", .create = create, .destroy = destroy, .sampler = "gibbs",
              .latent = &(const em_model_latent){.update = update}});
C
printf '%s\n' 'model: {name: pace, library: ./pace.so}' 'run: {chains: 1, warmup: 80, draws: 20}' 'output: {file: pace.h5}' >pace.yaml
no_time_left_at_first() {
    cc -std=c17 -Wall -Wextra -Werror -shared -fPIC -I"$project/include" pace.c -o pace.so || return 1
    limited "$emass" run pace.yaml --progress log >out.txt 2>log.txt || return 1
    cat log.txt
    grep -qE 'warmup [1-5]?[0-9]/100' log.txt && ! grep -E 'warmup [1-5]?[0-9]/100.* left' log.txt &&
        grep -E '(warmup|sampling) [6-9][0-9]/100.* left' log.txt
}
check 'no time left while iterations grow' no_time_left_at_first
finish
