#!/usr/bin/env bash
# One output, one run: a second one names who holds it and touches nothing, whatever its mode, from this
# host or another; the hold dies with its owner and never with anything else.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >run.yaml <<'YAML'
model: {name: logistic, n: 8000, intercept: false}
sampler: {name: hmc, leapfrog_steps: 5}
run: {chains: 4, warmup: 300, draws: 600}
output: {file: o.h5, flush_every: 20, checkpoint_every: 0.1}
YAML
own=() # what starts a run as if on another host, where that may be done

emass_on() { # RANKS ARGUMENT...
    local n=$1
    shift
    limited mpirun -n "$n" "$emass" run run.yaml --quiet "$@"
}

signal() { # to the ranks of the run in the background
    pkill "-$1" -f "^$emass run run.yaml --output $scratch/o.h5"
}

# A run in the background, in `first`, that has a checkpoint, held in the middle: again if it was done
# by then.
start() { # RANKS ARGUMENT...
    for _ in 1 2 3 4 5; do
        rm -f o.h5*
        limited "${own[@]}" mpirun -n "$1" "$emass" run run.yaml --output "$scratch/o.h5" --quiet "${@:2}" >first.log 2>&1 &
        first=$!
        wait_for o.h5.checkpoint && signal STOP && [ -e o.h5.lock ] && return
        end KILL
    done
    return 1
}

end() { # it, by a signal
    signal "$1"
    signal CONT
    wait "$first"
}

held() { # RANKS ARGUMENT...: is refused soon, in one line
    local status=0
    emass_on "$@" 2>err >out || status=$?
    cat err
    [ "$status" = 2 ] && [ "$(grep '^emass: ' err | grep -vc 'waiting up to')" = 1 ] &&
        grep -qE "^emass: .*o.h5 is in use by a run on .*, process [0-9]+.*, since 20.*o.h5.lock" err
}

second_is_refused() {
    local mode
    start 2 || return 1
    for mode in --resume --overwrite ''; do
        held 2 ${mode:+"$mode"} || return 1
    done
    ln -sf o.h5 link.h5
    held 1 --output link.h5 --overwrite || return 1
    "$emass" summary o.h5 >out 2>err || grep -q 'has no draws' err || return 1
    end TERM
    cat first.log
    [ ! -e o.h5.lock ] && emass_on 2 --resume && [ ! -e o.h5.lock ] && cmp reference.h5 o.h5
}

three_at_once() { # one of them wins
    local k statuses=() pids=()
    rm -f o.h5*
    for k in 1 2 3; do
        limited mpirun -n 2 "$emass" run run.yaml --quiet --overwrite >/dev/null 2>"log$k" &
        pids+=($!)
    done
    for k in 0 1 2; do
        wait "${pids[k]}"
        statuses+=($?)
    done
    cat log?
    echo "statuses ${statuses[*]}"
    [[ " ${statuses[*]} " = *' 0 '* && ! " ${statuses[*]} " = *' 1 '* ]] && cmp reference.h5 o.h5 && [ ! -e o.h5.lock ]
}

killed() { # the first dies; the next one goes on at once
    local since
    start 2 || return 1
    end KILL
    [ -e o.h5.lock ] || return 1
    since=$SECONDS
    emass_on 3 --resume || return 1
    echo "after $((SECONDS - since)) s"
    cmp reference.h5 o.h5 && [ ! -e o.h5.lock ]
}

# What a run on another host leaves, whose locks this one may not see.
foreign() { # FILE BEAT
    printf 'emass lock\nheld 1\nbeat %d\nmade 0\npid 77\nhost elsewhere\nboot 0-0\nsince 2026-01-01T00:00:00Z\njob 5\n' "$2" >"$1.new"
    mv "$1.new" "$1"
}

foreign_and_dead() {
    rm -f o.h5*
    foreign o.h5.lock 7
    emass_on 2 2>err || return 1
    cat err
    grep -q 'names a run on elsewhere, process 77, since 2026-01-01T00:00:00Z: waiting' err && cmp reference.h5 o.h5
}

foreign_and_alive() {
    local status=0 beat job
    rm -f o.h5*
    foreign o.h5.lock 7
    for beat in $(seq 8 90); do sleep 1 && foreign o.h5.lock "$beat"; done &
    job=$!
    emass_on 2 --overwrite 2>err || status=$?
    kill "$job"
    wait "$job"
    cat err
    [ "$status" = 2 ] && grep -q 'in use by a run on elsewhere, process 77, job 5, since' err && [ ! -e o.h5 ]
}

without_locks() { # of the system: the record decides
    local status=0
    rm -f o.h5*
    EMASS_FAULT=lock-refused:0 emass_on 2 && cmp reference.h5 o.h5 && [ ! -e o.h5.lock ] || return 1
    EMASS_FAULT=lock-refused:0 start 1 --set run.draws=1000000 || return 1
    signal CONT # only who lives shows a sign of it
    EMASS_FAULT=lock-refused:0 held 2 --overwrite || status=1
    end KILL
    [ "$status" = 0 ] && EMASS_FAULT=lock-refused:0 emass_on 2 --overwrite 2>err && cmp reference.h5 o.h5
}

taken_from_it() { # by one that saw no sign of life: nothing more is written
    local status=0
    start 2 || return 1
    foreign o.h5.lock 7
    signal CONT
    wait "$first" || status=$?
    cat first.log
    rm o.h5.lock
    [ "$status" = 1 ] && grep -q 'taken by a run on elsewhere, process 77' first.log && emass_on 2 --resume && cmp reference.h5 o.h5
}

no_lock_of_ours() {
    local status=0
    rm -f o.h5*
    echo mine >o.h5.lock
    emass_on 1 2>err || status=$?
    cat err
    [ "$status" = 2 ] && [ "$(cat o.h5.lock)" = mine ] && [ ! -e o.h5 ]
}

command -v pkill >/dev/null || { skip 'two runs at once' 'pkill (procps) is not installed' && finish; }
check 'an undisturbed run' emass_on 2 --output reference.h5
check 'a second run is refused' second_is_refused
check 'three at once: one wins' three_at_once
check 'a killed owner holds nothing' killed
check 'a file that is no lock' no_lock_of_ours
check 'a lock of another host, whose owner is dead' foreign_and_dead
check 'a lock of another host, whose owner lives' foreign_and_alive
check 'a file system without locks' without_locks
check 'a run that was taken for dead' taken_from_it
if unshare --net --uts true 2>/dev/null; then
    own=(unshare --net --uts sh -c 'hostname another && ip link set lo up 2>/dev/null; exec "$@"' sh)
    check 'two hosts: a second run is refused' second_is_refused
    check 'two hosts: a killed owner holds nothing' killed
else
    skip 'two hosts' 'no network namespaces'
fi
finish
