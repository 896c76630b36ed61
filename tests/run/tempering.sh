#!/usr/bin/env bash
# Tempered runs: weights of modes and evidence beside what is known of them, the same bytes on any number of
# ranks and shards, stops and kills, and one line for what cannot be tempered.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# Two normal modes in SIZE dimensions, WEIGHT of the mass at -5 and the rest at 4 in every dimension; its integral is 1.
cat >modes.c <<'C'
#include <emass/plugin.h>
#include <math.h>
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    const double at[] = {-5, 4}, weight[] = {WEIGHT, 1 - WEIGHT};
    double term[2], sum = 0;
    (void)given;
    for (int k = 0; k < 2; k++) {
        term[k] = log(weight[k]) - SIZE * 0.918938533204672742;
        for (int i = 0; i < SIZE; i++)
            term[k] -= (theta[i] - at[k]) * (theta[i] - at[k]) / 2;
    }
    const double most = fmax(term[0], term[1]);
    for (int k = 0; k < 2; k++)
        sum += exp(term[k] - most);
    *log_p += most + log(sum);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < SIZE; i++)
            gradient[i] -= exp(term[k] - most) / sum * (theta[i] - at[k]);
    return EM_OK;
}
EMASS_PLUGIN({.name = "modes", .dim = SIZE, .log_density_gradient = density});
C
build() { # SIZE WEIGHT
    cc -std=c17 -shared -fPIC -I"$project/include" "-DSIZE=$1" "-DWEIGHT=$2" modes.c -o "modes$1.so" -lm
}
build 1 0.8 && build 4 0.3 || exit 1
for size in 1 4; do
    printf 'model: {name: modes, library: ./modes%s.so}\ntemper: {}\nrun: {chains: 4, draws: 1000}\n' $size >modes$size.yaml
done
printf 'model: {name: logistic, n: 400, intercept: false}\ntemper: {}\nrun: {chains: 3, draws: 60, warmup: 120}\noutput: {flush_every: 20, save_warmup: true}\n' >run.yaml
printf 'model: {name: eight_schools}\ntemper: {}\n' >schools.yaml
awk 'BEGIN { srand(2); print "x,y"; for (i = 0; i < 30; i++) { x = rand(); print x "," 1 + 2 * x + rand() - rand() } }' >t.csv
cat >linear.yaml <<'YAML'
model: {name: linear, data: t.csv, formula: y ~ x, sigma: 0.5,
        prior: {intercept: {normal: [0, 3]}, coefficients: {normal: [0, 3]}}}
temper: {}
run: {draws: 1000}
YAML

emass_on() { # RANKS ARGUMENT...
    limited mpirun -n "$1" "$emass" run "${@:2}" --quiet
}

# Four seeds each; the checks are in Monte Carlo standard errors over all of them.
truth() { # NAME.yaml WHAT...
    local seed files=()
    for seed in 1 2 3 4; do
        limited "$emass" run "$1" --seed "$seed" --overwrite --quiet --output "truth$seed.h5" || return 1
        files+=("truth$seed.h5")
    done
    python3 "$project/tests/run/tempering.py" "${@:2}" "${files[@]}"
}

same_on_ranks() { # SETTING...
    local n settings=()
    for setting in "$@"; do settings+=(--set "$setting"); done
    emass_on 1 run.yaml --overwrite --output one.h5 "${settings[@]}" || return 1
    for n in 2 3 4 8; do
        emass_on "$n" run.yaml --overwrite --output many.h5 "${settings[@]}" || return 1
        cmp one.h5 many.h5 || { echo "on $n ranks" && return 1; }
    done
}

same_on_shards() {
    local shards
    emass_on 1 run.yaml --overwrite --output one.h5 || return 1
    for shards in 2 3; do
        emass_on $((2 * shards)) run.yaml --overwrite --output many.h5 --set run.shards=$shards || return 1
        cmp one.h5 many.h5 || { echo "on $shards shards" && return 1; }
    done
}

# In the first and second halves of rounds, at their ends, and among the draws.
resumes() {
    local at ranks=1
    emass_on 2 run.yaml --overwrite --output one.h5 || return 1
    for at in 3 8 20 55 56 90 120 150; do
        rm -f cut.h5*
        stopped_at $at 2 run.yaml --output cut.h5 || return 1
        emass_on $ranks run.yaml --resume --output cut.h5 || return 1
        cmp one.h5 cut.h5 || { echo "after a stop at $at" && return 1; }
        ranks=$((ranks % 4 + 1))
    done
}

killed() {
    rm -f cut.h5*
    emass_on 1 run.yaml --overwrite --output one.h5 --set run.draws=3000 --set model.n=4000 || return 1
    limited mpirun -n 3 "$emass" run run.yaml --output "$scratch/cut.h5" --quiet --set run.draws=3000 \
        --set model.n=4000 --set output.checkpoint_every=0.1 >log 2>&1 &
    local job=$!
    wait_for cut.h5.checkpoint
    mapfile -t pids < <(ranks_of "$scratch/cut.h5")
    kill -KILL "${pids[0]}" 2>/dev/null
    wait "$job"
    while [ -n "$(ranks_of "$scratch/cut.h5")" ]; do sleep 0.1; done
    emass_on 2 run.yaml --resume --output cut.h5 --set run.draws=3000 --set model.n=4000 && cmp one.h5 cut.h5
}

extends() {
    emass_on 2 run.yaml --overwrite --output one.h5 --set run.draws=90 || return 1
    emass_on 1 run.yaml --overwrite --output cut.h5 || return 1
    emass_on 3 run.yaml --resume --output cut.h5 --set run.draws=90 || return 1
    "$emass" diff one.h5 cut.h5 --group posterior
}

refused() { # WORDS SETTING...
    local words=$1 settings=() status=0
    shift
    for setting in "$@"; do settings+=(--set "$setting"); done
    rm -f none.h5*
    limited "$emass" run run.yaml --quiet --output none.h5 "${settings[@]}" 2>why || status=$?
    cat why
    [ "$status" = 2 ] && [ "$(wc -l <why)" = 1 ] && grep -qF "$words" why && [ ! -e none.h5 ]
}

not_tempered_before() {
    local status=0
    sed '/^temper/d' run.yaml >plain.yaml
    rm -f cut.h5*
    stopped_at 50 2 plain.yaml --output cut.h5 || return 1
    limited "$emass" run run.yaml --quiet --output cut.h5 --resume 2>why || status=$?
    cat why
    [ "$status" = 2 ] && grep -q 'temper' why
}

says_evidence() {
    limited "$emass" run schools.yaml --overwrite --output s.h5 >out 2>/dev/null || return 1
    "$emass" summary s.h5 >again && grep -E '^log evidence -31\.[23][0-9] ' again && grep -E '^log evidence ' out
}

if python3 -c 'import h5py, numpy' 2>/dev/null; then
    check 'one dimension: weights and evidence of four seeds' truth modes1.yaml modes 0.8
    check 'four dimensions: weights and evidence of four seeds' truth modes4.yaml modes 0.3
    check 'a broken truth is seen' eval '! truth modes1.yaml modes 0.7'
    check 'the evidence of a normal regression, in closed form' truth linear.yaml linear t.csv
    check 'the evidence of eight schools, by quadrature' truth schools.yaml schools
else
    skip 'weights and evidence' 'python3 has no h5py'
fi
check 'the same bytes on 1, 2, 3, 4, 8 ranks' same_on_ranks
check 'one ladder on 1, 2, 3, 4, 8 ranks' same_on_ranks run.chains=1
check 'one leg of two rungs, NUTS' same_on_ranks temper.legs=1 temper.rungs=2 sampler.name=nuts
check 'rungs as given, more copies than ranks by an odd number' same_on_ranks temper.rungs=5 run.chains=5
check 'the same bytes on shards' same_on_shards
check 'a stop in every part of a round, and among the draws' resumes
if command -v pgrep >/dev/null; then
    check 'a rank that is killed' killed
else
    skip 'a rank that is killed' 'pgrep (procps) is not installed'
fi
check 'a finished run is extended' extends
check 'a run that was not tempered is not resumed as one' not_tempered_before
check 'a sampler of minibatches' refused 'does not move by an exact density' sampler.name=sghmc sampler.step_size=0.01
check 'a number of rungs' refused 'temper.rungs' temper.rungs=1
check 'a reference that is none' refused 'temper.reference' temper.reference=nowhere
check 'a prior that a model cannot draw from' refused 'temper.reference' 'model={name: gaussian, dim: 2}' temper.reference=prior
check 'run and summary say the evidence' says_evidence
finish
