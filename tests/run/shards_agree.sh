#!/usr/bin/env bash
# What must be the same on several ranks is compared: the data that they read, and with shards the
# positions of a chain. A model that fails on one shard does not leave the others waiting.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

awk 'BEGIN { srand(1); for (i = 0; i < 200; i++) print rand(), rand(), i % 2 }' >data.csv
head -n 150 data.csv >stale.csv
cat >run.yaml <<'YAML'
model: {name: logistic, data: "${COPY}", header: no}
sampler: {name: sgld, minibatch: 20, step_size: 0.001}
run: {chains: 3, shards: 2, warmup: 20, draws: 40}
output: {file: run.h5}
YAML

ends() { # STATUS PATTERN COMMAND...: with that status, soon, and one line of emass
    local expected=$1 pattern=$2 status=0
    shift 2
    limited "$@" >log 2>&1 || status=$?
    cat log
    [ "$status" = "$expected" ] && [ "$(grep -c '^emass: ' log)" = 1 ] &&
        grep -q "^emass: rank $pattern" log
}

# Ranks of a job whose nodes have copies of their own.
copies() { # COMMAND OF THE FIRST RANK'S COPY, OF THE SECOND'S, OPTIONS...
    local one=$1 two=$2
    shift 2
    mpirun -n 1 env COPY="$one" "$emass" "$@" : -n 1 env COPY="$two" "$emass" "$@"
}
export -f copies
export emass

stale() { ends 2 '1: .*stale.csv: found a file that differs from that of rank 0 (rank 1): [0-9]* bytes' \
    bash -c 'copies data.csv stale.csv "$@"' copies "$@"; }

check 'run: a rank with a stale copy of the data' stale run run.yaml --quiet
check 'nothing was written' test ! -e run.h5
check 'chains on ranks of their own' stale run run.yaml --quiet --set run.shards=1
check 'check' stale check run.yaml
export COPY=data.csv
check 'the same data' limited mpirun -n 2 "$emass" run run.yaml --quiet
check 'a model that fails on one shard' ends 1 '1: model logistic failed' \
    env EMASS_FAULT=model:1:100 mpirun -n 2 "$emass" run run.yaml --quiet --overwrite
check 'a chain that strays on one shard, at the checkpoint' \
    ends 1 '1: chain 0 has another position here than on rank 0 of its group, after 60' \
    env EMASS_FAULT=position:1 mpirun -n 2 "$emass" run run.yaml --quiet --overwrite
check 'the second chain of the second group' \
    ends 1 '3: chain 2 has another position here than on rank 2 of its group, after 60 .*(rank 3)' \
    env EMASS_FAULT=position:3 mpirun -n 4 "$emass" run run.yaml --quiet --overwrite
check 'runs again' limited mpirun -n 2 "$emass" run run.yaml --quiet --overwrite
check 'verify compares at every adaptation update' \
    ends 1 '1: chain 0 has another position here than on rank 0 of its group, after [1-5][0-9]\? ' \
    env EMASS_FAULT=position:1 mpirun -n 2 "$emass" verify run.h5 --draws 40
check 'verify on the same shards' limited mpirun -n 2 "$emass" verify run.h5 --draws 40
finish
