#!/usr/bin/env bash
# Regressions through the whole program: the same bytes on 1 to 4 shards and ranks, log likelihoods
# and responses drawn anew included; what is refused leaves nothing behind.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

awk 'BEGIN {
    srand(1)
    print "y,x,z,days"
    for (i = 0; i < 3000; i++) {
        x = rand(); days = 1 + int(9 * rand()); mean = days * exp(0.5 * x)
        printf "%d,%.3f,%.3f,%d\n", mean * 2 * rand(), x, rand() - 0.5, days
    }
}' >counts.csv

run() { # OUT RANKS MODEL ARGUMENT...
    local out=$1 ranks=$2 model=$3
    shift 3
    cat >run.yaml <<YAML
model: {data: counts.csv, response: y, log_likelihood: true, posterior_predictive: true, $model}
sampler: {name: hmc, leapfrog_steps: 5, step_size: 0.01}
mass: {estimator: none}
run: {chains: 4, warmup: 5, draws: 15, seed: 3, init_radius: 0.1}
YAML
    limited mpirun -n "$ranks" --oversubscribe "$emass" run run.yaml --output "$out" --quiet "$@"
}

same() { # MODEL SHARDS...: on 1 rank and on so many shards
    local model=$1
    shift
    run one.h5 1 "$model" --overwrite || return 1
    for shards in "$@"; do
        run more.h5 "$shards" "$model" --overwrite --set run.shards="$shards" || return 1
        cmp one.h5 more.h5 || return 1
    done
}

check 'negative_binomial: the same bytes on 1 to 4 shards' \
    same 'name: negative_binomial, exposure: days' 2 3 4
check 'poisson: the same bytes on 1 and 2 shards' same 'name: poisson, exposure: days' 2
check 'student_t: the same bytes on 1 and 3 shards' \
    same 'name: linear, noise: student_t, sigma: unknown' 3
check 'an unknown sigma: the same bytes on 1 and 2 shards' same 'name: linear, sigma: unknown' 2
ranks() {
    run one.h5 1 'name: negative_binomial' --overwrite && run more.h5 3 'name: negative_binomial' --overwrite &&
        cmp one.h5 more.h5
}
check 'the same bytes on 1 and on 3 ranks' ranks

minibatches() {
    run batch.h5 2 'name: negative_binomial, exposure: days' --set sampler="{name: sghmc, minibatch: 50, step_size: 1e-5}" \
        --set run.shards=2
}
check 'minibatches on two shards' minibatches

refuses() { # TEXT MESSAGE
    printf '%b' "$1" >counts.csv
    refused "$2" run bad.h5 2 'name: poisson'
}
check 'a negative count' refuses 'y,x\n1,2\n-1,3\n' 'counts.csv:3: found response -1, expected a count'
check 'a fraction' refuses 'y,x\n1,2\n1.5,3\n' 'counts.csv:3: found response 1.5, expected a count'
check 'NaN' refuses 'y,x\n1,2\nnan,3\n' "counts.csv:3: found 'nan'"
finish
