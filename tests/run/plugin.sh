#!/usr/bin/env bash
# Models in shared objects: what they may leave out, what they may report, the same bytes on any
# ranks and after a restart, and one line for what is no plug-in.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

build() { # NAME [FLAG...]: NAME.so of NAME.c
    cc -std=c17 -Wall -Wextra -Werror -shared -fPIC -I"$project/include" "${@:2}" "$1.c" -o "$1.so" -lm
}

cat >head.h <<'C'
#include <emass/plugin.h>
#include <math.h>
#include <stdlib.h>
typedef struct { em_reals y; double scale; int64_t n_new; } options;
static const em_field fields[] = {
    EM_REALS(options, y, .doc = "observations"),
    EM_REAL(options, scale, .minimum = 1e-9, .maximum = 1e9, .fallback = "1", .doc = "of the noise"),
    EM_INT(options, n_new, .minimum = 1, .maximum = 10, .fallback = "3", .doc = "predictions"), {0}};
C
# The same posterior three times, y ~ N(theta, scale), |theta| < 3: with a gradient, without one, and
# in full, with a likelihood of its own, log likelihoods and predictions.
cat >slope.c <<'C'
#include "head.h"
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    const options *o = given;
    if (fabs(theta[0]) >= 3)
        return EM_NONFINITE;
    for (int64_t i = 0; i < o->y.count; i++) {
        const double z = (o->y.value[i] - theta[0]) / o->scale;
        *log_p -= z * z / 2;
        gradient[0] += z / o->scale;
    }
    return EM_OK;
}
EMASS_PLUGIN({.name = "slope", .options_size = sizeof(options), .fields = fields, .dim = 1,
              .log_density_gradient = density});
C
cat >value.c <<'C'
#include "head.h"
static double density(const void *given, const double *theta)
{
    const options *o = given;
    double log_p = fabs(theta[0]) < 3 ? 0 : NAN;
    for (int64_t i = 0; i < o->y.count; i++) {
        const double z = (o->y.value[i] - theta[0]) / o->scale;
        log_p -= z * z / 2;
    }
    return log_p;
}
EMASS_PLUGIN({.name = "value", .options_size = sizeof(options), .fields = fields, .dim = 1,
              .log_density = density});
C
cat >full.c <<'C'
#include "head.h"
typedef struct { em_model model; const options *options; em_variable variable[3]; } full;
static void destroy(em_model *model) { free(model); }
static em_status create(const void *given, const em_model_context *context, em_model **out)
{
    full *self = calloc(1, sizeof *self);
    if (!self)
        return em_fail(EM_EMEMORY, "full: out of memory");
    self->options = given;
    self->variable[0] = (em_variable){.name = "theta"};
    self->variable[1] = (em_variable){.name = "y", .group = EM_LOG_LIKELIHOOD, .n_axes = 1,
                                      .shape = {self->options->y.count}};
    self->variable[2] = (em_variable){.name = "y", .group = EM_POSTERIOR_PREDICTIVE, .n_axes = 1,
                                      .shape = {self->options->n_new}};
    self->model = (em_model){.ops = context->ops, .dim = 1, .n_variable = 3,
                             .variable = self->variable};
    *out = &self->model;
    return EM_OK;
}
static em_status add_prior(em_model *model, const em_query *query)
{
    const options *o = ((full *)model)->options;
    for (int64_t c = 0; c < query->n_chain; c++)
        for (int64_t i = 0; i < o->y.count; i++) {
            const double theta = query->theta[c * query->stride];
            const double z = (o->y.value[i] - theta) / o->scale;
            query->log_density[c] -= fabs(theta) < 3 ? z * z / 2 : NAN;
            query->gradient[c * query->stride] += z / o->scale;
        }
    return EM_OK;
}
static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    const options *o = ((full *)model)->options;
    *out++ = theta[0];
    for (int64_t i = 0; i < o->y.count; i++) {
        const double z = (o->y.value[i] - theta[0]) / o->scale;
        *out++ = -z * z / 2 - log(o->scale) - log(2 * acos(-1)) / 2;
    }
    em_draw_normals(draw, 0, o->n_new, out);
    for (int64_t i = 0; i < o->n_new; i++)
        out[i] = theta[0] + o->scale * out[i];
    return EM_OK;
}
EMASS_PLUGIN({.name = "full", .options_size = sizeof(options), .fields = fields, .create = create,
              .destroy = destroy, .add_prior = add_prior, .report = report});
C
mkdir models elsewhere
for model in slope value full; do
    check "the plug-in $model builds" build $model
    mv $model.so models
    echo "model: {name: $model, library: models/$model.so, y: [0.5, 1.5, 1.2, 0.4, 1.4]}" >$model.yaml
    printf 'run: {chains: 4, warmup: 300, draws: 500}\nsampler: {name: hmc, leapfrog_steps: 3}\n' >>$model.yaml

done

mean() { # FILE: the mean of theta
    "$emass" summary "$1" --csv | awk -F, '/^"?theta/ { print $2 }'
}
near() { # A B
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b < 0.1 && b - a < 0.1) }'
}
right() { # MODEL: 1.00 is the mean of y, and the bounds are 4.5 standard deviations away
    limited "$emass" run "$1.yaml" --quiet --output "$1.h5" && near "$(mean "$1.h5")" 1.00
}
for model in slope value full; do
    check "$model samples its posterior" right $model
done
warns() {
    limited "$emass" check value.yaml 2>&1 | grep -q 'gives no gradient: central differences take 2 densities'
}
check 'differences are told with what they cost' warns
by_default() { # without a sampler in the config a log density alone is sampled by slice
    grep -v sampler value.yaml >default.yaml
    limited "$emass" run default.yaml --quiet --output default.h5 >said 2>&1 && ! grep -q 'central differences' said &&
        near "$(mean default.h5)" 1.00 && limited "$emass" check default.yaml >said 2>&1 &&
        grep -q 'name: slice' said && grep -q 'estimator: variance' said && grep -q 'gradient   none' said
}
check 'a log density alone is sampled by slice, without differences' by_default
refuses_fisher() {
    ! limited "$emass" run default.yaml --set mass.estimator=fisher --output fisher.h5 2>said && [ ! -e fisher.h5 ] &&
        grep -q 'mass.estimator is fisher, but sampler slice computes no gradients' said
}
check 'an estimator of gradients is refused there' refuses_fisher
twice_half_wrong() { # a broken gradient must be found by emass check
    sed 's|+= z / o->scale|+= z / 2 / o->scale|; s/"slope"/"wrong"/' slope.c >wrong.c
    build wrong && sed 's/slope/wrong/; s|models/slope|wrong|; s|models/wrong|wrong|' slope.yaml >wrong.yaml
    ! limited "$emass" check wrong.yaml
}
check 'a wrong gradient is found' twice_half_wrong
from_elsewhere() {
    (cd elsewhere && limited "$emass" check ../slope.yaml)
}
check 'the library is looked for beside the config' from_elsewhere

one_md5() {
    limited mpirun -n 3 "$emass" run full.yaml --quiet --output three.h5 && cmp full.h5 three.h5
}
check 'the same bytes on 3 ranks, predictions included' one_md5
exact_resume() {
    limited "$emass" run full.yaml --quiet --output part.h5 --set run.draws=200 &&
        limited mpirun -n 2 "$emass" run full.yaml --quiet --output part.h5 --resume &&
        limited "$emass" summary part.h5 --csv >part.csv && limited "$emass" summary full.h5 --csv >full.csv &&
        cmp part.csv full.csv
}
check '200 draws and 300 more are 500' exact_resume
groups() {
    local group
    for group in log_likelihood posterior_predictive; do
        limited "$emass" summary full.h5 --group "$group" | grep -q '^y\[' || return
    done
}
check 'log likelihoods and predictions have groups of their own' groups
stored() {
    limited "$emass" verify full.h5 --ranks 2 --draws 50
}
check 'verify finds it again' stored

bad_config() { # WHAT PATTERN CONFIG...
    printf '%s\n' "${@:3}" >bad.yaml
    check "$1" refused -E "$2" "$emass" check bad.yaml
}
bad_config 'a library that is not there' 'bad.yaml:1.*model.library.*none.so' 'model: {name: x, library: none.so}'
cp slope.c text.so
bad_config 'text' 'cannot be loaded' 'model: {name: slope, library: text.so}'
mkfifo pipe.so
bad_config 'a FIFO' 'FIFO' 'model: {name: slope, library: pipe.so}'
echo 'int x;' >empty.c && build empty
bad_config 'a shared object that is none of ours' 'no EMASS_PLUGIN' 'model: {name: slope, library: empty.so}'
sed 's/#include <emass.*/&\n#undef EMASS_PLUGIN_ABI\n#define EMASS_PLUGIN_ABI 99/' head.h >head99.h
sed 's/head.h/head99.h/' slope.c >old.c && build old
bad_config 'another version of the interface' 'version 99.*expected [0-9]' 'model: {name: slope, library: old.so}'
bad_config 'another name' 'expected slope' 'model: {name: slop, library: models/slope.so, y: [1]}'
bad_config 'an option it does not have' 'unknown key.*model.scal.*did you mean scale' \
    'model: {name: slope, library: models/slope.so, y: [1], scal: 2}'
bad_config 'a value out of its bounds' 'model.scale: found' \
    'model: {name: slope, library: models/slope.so, y: [1], scale: -2}'
bad_config 'an option that is missing' 'model.y is missing' 'model: {name: slope, library: models/slope.so}'
echo '#include <emass/plugin.h>
EMASS_PLUGIN({.name = "nothing"});' >nothing.c && build nothing
bad_config 'a model without a density' 'no create, or a log_density' 'model: {name: nothing, library: nothing.so}'

# Functions of a model that does nothing.
cat >stubs.h <<'C'
#include <emass/plugin.h>
static inline em_status density(const void *o, const double *x, double *p, double *g) { return o && x && p && g ? -6 : -6; }
static inline em_status create(const void *o, const em_model_context *c, em_model **m) { return !o && c && !m; }
static inline em_status odd(const void *o, const em_model_context *c, em_model **m) { return !o && c && !m ? 0 : 1; }
static inline void destroy(em_model *m) { (void)m; }
static inline em_status ask(em_model *m, const em_query *q) { return m && q ? 0 : 0; }
static inline em_status report(em_model *m, const em_draw *d, const double *x, double *o) { return m && d && x && o ? 0 : 0; }
static inline void publish(em_model *m, int64_t i, int64_t n, const double *x) { (void)m, (void)i, (void)n, (void)x; }
C
rest='.destroy = destroy, .add_prior = ask, .report = report'
echo "#include \"stubs.h\"
static const em_model_ranges ranges = {.publish = publish};
EMASS_PLUGIN({.name = \"half\", .create = create, .ranges = &ranges, $rest});" >half.c && build half
bad_config 'a capability that is half there' 'no ranges.estimate, gradient or publish' \
    'model: {name: half, library: half.so}'

echo '#include <emass/plugin.h>
static const em_variable p = {.name = "p", .bounds = EM_WITHIN(2, 1)};
static em_status density(const void *o, const double *x, double *l, double *g) { return o && x && l && g ? 0 : 0; }
EMASS_PLUGIN({.name = "empty", .n_parameter = 1, .parameter = &p, .log_density_gradient = density});' >range.c
bounds() {
    build range && echo 'model: {name: empty, library: range.so}' >range.yaml || return
    limited "$emass" run range.yaml --output range.h5 2>range.txt
    [ $? = 1 ] && grep -q 'p: found the bounds 2 and 1, expected a range' range.txt && [ ! -e range.h5 ]
}
check 'bounds that leave nothing' bounds

# Failures that say nothing have a message all the same; and a model that is none is one.
silent() { # PATTERN MODEL
    echo "#include \"stubs.h\"
EMASS_PLUGIN({.name = \"silent\", $2});" >silent.c
    build silent && echo 'model: {name: silent, library: silent.so}' >silent.yaml || return
    limited "$emass" run silent.yaml --output silent.h5 >silent.txt 2>&1
    [ $? = 1 ] && cat silent.txt && [ "$(grep -c . silent.txt)" = 1 ] && grep -q -- "$1" silent.txt
}
check 'a density that fails and does not say why' silent 'log_density_gradient returned -6 without a message' \
    '.dim = 1, .log_density_gradient = density'
check 'a model that is not made' silent 'create of the model returned 1' ".create = odd, $rest"
check 'nor made, and all is well' silent 'create of the model returned EM_OK without' ".create = create, $rest"

mistyped() {
    sed 's/EM_INT(options, n_new/EM_REAL(options, n_new/' head.h >head2.h
    sed 's/head.h/head2.h/' slope.c >mistyped.c
    ! build mistyped
}
check 'a row of another type than its member does not compile' mistyped
finish
