#!/usr/bin/env bash
# What a run says of draws that are not to be trusted: targets that defeat a sampler in one way each,
# and a sentence for each, on one rank and on three.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# Neal's funnel: v ~ N(0, 3), x_i ~ N(0, exp(v / 2)).
cat >funnel.c <<'C'
#include <emass/plugin.h>
#include <math.h>
enum { DIM = 6 };
static const em_field fields[] = {{0}};
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    const double v = theta[0], precision = exp(-v);
    (void)given;
    *log_p += -v * v / 18 - (DIM - 1) * v / 2;
    gradient[0] += -v / 9 - (DIM - 1) / 2.0;
    for (int i = 1; i < DIM; i++) {
        *log_p -= precision * theta[i] * theta[i] / 2;
        gradient[0] += precision * theta[i] * theta[i] / 2;
        gradient[i] -= precision * theta[i];
    }
    return EM_OK;
}
EMASS_PLUGIN({.name = "funnel", .options_size = sizeof(int), .fields = fields, .dim = DIM,
              .log_density_gradient = density});
C
# Two normals 40 standard deviations apart, the second of weight exp(-low).
cat >modes.c <<'C'
#include <emass/plugin.h>
#include <math.h>
typedef struct { double low; } options;
static const em_field fields[] = {EM_REAL(options, low, .minimum = 0, .maximum = 100, .fallback = "0"), {0}};
static em_status density(const void *given, const double *x, double *log_p, double *gradient)
{
    const double first = -x[0] * x[0] / 2, second = -(x[0] - 40) * (x[0] - 40) / 2 - ((const options *)given)->low;
    *log_p += fmax(first, second) + log1p(exp(-fabs(first - second))) - x[1] * x[1] / 2;
    gradient[0] -= x[0] - 40 / (1 + exp(first - second));
    gradient[1] -= x[1];
    return EM_OK;
}
EMASS_PLUGIN({.name = "modes", .options_size = sizeof(options), .fields = fields, .dim = 2,
              .log_density_gradient = density});
C
# A number that the density does not depend on, as a parameter without a prior of which the data say nothing.
sed -e 's/"modes"/"flat"/' -e 's/^    \*log_p += .*/    *log_p -= x[0] * x[0] \/ 2;/' -e 's/^    gradient\[0\] -= .*/    gradient[0] -= x[0];/' \
    -e '/const double first/d' -e '/gradient\[1\]/d' -e 's/^    return/    (void)given;\n    return/' modes.c >flat.c
for model in funnel modes flat; do
    cc -std=c17 -shared -fPIC -I"$project/include" $model.c -o $model.so -lm || exit 1
done
# As it is given: a map that is learned in warmup makes it a normal (run/noncentring).
printf 'model: {name: funnel, library: ./funnel.so}\nmass: {noncentring: off}\n' >funnel.yaml
cat >modes.yaml <<'YAML'
model: {name: modes, library: ./modes.so}
sampler: {name: hmc, leapfrog_steps: 5}
run: {chains: 9, init_radius: 60, warmup: 200, draws: 200, seed: 1}
YAML
echo 'model: {name: gaussian, dim: 20}' >gaussian.yaml
printf 'model: {name: flat, library: ./flat.so}\nsampler: {name: hmc, leapfrog_steps: 5}\nrun: {draws: 200}\n' >flat.yaml

go() { # RANKS FILE CONFIG ARGUMENT...: what it prints, into FILE.said
    limited mpirun -n "$1" "$emass" run "$3" --output "$2.h5" --overwrite --progress none "${@:4}" >"$2.said"
}

# Says PATTERN, and the same on three ranks, where the file is the same.
run_says() { # PATTERN CONFIG ARGUMENT...
    go 1 one "${@:2}" && go 3 three "${@:2}" || return 1
    cat one.said
    cmp one.said three.said && cmp one.h5 three.h5 && grep -qE -- "$1" one.said
}

# Of the sentences under the table only one is of this kind.
run_says_once() { # PATTERN ARGUMENT...
    run_says "$@" && [ "$(grep -cE "$1" one.said)" = 1 ]
}

silent() { # PATTERN CONFIG ARGUMENT...
    go 1 one "${@:2}" && cat one.said && ! grep -qE "$1" one.said
}

# In the verdict, and its sentence under the table; no run is converged that has one.
verdict() { # PATTERN SENTENCE CONFIG ARGUMENT...
    run_says "^(not converged|converged|converged with warnings): .*$1" "${@:3}" && grep -E "^$2" one.said && limited "$emass" summary one.h5 | grep -E "^$2"
}

# Interrupted in one stage after another, and gone on with elsewhere.
piecemeal() {
    local iteration warmup
    go 1 whole funnel.yaml "$@" && rm -f parts.h5* || return 1
    warmup=$(sed -nE 's/^warmup ([0-9]+) iterations.*/\1/p' whole.said)
    for iteration in 1 40 $((warmup / 4)) $((warmup / 2)) $((warmup - 9)) $((warmup + 9)); do
        stopped_at "$iteration" 1 funnel.yaml --output parts.h5 --resume "$@" || return 1
    done
    limited mpirun -n 2 "$emass" run funnel.yaml --output parts.h5 --quiet --resume "$@" && cmp whole.h5 parts.h5
}

few=(--chains 12 --set run.draws=60)
check 'curvature that varies: nuts draws' run_says 'curvature varies, so NUTS makes the draws' funnel.yaml "${few[@]}"
check 'with warmup of given length' run_says 'curvature varies, so NUTS makes the draws' funnel.yaml "${few[@]}" --set run.warmup=400
check 'without room to tune again' run_says 'curvature varies, so NUTS makes the draws' funnel.yaml "${few[@]}" --set run.warmup=200
check 'where only the moves of chains tell' run_says 'curvature varies, so NUTS makes the draws' funnel.yaml "${few[@]}" --set mass.structure=diag
check 'interrupted and gone on with' piecemeal "${few[@]}"
check 'and where only the moves tell' piecemeal "${few[@]}" --set mass.structure=diag

# Of every seed, with few chains; and of no seed where one length fits, though tails are heavy.
any_seed() {
    local seed
    for seed in 2 3 4 5 6 7; do
        run_says 'curvature varies' funnel.yaml --set run.draws=5 --seed "$seed" &&
            silent 'curvature varies' schools.yaml --set run.draws=5 --seed "$seed" || return
    done
}
echo 'model: {name: eight_schools}' >schools.yaml
check 'with any seed' any_seed

# So it does in a run that begins with what that one has learned, without a warmup.
goes_on() {
    go 1 one funnel.yaml "${few[@]}" &&
        go 1 three funnel.yaml "${few[@]}" --set mass.from=one.h5 --set run.warmup=0 || return
    for name in inv_mass step_size trajectory; do
        h5diff one.h5 three.h5 "/mass_adaptation/$name" || return
    done
    h5dump -d /sample_stats/n_steps -s 0,0 -c 1,60 -y -w 0 three.h5 | tr , '\n' | grep -E '^ *[0-9]+$' | sort -u >lengths
    [ "$(wc -l <lengths)" -gt 3 ] # trajectories of a time have those of its jitter
}
check 'and after it' goes_on
check 'a length that was asked for is kept' run_says '; T 2, ' funnel.yaml "${few[@]}" --set sampler.trajectory=2

stuck=(--set sampler='{name: hmc, leapfrog_steps: 5, step_size: 0.4}' --set mass.estimator=none --set run.draws=300)
check 'chains that stand still' verdict '[1-9] chains? stood still \(up to [0-9]+ draws\)' \
    'Stood still: [1-9] of 6 chains \(up to [0-9]+ draws in a row' funnel.yaml --chains 6 "${stuck[@]}"
check 'are not converged' grep -q '^not converged' one.said
check 'chains in another mode' verdict '2 modes \([5-8] and [1-4] of 9 chains\)' \
    'Modes: the chains are in 2 modes \([5-8] and [1-4] of 9 chains\)\. In theta\[0\] .* about (39|40).*the weights of the modes are not known' modes.yaml
check 'of hardly any weight' verdict '2 modes \(' \
    'Modes: .*The log density at theta\[0\] about (39|40)[0-9.]* is [45][0-9.]+ lower' modes.yaml --set model.low=50
check 'nothing is said where all agree' silent 'mode|stood|Stood|Reinitialised|Saturated' gaussian.yaml --set run.draws=200
check 'a flat direction' verdict '1 number may be improper' 'Improper: the draws of 1 of 2 rows keep growing .*\(theta\[1\], .*check that every parameter has a prior' flat.yaml

# Where x_0 is above 3 no step is accepted. Chains are put there by positions of an earlier run.
cat >spikes.c <<'C'
#include <emass/plugin.h>
#include <math.h>
typedef struct { double mean, height; } options;
static const em_field fields[] = {EM_REAL(options, mean, .minimum = -9, .maximum = 9, .fallback = "0"),
                                  EM_REAL(options, height, .minimum = 0, .maximum = 1e9, .fallback = "0"), {0}};
static em_status density(const void *given, const double *x, double *log_p, double *gradient)
{
    const options *o = given;
    const double y = x[0] - o->mean;
    *log_p -= (y * y + x[1] * x[1]) / 2;
    gradient[0] -= y;
    gradient[1] -= x[1];
    if (x[0] > 3) {
        *log_p += o->height * (cos(1e9 * x[0]) - 1);
        gradient[0] -= 1e9 * o->height * sin(1e9 * x[0]);
    }
    return EM_OK;
}
EMASS_PLUGIN({.name = "spikes", .options_size = sizeof(options), .fields = fields, .dim = 2,
              .log_density_gradient = density});
C
cc -std=c17 -shared -fPIC -I"$project/include" spikes.c -o spikes.so -lm || exit 1
echo 'model: {name: spikes, library: ./spikes.so}' >spikes.yaml
limited "$emass" run spikes.yaml --chains 8 --quiet --set model.mean=3 --set run.draws=100 \
    --set output.save_unconstrained=true --output placed.h5 || exit 1
spikes=(spikes.yaml --chains 8 --set model.height=1e6 --set run.draws=300 --set mass.from=placed.h5
    --set mass.from_positions=true)
check 'a chain that cannot move stays, and is told' verdict '[1-7] chains? stood still' 'Stood still: ' "${spikes[@]}"
check 'or takes the position of another, where that is asked for' \
    run_says '; [1-9][0-9]* chains? took the position of another' "${spikes[@]}" --set mass.rescue=true
check 'heavy tails' verdict 'smallest E-BFMI 0\.[012]' 'E-BFMI below 0.3: ' funnel.yaml "${few[@]}"
check 'saturated trees' verdict '[0-9]+ saturated trees' 'Saturated tree depth: [0-9]+ of 400 draws' gaussian.yaml --chains 4 \
    --set sampler='{name: nuts, max_treedepth: 1}' --set run.draws=100
finish
