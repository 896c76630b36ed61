#!/usr/bin/env bash
# Warmup of hmc and nuts that ends by itself: one md5 on any number of ranks, wherever it is
# interrupted, with its draws saved or not; what it says of itself.   timeout: 600
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >run.yaml <<'YAML'
model: {name: eight_schools}
run: {chains: 5, draws: 60}
output: {save_warmup: true}
YAML

# A ridge along a parabola: x ~ N(1, 1), y ~ N(x^2, 0.3). Its curvature varies by a factor of 100.
cat >ridge.c <<'C'
#include <emass/plugin.h>
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    const double x = theta[0] - 1, y = theta[1] - theta[0] * theta[0], precision = 1 / 0.09;
    (void)given;
    *log_p -= x * x / 2 + precision * y * y / 2;
    gradient[0] += -x + 2 * precision * y * theta[0];
    gradient[1] -= precision * y;
    return EM_OK;
}
static const em_variable xy = {.name = "xy", .n_axes = 1, .shape = {2}};
EMASS_PLUGIN({.name = "ridge", .n_parameter = 1, .parameter = &xy, .log_density_gradient = density});
C
cc -std=c17 -shared -fPIC -I"$project/include" ridge.c -o ridge.so || exit 1
# In the model's coordinates: warmup would find that its location is curved.
ridge=(--set model.name=ridge --set model.library=./ridge.so --set mass.noncentring=off)

go() { # RANKS FILE ARGUMENT...
    local n=$1 file=$2
    shift 2
    mpirun -n "$n" "$emass" run run.yaml --quiet --output "$file" "$@"
}

same() { # ARGUMENT...
    local n
    rm -f ./*.h5*
    go 1 whole.h5 "$@" || return 1
    for n in 2 3 4; do
        go "$n" "on$n.h5" "$@" && cmp whole.h5 "on$n.h5" || return 1
    done
}

# Stopped again and again, from the start to the last of the draws, and gone on with on other ranks.
piecemeal() { # ARGUMENT...
    local times=0 iteration warmup
    rm -f parts.h5* whole.h5*
    go 1 whole.h5 "$@" || return 1
    "$emass" run run.yaml --progress none --output said.h5 --overwrite "$@" >said
    warmup=$(sed -nE 's/^warmup ([0-9]+) iterations.*/\1/p' said)
    for iteration in 1 4 12 27 $((warmup / 2)) $((warmup - 2)) "$warmup" $((warmup + 31)); do
        stopped_at "$iteration" $((1 + times % 3)) run.yaml --output parts.h5 --resume "$@" || return 1
        times=$((times + 1))
    done
    go 2 parts.h5 --resume "$@" && cmp whole.h5 parts.h5
}

ends() { # PATTERN ARGUMENT...
    local pattern=$1 said
    shift
    said=$("$emass" run run.yaml --progress none --output said.h5 --overwrite "$@") ||
        return 1
    tail -n 1 <<<"$said"
    tail -n 1 <<<"$said" | grep -qE "$pattern"
}

# Warmup draws in the file are as many as it took.
saved() {
    local took
    took=$(h5dump -a tuning_steps said.h5 | sed -nE 's/.*\(0\): ([0-9]+).*/\1/p')
    [ "$took" -lt 1000 ] &&
        h5dump -H -d warmup_sample_stats/lp said.h5 | grep -q "( 5, $took )"
}

for sampler in hmc nuts; do
    check "$sampler: one file on 1 2 3 4 ranks" same --set sampler.name=$sampler
    check "$sampler: interrupted again and again" piecemeal --set sampler.name=$sampler
done
check 'with warmup of given length' same --set run.warmup=310
check 'the line at the end' ends \
    '^warmup [0-9]+ iterations, [0-9]+ gradients; initial phase ended at iteration [0-9]+; T [0-9.]+, [0-9]+ steps'
if command -v h5dump >/dev/null; then
    check 'the draws of warmup' saved
else
    skip 'the draws of warmup' 'h5dump (hdf5-tools) is not installed'
fi
check 'steps that are too small for T' ends '; T [0-9.]+, cut at 100 steps' --set sampler.step_size=0.0001 --set sampler.trajectory=2 --set run.warmup=40
# Two step-size phases of 50 iterations, the second one for leapfrog, and no phase for a longer T.
tries_no_longer() {
    local said
    said=$("$emass" run run.yaml --progress none --output said.h5 --overwrite "$@" | tail -n 1) || return 1
    echo "$said"
    [[ $said =~ ^warmup\ ([0-9]+)\ .*iteration\ ([0-9]+)\;\ T\ 2,\ cut\ at\ 100\ steps ]] &&
        [ "${BASH_REMATCH[1]}" = $((BASH_REMATCH[2] + 100)) ]
}
check 'no longer T is tried where T takes too many steps' tries_no_longer \
    --set model.name=gaussian --set model.dim=5 --set sampler.step_size=0.002
check 'of given length' ends '^warmup 40 iterations, .* initial phase of the given 27 iterations' --set run.warmup=40
check 'of one iteration' ends '^warmup 1 iterations' --set run.warmup=1
check 'one chain' ends '^warmup ' --chains 1
check 'chains that share nothing' run_is_refused 'mass.share is none, but sampler hmc learns' \
    --set mass.share=none
check 'momenta' run_is_refused 'mass.estimator is momentum, but sampler hmc learns' --set mass.estimator=momentum
check 'with steps that are given' ends '^(ESS below|converged|not converged)' --set mass.estimator=momentum --set sampler.leapfrog_steps=5

check 'with one chain, on a ridge' ends '^warmup ' --chains 1 "${ridge[@]}"
check 'a ridge: NUTS takes over, and its steps are shorter' ends \
    'curvature varies, so NUTS makes the draws; target acceptance 0.95' "${ridge[@]}"
check 'a ridge, with a step size that is given' ends 'curvature varies, so NUTS makes the draws$' "${ridge[@]}" --set sampler.step_size=0.1
check 'a ridge: one file on 1 2 3 4 ranks' same "${ridge[@]}"
check 'a ridge: interrupted again and again' piecemeal "${ridge[@]}"

# A Poisson regression on three columns whose counts are all 0. Where the rates are 1 the law ends as at a wall.
cat >zeros.c <<'C'
#include <emass/plugin.h>
#include <math.h>
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    unsigned long long next = 1;
    (void)given;
    for (int j = 0; j < 4; j++) {
        *log_p -= theta[j] * theta[j] / 12.5;
        gradient[j] -= theta[j] / 6.25;
    }
    for (int i = 0; i < 100; i++) {
        double x[] = {1, 0, 0, 0}, rate = 0;
        for (int j = 0; j < 4; j++) {
            for (int k = 0; j > 0 && k < 12; k++) { /* about normal */
                next = (next * 1103515245 + 12345) % 2147483648u;
                x[j] += (double)next / 2147483648.0 - 0.5;
            }
            rate += x[j] * theta[j];
        }
        rate = exp(rate);
        *log_p -= rate;
        for (int j = 0; j < 4; j++)
            gradient[j] -= rate * x[j];
    }
    return EM_OK;
}
static const em_variable ab = {.name = "ab", .n_axes = 1, .shape = {4}};
EMASS_PLUGIN({.name = "zeros", .n_parameter = 1, .parameter = &ab, .log_density_gradient = density});
C
cc -std=c17 -shared -fPIC -I"$project/include" zeros.c -o zeros.so -lm || exit 1

# Divergences of six seeds.
few_divergences() { # LIMIT ARGUMENT...
    local limit=$1 seed n all=0
    shift
    for seed in 1 2 3 4 5 6; do
        "$emass" run run.yaml --set run.draws=1000 --seed "$seed" --output said.h5 --overwrite --progress none "$@" >said ||
            return 1
        n=$(sed -nE 's/^(not )?converged.* ([0-9]+) divergences?.*/\2/p' said)
        echo "seed $seed: ${n:?}"
        all=$((all + n))
    done
    [ "$all" -le "$limit" ]
}
# 40 correlated parameters: their first mass is the curvature at the starts. From a diagonal one
# warmup takes 18,000 to 26,000 gradients.
few_gradients() { # LIMIT ARGUMENT...
    local limit=$1 seed n
    shift
    for seed in 1 2 3 4; do
        "$emass" run run.yaml --set run.draws=10 --seed "$seed" --output said.h5 --overwrite --progress none "$@" >said ||
            return 1
        n=$(sed -nE 's/^warmup .* ([0-9]+) gradients.*/\1/p' said)
        echo "seed $seed: ${n:?}"
        [ "$n" -le "$limit" ] || return 1
    done
}
check 'correlated parameters' few_gradients 10000 --chains 4 --set model.name=gaussian --set model.dim=40 \
    --set model.condition=1e6 --set model.rotation=true

# Steps that are right on average diverge in the tails of tau: 53 times here, without a second search
# for a step size where trajectories are lost. One in 1,000 would be 48.
check 'few trajectories diverge, with any seed' few_divergences 16 --chains 8
# Steps of NUTS that aim at 0.8 diverge here 303 times. One in 1,000 would be 24.
check 'few trajectories diverge on a ridge, with any seed' few_divergences 12 --chains 4 "${ridge[@]}"
# Where lost trajectories alone shorten the steps, there are 31 here. One in 1,000 would be 24.
check 'few trajectories diverge at a wall, with any seed' few_divergences 20 --chains 4 --set model.name=zeros --set model.library=./zeros.so
finish
