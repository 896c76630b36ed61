#!/usr/bin/env bash
# What --resume makes of every state a run can be left in: time limits, signals, torn and altered
# checkpoints, other configs, finished runs, full disks.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# A run of a moment, and one long enough for what is to happen meanwhile.
cat >small.yaml <<'YAML'
model: {name: logistic, n: 100, intercept: false}
sampler: {name: hmc, leapfrog_steps: 5, adapt_every: 10}
run: {chains: 4, warmup: 60, draws: 120}
output: {keep_checkpoint: true, flush_every: 20, checkpoint_every: 0}
YAML
sed 's/n: 100,/n: 40000,/; s/draws: 120/draws: 400/; s/every: 0}/every: 0.1}/' small.yaml >long.yaml
config=long.yaml

emass_on() { # RANKS ARGUMENT...
    local n=$1
    shift
    limited mpirun -n "$n" "$emass" run "$config" --quiet "$@" 2>log
    local status=$?
    grep '^emass: ' log
    return "$status"
}

# Leaves cut.h5 with a checkpoint, and the one before it, in the middle of the draws.
cut_short() {
    rm -f cut.h5*
    ! EMASS_FAULT=model:1:700 emass_on 2 --output cut.h5 && [ -s cut.h5.checkpoint.previous ]
}

equals_reference() { cmp reference.h5 cut.h5; }
goes_on() { emass_on "$1" --output cut.h5 --resume && equals_reference; }

at_time_limit() {
    local status=0
    rm -f cut.h5*
    emass_on 2 --output cut.h5 --max-time 0 || status=$?
    [ "$status" = 75 ] && [ -s cut.h5.checkpoint ] && goes_on 3
}

# What a run took before a stop counts, unless its bytes are to be the same.
time_adds_up() (
    unset SOURCE_DATE_EPOCH
    rm -f cut.h5*
    ! emass_on 1 --output cut.h5 --set run.draws=4000 --max-time 3 && [ -s cut.h5.checkpoint ] || return 1
    emass_on 2 --output cut.h5 --resume --max-time 0 --set run.draws=4000
    iterations=$(sed -nE 's/.*stopped by the time limit after ([0-9]+) of.*/\1/p' log)
    emass_on 2 --output cut.h5 --resume --set run.draws=$((iterations + 100)) || return 1
    h5dump -a sampling_time cut.h5 | sed -nE 's/.*\(0\): ([0-9.]+).*/\1/p' >seconds
    cat seconds && awk '{ long = $1 >= 3 } END { exit !long }' seconds
)

# The launcher calls no status but 0 a success: 75 goes into a file instead, where it can.
status_in_a_file() {
    local status=0
    rm -f cut.h5* status
    EMASS_STATUS=status emass_on 2 --output cut.h5 --max-time 0 || return 1
    [ "$(cat status)" = 75 ] && ! grep -iE 'abort|non-zero|exit code' log && [ -s cut.h5.checkpoint ] || return 1
    EMASS_STATUS=nowhere/status emass_on 2 --output cut.h5 --resume --max-time 0 || status=$?
    [ "$status" = 75 ] && rm status && EMASS_STATUS=status goes_on 1 && [ "$(cat status)" = 0 ]
}

signalled() { # SIGNAL: one rank alone gets it; again if the run was done by then
    local status pid
    for _ in 1 2 3 4 5; do
        status=0
        rm -f cut.h5*
        emass_on 2 --output "$scratch/cut.h5" &
        pid=$!
        wait_for cut.h5.checkpoint
        kill "-$1" "$(ranks_of "$scratch/cut.h5" | tail -n 1)"
        wait "$pid" || status=$?
        [ "$status" = 0 ] || break
    done
    [ "$status" = 75 ] && goes_on 1
}

# While MPI starts: its components are loaded, and the config has yet to be read.
signalled_at_start() {
    local status=0 pid
    rm -f cut.h5*
    "$emass" run "$config" --quiet --output cut.h5 2>log &
    pid=$!
    until grep -q 'mca_pmix\|/ucx/lib' "/proc/$pid/maps" 2>/dev/null || ! kill -0 "$pid"; do :; done
    kill -TERM "$pid"
    wait "$pid" || status=$?
    cat log
    [ "$status" = 75 ] && goes_on 1
}

finished_is_left_alone() {
    local before
    before=$(md5sum reference.h5)
    emass_on 2 --output reference.h5 --resume | grep -q 'nothing to do' &&
        [ "$(md5sum reference.h5)" = "$before" ]
}

finished_of_another_config() {
    local status=0 said
    said=$(emass_on 2 --output reference.h5 --resume --set sampler.leapfrog_steps=6) || status=$?
    echo "$said"
    [ "$status" = 2 ] && grep -q 'sampler.leapfrog_steps differ' <<<"$said"
}

extended() {
    cp reference.h5 cut.h5
    emass_on 3 --output cut.h5 --resume --set run.draws=200 &&
        emass_on 2 --output longer.h5 --overwrite --set run.draws=200 && cmp longer.h5 cut.h5
}

other_config() {
    local status=0 said
    cut_short || return 1
    said=$(emass_on 2 --output cut.h5 --resume --seed 9 --set sampler.target_accept=0.9) || status=$?
    echo "$said"
    [ "$status" = 2 ] && grep -q 'sampler.target_accept, run.seed differ' <<<"$said" && goes_on 2
}

# A checkpoint cut at every 4 KiB: the one before it is used, or the run starts anew, saying why.
torn() {
    local bytes at said
    bytes=$(stat -c %s cut.h5.checkpoint) || return 1
    cp -r . ../"$(basename "$scratch")".copy
    for ((at = 0; at < bytes; at += 4096)); do
        cp ../"$(basename "$scratch")".copy/cut.h5* .
        truncate -s "$at" cut.h5.checkpoint
        [ $((at % 3)) = 0 ] && rm -f cut.h5.checkpoint.previous
        said=$(emass_on 2 --output cut.h5 --resume) || return 1
        [ -e cut.h5.checkpoint.previous ] || grep -q 'warning: starting anew: .*cut short' <<<"$said" || return 1
        equals_reference || return 1
    done
}

flip_bit() { # FILE BYTE
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059 # the format is the byte
    printf "\\$(printf %o $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

flipped() { # one bit, at places all over the file
    local bytes k at
    bytes=$(stat -c %s ../"$(basename "$scratch")".copy/cut.h5.checkpoint)
    for k in 1 2 3 4 5 6; do
        cp ../"$(basename "$scratch")".copy/cut.h5* .
        rm -f cut.h5.checkpoint.previous
        at=$((bytes * k / 7))
        flip_bit cut.h5.checkpoint "$at"
        emass_on 2 --output cut.h5 --resume | tee why || return 1
        grep -q 'warning: starting anew: .*altered' why && equals_reference || return 1
    done
}

without_output() { # the draws are gone: the checkpoint alone is of no use
    cut_short && rm cut.h5 && goes_on 2
}

fault() { # SITE: rank 1 fails there; all end, and what was valid stays so
    local status=0
    cut_short || return 1
    EMASS_FAULT=$1:1 emass_on 2 --output cut.h5 --resume >why || status=$?
    cat why
    [ "$status" != 0 ] && [ "$status" != 124 ] && grep -q '^emass: .*rank 1: ' why && goes_on 2
}

full_disk() {
    local status=0
    mkdir -p small && mount -t tmpfs -o size=120k tmpfs small || return 1
    emass_on 2 --output small/out.h5 >why || status=$?
    cat why
    umount small
    [ "$status" = 1 ] && grep -qi 'no space\|cannot' why
}

vanishing() {
    local status=0 pid
    mkdir -p gone
    emass_on 2 --output gone/out.h5 >why &
    pid=$!
    wait_for gone/out.h5.checkpoint
    rm -rf gone
    wait "$pid" || status=$?
    cat why
    [ "$status" = 1 ] && [ "$(grep -c '^emass: ' why)" = 1 ]
}

# Stopped at iterations of every phase of warmup and of sampling. What a phase leaves behind is in the checkpoint
# that the finished file holds.
stopped_in_every_phase() {
    local at
    for at in $(seq 74 74 600); do
        rm -f cut.h5*
        stopped_at "$at" 1 phases.yaml --output cut.h5 || { echo "no stop at $at" && return 1; }
        limited "$emass" run phases.yaml --output cut.h5 --resume --quiet || return 1
        cmp reference.h5 cut.h5 || { echo "after a stop at $at" && return 1; }
    done
}

cat >phases.yaml <<'YAML'
model: {name: logistic, n: 2000, intercept: false}
sampler: {name: hmc}
mass: {estimator: fisher, structure: dense}
run: {chains: 5, warmup: 300, draws: 300}
output: {flush_every: 20, save_warmup: true}
YAML
check 'the time before a stop counts' time_adds_up
check 'an undisturbed run of all phases' limited "$emass" run phases.yaml --output reference.h5 --quiet
check 'a stop in every phase of warmup and sampling' stopped_in_every_phase
rm reference.h5
check 'an undisturbed run' emass_on 2 --output reference.h5
check 'the time limit: status 75, then on 3 ranks' at_time_limit
check 'the same with the status in a file' status_in_a_file
for name in TERM INT USR1 USR2; do
    if command -v pgrep >/dev/null; then
        check "SIG$name to one rank" signalled $name
    else
        skip "SIG$name to one rank" 'pgrep (procps) is not installed'
    fi
done
check 'SIGTERM while MPI starts' signalled_at_start
check 'an output folder that vanishes' vanishing
config=small.yaml
check 'an undisturbed run of a moment' emass_on 2 --output reference.h5 --overwrite
check 'a finished run is left alone' finished_is_left_alone
check 'a finished run of another config is not' finished_of_another_config
check 'a finished run is extended' extended
check 'a checkpoint of another config names the keys' other_config
check 'cut short again' cut_short
check 'a checkpoint torn at every 4 KiB' torn
check 'a checkpoint with a flipped bit' flipped
rm -rf ../"$(basename "$scratch")".copy
check 'a checkpoint without its draws' without_output
for site in create write close open read; do
    check "a fault at checkpoint-$site" fault checkpoint-$site
done
if [ "$(id -u)" = 0 ] && mkdir -p probe && mount -t tmpfs tmpfs probe 2>/dev/null; then
    umount probe
    check 'a full disk' full_disk
else
    skip 'a full disk' 'tmpfs cannot be mounted'
fi
finish
