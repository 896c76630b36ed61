#!/usr/bin/env bash
# One rank fails, at every site where it can: all ranks end soon, the exit status is not 0, one line
# names the rank, and --resume then gives the draws of an undisturbed run.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

awk 'BEGIN { srand(1); for (i = 0; i < 100; i++) print rand(), rand(), i % 2 }' >data.csv
cat >run.yaml <<'YAML'
model: {name: logistic, data: data.csv, header: no}
sampler: {name: hmc, leapfrog_steps: 3, step_size: 0.2, adapt_every: 10}
run: {chains: 3, warmup: 40, draws: 60}
output: {flush_every: 20, checkpoint_every: 0}
YAML

fails() { # SITE:RANK[:N] ARGUMENT...
    local fault=$1 rank status=0
    rank=$(cut -d: -f2 <<<"$1")
    shift
    EMASS_FAULT=$fault limited mpirun -n 2 "$emass" run run.yaml --quiet --output out.h5 "$@" \
        >log 2>&1 || status=$?
    cat log
    { [ "$status" = 1 ] || [[ $status = 2 && $fault =~ ^(config|data) ]]; } &&
        [ "$(grep -c '^emass: ' log)" = 1 ] &&
        grep -q "^emass: rank $rank: " log
}

# Whatever is left is complete, or can be gone on from; a file is complete only if it is whole.
recovers() { # ARGUMENT...
    ! complete out.h5 || cmp "$reference" out.h5 || return 1
    limited "$emass" run run.yaml --quiet --output out.h5 --resume "$@" && cmp "$reference" out.h5
}

complete() { # FILE: `emass summary` finds nothing missing
    local said
    [ -e "$1" ] && said=$("$emass" summary "$1" 2>&1) && ! grep -q '^Incomplete' <<<"$said"
}

fresh() { # FAULT ARGUMENT...
    rm -f out.h5*
    fails "$@" && recovers "${@:2}"
}

restarted() { # FAULT: from the last checkpoint, when all draws are to be restored
    rm -f out.h5*
    cp almost.h5 out.h5 && cp almost.h5.checkpoint out.h5.checkpoint
    fails "$1" --resume && [ -s out.h5.checkpoint ] && recovers
}

# A rank that is out of memory tells the others at once: it need not abort them, and they do not
# meet it at another place.
agrees() { # RUN.yaml PASSAGE...
    local n
    for n in "${@:2}"; do
        rm -f out.h5*
        EMASS_FAULT=allocate:1:$n limited mpirun -n 2 "$emass" run "$1" --quiet --output out.h5 >log 2>&1
        if [ $? != 1 ] || [ "$(grep -c '^emass: ' log)" != 1 ] ||
            ! grep -q '^emass: rank 1: out of memory' log || grep -qE 'MPI_ABORT|Abort\(' log; then
            echo "allocation $n:"
            cat log
            return 1
        fi
    done
}

# Of a launcher that lets the others go on, as srun with MPICH: they end by themselves.
loses_a_rank() {
    local pid status=0
    rm -f out.h5*
    EMASS_FAULT=launcher:0 limited mpirun --enable-recovery -n 2 "$emass" run run.yaml --quiet \
        --output "$scratch/out.h5" --set run.draws=2000000 >log 2>&1 &
    pid=$!
    wait_for out.h5.checkpoint
    ranks_of "$scratch/out.h5" | tail -n 1 | xargs kill -9
    wait "$pid" || status=$?
    cat log
    [ "$status" != 124 ] && grep -q '^emass: rank [01] was lost: ' log && ! ranks_of "$scratch/out.h5" | grep .
}

almost_done() {
    rm -f out.h5*
    fails file-journal:0 && mv out.h5 almost.h5 && mv out.h5.checkpoint almost.h5.checkpoint
}

reference=reference.h5
check 'without a fault it runs' \
    limited mpirun -n 2 "$emass" run run.yaml --quiet --output reference.h5
for fault in config:1 data:1 allocate:1:5 allocate:0:60 allocate:1:300 \
    model:1:100 hdf5-create:1:7 hdf5-attribute:1:20 hdf5-array:1:3 hdf5-fill:1:2 \
    hdf5-write:1:4 hdf5-flush:1:4 hdf5-close:1 hdf5-open:0 hdf5-open:0:2 \
    checkpoint-create:1 checkpoint-write:1:5 checkpoint-close:1 checkpoint-trailer:0:2 \
    file-rename:0:2 file-journal:0 file-remove:0:9 file-create:0 lock-create:0 lock-write:0 lock-write:0:2; do
    check "EMASS_FAULT=$fault" within 10 fresh "$fault"
done
if "$emass" --version | grep -q 'Open MPI'; then
    check 'a rank is lost, and the launcher lets the other go on' loses_a_rank
fi
check 'a run that is interrupted before it finishes its file' almost_done
for fault in file-create:0 lock-write:0 allocate:1:150 hdf5-open:0 hdf5-read:1 checkpoint-open:1 checkpoint-read:1:4 \
    file-rename:0 file-remove:0; do
    check "a restart with EMASS_FAULT=$fault" within 10 restarted "$fault"
done
cat >tempered.yaml <<'YAML'
model: {name: logistic, data: data.csv, header: no}
sampler: {name: hmc, leapfrog_steps: 3, step_size: 0.2}
temper: {}
run: {chains: 2, warmup: 50, draws: 20}
YAML
cat >metric.yaml <<'YAML'
model: {name: logistic, data: data.csv, header: no}
sampler: {name: sgrld, metric: fisher, step_size: 0.02}
mass: {estimator: none}
run: {chains: 2, warmup: 10, draws: 10, shards: 2}
YAML
# The passages at which the posterior and the metric are created, and some about them.
check 'a rank without memory for its posterior, with temper' agrees tempered.yaml {649..658..2}
check 'a shard without memory for a metric' agrees metric.yaml {733..741} {833..837}
reference=early.h5
early=(--set stop.r_hat=100 --set stop.ess=1 --set stop.check_every=20 --set stop.consecutive=1)
check 'a run that ends early' \
    limited mpirun -n 2 "$emass" run run.yaml --quiet --output early.h5 "${early[@]}"
check 'EMASS_FAULT=hdf5-resize:0' within 10 fresh hdf5-resize:0 "${early[@]}"
finish
