#!/usr/bin/env bash
# Runs that are killed at random moments, one rank or all of them, or signalled, and go on with --resume on
# another number of ranks, with the data on another number of shards, until they are done: the file is that
# of an undisturbed run, byte for byte.
# EMASS_CHAOS runs (5), from seed EMASS_CHAOS_SEED (1), of EMASS_CHAOS_ONLY (all), a word of its settings; with
# EMASS_CHAOS_KILLS at least until they were disturbed that often.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0
RANDOM=${EMASS_CHAOS_SEED:-1}

cat >run.yaml <<'YAML'
model: {name: logistic, n: 20000, intercept: false}
sampler: {name: hmc}
run: {chains: 5, warmup: 300, draws: 300}
output: {flush_every: 20, checkpoint_every: 0.2, save_warmup: true}
YAML
awk 'BEGIN { srand(4); for (i = 0; i < 1500; i++) { a = rand(); b = rand(); print a "," b "," a - b + rand() } }' >t.csv
cat >blocks.yaml <<'YAML'
model: {name: linear, data: t.csv, sigma: unknown}
sampler:
  - {block: beta, name: sghmc, minibatch: 100, step_size: 0.01, leapfrog_steps: 3}
  - {block: sigma, name: nuts, max_treedepth: 4}
run: {chains: 5, warmup: 300, draws: 900, minibatch_sums: by_parts}
output: {flush_every: 20, checkpoint_every: 0.2, save_warmup: true}
YAML
awk 'BEGIN { srand(5); for (d = 0; d < 900; d++) { m = 0; s = ""; for (v = 0; v < 300; v++) if (rand() < 0.1) { m++; s = s " " v ":" 1 + int(4 * rand()) } print m s } }' >t.ldac
cat >topics.yaml <<'YAML'
model: {name: lda, data: t.ldac, topics: 40, alpha: learned, beta: learned}
sampler: {name: lda_gibbs}
run: {chains: 3, warmup: 100, draws: 200}
output: {flush_every: 20, checkpoint_every: 0.2, save_warmup: true}
YAML
cat >tempered.yaml <<'YAML'
model: {name: logistic, n: 4000, intercept: false}
temper: {}
run: {chains: 3, warmup: 120, draws: 900}
output: {flush_every: 20, checkpoint_every: 0.2, save_warmup: true}
YAML
cat >modes.c <<'C'
#include <emass/plugin.h>
#include <math.h>
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    (void)given;
    *log_p += 8 * fabs(theta[0]) - theta[0] * theta[0] / 2 + log1p(exp(-16 * fabs(theta[0])));
    gradient[0] += 8 * tanh(8 * theta[0]) - theta[0];
    return EM_OK;
}
static const em_variable x = {.name = "x"};
EMASS_PLUGIN({.name = "modes", .n_parameter = 1, .parameter = &x, .log_density_gradient = density});
C
cc -O2 -std=c17 -shared -fPIC -I"$project/include" modes.c -o modes.so -lm || exit 1
cat >autotempered.yaml <<'YAML'
model: {name: modes, library: ./modes.so}
temper: auto
run: {chains: 4, warmup: 500, draws: 4000}
output: {flush_every: 20, checkpoint_every: 0.2, save_warmup: true}
YAML
settings=( # [CONFIG] SETTING...
    'mass.estimator=fisher mass.structure=dense'
    'sampler.leapfrog_steps=5 mass.estimator=momentum mass.s_count_rule=interval'
    'sampler.name=nuts'
    'sampler.leapfrog_steps=5 mass.estimator=gradient mass.share=none'
    'sampler.name=sgnphmc sampler.minibatch=900 run.minibatch_sums=by_parts mass.estimator=momentum
        sampler.learn_thermostat_mass=true'
    'stop.r_hat=1.05 stop.ess=100 stop.check_every=40'
    'sampler.leapfrog_steps=5 mass.estimator=momentum'
    'mass.estimator=variance mass.structure=diag'
    'run.thin=2 run.draws=150 sampler.leapfrog_steps=5 sampler.adapt_every=7'
    'sampler.name=sghmc sampler.step_size=1e-3 sampler.minibatch=900 run.minibatch_sums=by_parts
        mass.estimator=noise'
    'blocks.yaml'
    'topics.yaml'
    'tempered.yaml'
    'autotempered.yaml'
    'tempered.yaml run.chains=1 temper.legs=1 sampler.name=nuts'
)
mapfile -t settings < <(printf '%s\n' "${settings[@]}" | sed -z 's/\n  */ /g' | grep -F -- "${EMASS_CHAOS_ONLY:-}")

has_lock() {
    local pid
    for pid in $(ranks_of "$scratch/out.h5"); do
        readlink "/proc/$pid/fd/"* 2>/dev/null | grep -q 'out.h5.lock' && return
    done
    return 1
}

# At any moment of the time that an undisturbed run takes, from when the output is locked: over a rank
# that is killed while it connects, Open MPI's launcher itself may hang (4.1, in PMIx_server_finalize).
disturb() {
    local pids
    until has_lock || ! kill -0 "$job" 2>/dev/null; do sleep 0.02; done
    sleep "$((RANDOM % milliseconds))e-3"
    mapfile -t pids < <(ranks_of "$scratch/out.h5")
    [ ${#pids[@]} -gt 0 ] || return 0
    case $((RANDOM % 4)) in
    0) kill -KILL "${pids[RANDOM % ${#pids[@]}]}" ;;
    1) kill -KILL "${pids[@]}" ;;
    2) kill -TERM "${pids[RANDOM % ${#pids[@]}]}" ;;
    3) kill -USR1 "${pids[RANDOM % ${#pids[@]}]}" ;;
    esac 2>/dev/null
}

survives() { # SEED [CONFIG] SETTING...
    local options=(--set "run.seed=$1") config=run.yaml setting status=1 ranks shards try job
    local start=$EPOCHREALTIME milliseconds
    shift
    [[ $1 != *.yaml ]] || { config=$1 && shift; }
    for setting in "$@"; do options+=(--set "$setting"); done
    rm -f ./*.h5*
    limited mpirun -n 2 "$emass" run "$config" --output reference.h5 --quiet "${options[@]}" || return 1
    milliseconds=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000 + 1))
    for try in $(seq 40); do
        shards=$((1 + RANDOM % 3))
        ranks=$((shards * (1 + RANDOM % (4 / shards))))
        limited mpirun -n "$ranks" "$emass" run "$config" --output "$scratch/out.h5" --quiet --resume \
            "${options[@]}" --set "run.shards=$shards" >"log$try" 2>&1 &
        job=$! # before disturb starts processes of its own
        [ "$try" -ge 20 ] || disturb
        wait "$job" && status=0 && break
        grep '^emass: ' "log$try"
        while [ -n "$(ranks_of "$scratch/out.h5")" ]; do sleep 0.1; done
    done
    echo "ended after $try starts"
    disturbances=$((disturbances + try - 1))
    [ "$status" = 0 ] && h5diff reference.h5 out.h5 && cmp reference.h5 out.h5
}

command -v pgrep >/dev/null || { skip 'runs killed at random' 'pgrep (procps) is not installed' && finish; }
disturbances=0
for ((k = 1; k <= ${EMASS_CHAOS:-5} || disturbances < ${EMASS_CHAOS_KILLS:-0}; k++)); do
    # shellcheck disable=SC2086 # several settings
    check "run $k: ${settings[(k - 1) % ${#settings[@]}]}" survives $k \
        ${settings[(k - 1) % ${#settings[@]}]}
done
check "they were disturbed $disturbances times" test $disturbances -gt 0
finish
