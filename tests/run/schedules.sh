#!/usr/bin/env bash
# Step sizes by a schedule and minibatches by epoch: what is recorded, the same file on any number of ranks and shards,
# and when a run is cut in the middle of an epoch; and what is refused.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# 300 rows in minibatches of 7 are 43 to an epoch, the last one of 6 rows.
cat >run.yaml <<'YAML'
model: {name: logistic, n: 300, intercept: false}
sampler: {name: sghmc, step_size: 0.02, minibatch: 7, minibatch_order: epoch, leapfrog_steps: 3, halve_at: [1, 2.5]}
mass: {estimator: none}
run: {chains: 3, warmup: 10, draws: 90, minibatch_sums: by_parts}
output: {checkpoint_every: 0}
YAML

# Step 3 t is the first of iteration t: epoch 1 begins with step 43, epoch 2.5 with 107.5.
expected_steps() {
    awk 'BEGIN { for (t = 10; t < 100; t++) print 0.02 * (3 * t < 43 ? 1 : 3 * t < 107.5 ? 0.5 : 0.25) }'
}
recorded_steps() { # FILE: of the first chain
    h5dump -d /sample_stats/step_size -s 0,0 -c 1,90 -y -w 1 -m %.9g "$1" |
        tr -d ' ,' | grep -E '^[0-9.e-]+$'
}

halves() {
    run_with 1 whole.h5 && recorded_steps whole.h5 >found.txt && expected_steps >expected.txt &&
        diff expected.txt found.txt
}
decays() {
    run_with 1 decay.h5 sampler.halve_at='[]' sampler.decay_power=0.6 sampler.decay_scale=20 &&
        recorded_steps decay.h5 >found.txt &&
        awk '{ d = $1 / (0.02 * (1 + (NR + 9) / 20) ^ -0.6) - 1; if (d > 1e-8 || d < -1e-8) exit 1 } END { exit NR != 90 }' found.txt
}
same_on() { # RANKS SETTING...
    rm -f other.h5*
    run_with "$1" other.h5 "${@:2}" && cmp whole.h5 other.h5
}
# After 59 iterations 177 steps are done: 5 in the fifth epoch.
in_mid_epoch() {
    rm -f cut.h5*
    run_with 2 cut.h5 run.draws=49 && run_with 1 cut.h5 && cmp whole.h5 cut.h5
}
# A long run is told to stop when it has left a checkpoint, wherever that is; again if it was done by then.
by_signal() {
    local status pid
    local long=(run.draws=10000 run.thin=10)
    run_with 1 long.h5 "${long[@]}" || return 1
    for _ in 1 2 3 4 5; do
        status=0
        rm -f cut.h5*
        run_with 2 "$scratch/cut.h5" "${long[@]}" &
        pid=$!
        wait_for cut.h5.checkpoint
        kill -TERM "$(ranks_of "$scratch/cut.h5" | tail -n 1)"
        wait "$pid" || status=$?
        [ "$status" = 0 ] || break
    done
    [ "$status" = 75 ] && run_with 1 cut.h5 "${long[@]}" && cmp long.h5 cut.h5
}

# A model without observations has no epochs: its gradients are exact.
nothing_to_choose() {
    sed 's/^model:.*/model: {name: gaussian}/' run.yaml >bare.yaml
    limited "$emass" run bare.yaml --quiet --output bare.h5
}

check 'halved at epochs' halves
check 'polynomial decay' decays
check '3 ranks' same_on 3
check '2 shards' same_on 2 run.shards=2
check '3 shards' same_on 3 run.shards=3
check 'epochs of nothing' nothing_to_choose
check 'resumed in mid-epoch' in_mid_epoch
check 'resumed where a signal came' by_signal

check 'epochs that do not increase' run_is_refused 'sampler.halve_at: found 20 after 20, expected epochs that increase' \
    --set sampler.halve_at='[20, 20]'
check 'an epoch before the first' run_is_refused 'sampler.halve_at: found ' --set sampler.halve_at='[-1]'
check 'no number' run_is_refused 'sampler.halve_at: found ' --set sampler.halve_at='[ten]'
check 'a power above 1' run_is_refused 'sampler.decay_power: found ' --set sampler.decay_power=2
check 'no scale' run_is_refused 'sampler.decay_scale: found ' --set sampler.decay_scale=0
check 'another order' run_is_refused 'sampler.minibatch_order: found ' --set sampler.minibatch_order=sorted
check 'an epoch of all' run_is_refused 'sampler.minibatch_order: found epoch without minibatch' --set sampler.minibatch=all
check 'an epoch with replacement' run_is_refused 'sampler.minibatch_order: found epoch with replacement: true' \
    --set sampler.replacement=true
check 'sghmc_naive by epoch' run_is_refused 'sampler.minibatch_order: found epoch, expected drawn' --set sampler.name=sghmc_naive
check 'a step that is learned' run_is_refused 'step_size: found adapt' --set sampler.step_size=adapt
check 'a kernel that learns its step' run_is_refused 'is not an option of hmc' --set sampler.name=hmc
finish
