#!/usr/bin/env bash
# Disks that refuse: full ones at several moments, files that may not grow, read-only ones. Each ends
# with status 1 and one line naming the file and the reason, the last valid checkpoint stays,
# and once there is room --resume gives the draws of an undisturbed run.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >run.yaml <<'YAML'
model: {name: logistic, n: 50, intercept: false}
sampler: {name: hmc, leapfrog_steps: 2}
run: {chains: 3, warmup: 50, draws: 2000}
output: {checkpoint_every: 0.1}
YAML
cat >large.yaml <<'YAML'
model: {name: gaussian, dim: 100}
sampler: {name: hmc, leapfrog_steps: 1}
mass: {structure: diag}
run: {chains: 3, warmup: 50, draws: 10000}
YAML

# On 1 rank without mpirun; what it says is kept in `why`.
emass_on() { # RANKS ARGUMENT...
    local n=$1 status=0
    shift
    if [ "$n" = 1 ]; then
        limited "$emass" run "$@" --quiet 2>why || status=$?
    else
        limited mpirun -n "$n" "$emass" run "$@" --quiet 2>why || status=$?
    fi
    grep '^emass: ' why
    return "$status"
}

expected=1
refuses() { # REASON RANKS ARGUMENT...: status `expected`, one line
    local reason=$1 status=0
    shift
    emass_on "$@" || status=$?
    echo "status $status"
    [ "$status" = "$expected" ] && [ "$(grep '^emass: ' why | grep -vc '^emass: warning: ')" = 1 ] &&
        grep -q "^emass: .*disk/out.h5.*: $reason" why
}

mount_disk() { # OPTIONS
    mkdir -p disk && mount -t tmpfs -o "$1" tmpfs disk
}

# Ends with the disk unmounted, whatever happened on it.
on_disk() { # OPTIONS COMMAND...
    local status=0
    mount_disk "$1" || return 1
    shift
    "$@" || status=$?
    umount disk
    return "$status"
}

checkpoint_is_kept() {
    [ ! -e disk/out.h5.checkpoint.new ] && { [ "$1" = none ] || [ -s disk/out.h5.checkpoint ]; }
}

goes_on() { # RANKS: with room
    mount -o remount,size=100m disk && emass_on "$1" run.yaml --output disk/out.h5 --resume &&
        cmp reference.h5 disk/out.h5
}

full() { # RANKS CHECKPOINT: none | some
    refuses 'No space left on device' "$1" run.yaml --output disk/out.h5 && cp why first &&
        checkpoint_is_kept "$2" && goes_on "$1"
}

enough() { # RANKS: room for the output once, where files share nothing
    emass_on "$1" "${few[@]}" --output disk/out.h5 && cmp few.h5 disk/out.h5
}

# A checkpoint, and then no room for the output to be made anew.
full_at_restart() { # RANKS
    local status=0
    emass_on "$1" run.yaml --output disk/out.h5 --max-time 0s || status=$?
    [ "$status" = 75 ] && cp disk/out.h5.checkpoint kept && mount -o remount,size="$2" disk &&
        refuses 'No space left on device' "$1" run.yaml --output disk/out.h5 --resume &&
        [ ! -e disk/out.h5 ] && cmp kept disk/out.h5.checkpoint && goes_on "$1"
}

# MPI, too, makes files; the limit is above theirs, and the output above the limit.
file_too_large() ( # RANKS
    mkdir -p disk && rm -f disk/*
    ulimit -f $((20 * 1024))
    refuses 'File too large' "$1" large.yaml --output disk/out.h5 && [ ! -e disk/out.h5 ]
)

read_only() { # RANKS
    expected=2 refuses 'Read-only file system' "$1" run.yaml --output disk/out.h5
}

read_only_restart() { # RANKS
    local status=0
    emass_on "$1" run.yaml --output disk/out.h5 --max-time 0s || status=$?
    [ "$status" = 75 ] && mount -o remount,ro disk &&
        expected=2 refuses 'cannot be written.*Read-only file system' "$1" run.yaml --output disk/out.h5 --resume &&
        mount -o remount,rw disk && goes_on "$1"
}

# No room for a corpus of 700 kB, at any moment: HDF5 crashes at the end of a program whose file it
# could not complete.
no_corpus() {
    local status=0
    limited "$emass" convert words.txt disk/out.h5 --format text 2>why || status=$?
    cat why
    [ "$status" = 1 ] && [ "$(wc -l <why)" = 1 ] && grep -q '^emass: .*disk/out.h5.*No space left on device' why &&
        [ -z "$(ls disk)" ]
}

check 'an undisturbed run' emass_on 3 run.yaml --output reference.h5
few=(large.yaml --set run.draws=3000)
check 'a larger one' emass_on 2 "${few[@]}" --output few.h5
out=$(stat -c %s reference.h5) kib=1024
awk 'BEGIN { for (d = 0; d < 1500; d++) for (i = 0; i < 40; i++) printf "w%dx%s", (7 * d + 13 * i) % 997, i < 39 ? " " : "\n" }' >words.txt
for size in 8 100 400; do
    if mount_disk size=1m 2>/dev/null; then
        umount disk
        check "a corpus on a disk of $size kB" on_disk size="${size}k" no_corpus
    else
        skip "a corpus on a disk of $size kB" 'tmpfs cannot be mounted'
    fi
done
for n in 1 3; do
    check "$n ranks: an output that reaches the limit on file sizes" file_too_large "$n"
    if ! mount_disk size=1m 2>/dev/null; then
        skip "$n ranks: disks that refuse" 'tmpfs cannot be mounted'
        continue
    fi
    umount disk
    check "$n ranks: no room at all" on_disk size=8k full "$n" none
    check "$n ranks: no room for the draws" on_disk size=$((out / 2)) full "$n" none
    check "$n ranks: no room for a checkpoint" on_disk size=$((out + 70 * kib)) full "$n" none
    check "$n ranks: room for a third more" on_disk size=$(($(stat -c %s few.h5) * 13 / 10)) enough "$n"
    check "$n ranks: no room at the restart" on_disk size=10m full_at_restart "$n" $((out + 200 * kib))
    check "$n ranks: a read-only disk" on_disk ro read_only "$n"
    check "$n ranks: a read-only disk at the restart" on_disk size=10m read_only_restart "$n"
done
finish
