#!/usr/bin/env bash
# Every program of posteriordb: the same bytes on 1, 2, 3, 4 and 8 ranks, and when all ranks are killed
# on the way and others go on.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/../run/lib.sh"
base=${EMASS_DATA:-}/posteriordb
if ! find_stanli || [ ! -d "$base" ]; then
    skip 'posteriordb' 'no EMASS_DATA, or no libstanli.so (make analysis/venv/ready)'
    finish
fi
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0
cat >run.yaml <<'YAML'
model: {name: stan, program: "${PROGRAM}.stan", data: "${PROGRAM}.json"}
sampler: {name: hmc}
run: {chains: 8, warmup: 100, draws: 200}
output: {flush_every: 20, checkpoint_every: 0.05}
YAML

sample() { # RANKS OUT ARGUMENT...
    limited mpirun -n "$1" "$emass" run run.yaml --output "$2" --quiet "${@:3}"
}

same_on_any_ranks() {
    local ranks
    rm -f ./*.h5*
    sample 1 1.h5 || return 1
    for ranks in 2 3 4 8; do
        sample "$ranks" "$ranks.h5" && cmp 1.h5 "$ranks.h5" || return 1
    done
}

# The ranks are the children of mpirun, which is the child of timeout.
killed_and_resumed() {
    local pid
    sample 2 cut.h5 2>/dev/null &
    pid=$!
    until [ -s cut.h5.checkpoint ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
    for mpirun in $(pgrep -f "^mpirun -n 2 $emass run run.yaml --output cut.h5"); do
        pkill -9 -P "$mpirun"
    done
    wait "$pid"
    sample 3 cut.h5 --resume && cmp 1.h5 cut.h5
}

for program in "$base"/*.stan; do
    export PROGRAM=${program%.stan}
    check "$(basename "$PROGRAM"): the same bytes on 1, 2, 3, 4 and 8 ranks" same_on_any_ranks
    check "$(basename "$PROGRAM"): killed and resumed" killed_and_resumed
done
finish
