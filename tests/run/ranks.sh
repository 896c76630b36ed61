#!/usr/bin/env bash
# `--ranks N`: emass starts its ranks itself, as root too and on fewer cores; statuses come out as
# they are, and signals reach the ranks, which then leave a checkpoint.
# shellcheck disable=SC2317 # functions are called by `check`
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

cd "$scratch" || exit
unset "${!OMPI_@}" # what tests/check sets for mpirun, a new user has not set
printf 'model: {name: gaussian}\nsampler: {leapfrog_steps: 3}\nrun: {warmup: 20, draws: 20}\n' >g.yaml
long=(run g.yaml --set run.draws=100000 --set sampler.leapfrog_steps=1000 --progress none --quiet)

runs_on() { # RANKS
    limited "$emass" run --ranks "$1" g.yaml --output "$1.h5" --progress none >out 2>err || return 1
    cat err
    [ ! -s err ] && grep '^\(not \)\?converged:' out && "$emass" summary "$1.h5" --csv | cmp - <("$emass" summary 1.h5 --csv)
}

# Open MPI binds rank 0 to core 0, also where emass may only use another one.
# shellcheck disable=SC2016 # for the scripts
stays_on_one_core() {
    local last
    last=$(taskset -cp $$ | grep -oE '[0-9]+$')
    printf '#!/bin/sh\ngrep Cpus_allowed_list /proc/self/status >>cores\nexec "$@"\n' >tell
    printf '#!/bin/sh\nn=$2\nshift 2\nexec mpirun -n "$n" "$PWD/tell" "$@"\n' >launch
    chmod +x tell launch
    EMASS_LAUNCHER=$PWD/launch limited env -u HWLOC_SYNTHETIC taskset -c "$last" \
        "$emass" run --ranks 2 g.yaml --output core.h5 --quiet || return 1
    cat cores
    [ "$(wc -l <cores)" = 2 ] && [ "$(sort -u cores | tr -d '[:blank:]')" = "Cpus_allowed_list:$last" ]
}

is_refused() { # STATUS WHAT ARGUMENT...: in one line, and no file is written
    local status=$1 what=$2 before
    shift 2
    before=$(ls)
    limited "$emass" "$@" >refused.out 2>refused.err
    local got=$?
    cat refused.err
    [ "$got" = "$status" ] && [ ! -s refused.out ] && [ "$(messages refused.err | wc -l)" = 1 ] &&
        grep -F -- "$what" refused.err || return 1
    rm refused.out refused.err
    [ "$(ls)" = "$before" ]
}

# A launcher that has something to say of every rank with another status than 0, as Open MPI 5's.
# shellcheck disable=SC2016 # for the script
printf '#!/bin/sh\nmpirun "$@" && exit\nstatus=$?\necho "detected that processes exited with $status" >&2\nexit $status\n' >tells
chmod +x tells

is_told_once() { # STATUS WHAT ARGUMENT...: the launcher tells nothing
    local status=$1 what=$2
    shift 2
    mkdir -p left
    TMPDIR=$PWD/left EMASS_LAUNCHER=$PWD/tells limited "$emass" "$@" >told.out 2>told.err
    local got=$?
    cat told.err
    [ "$got" = "$status" ] && [ "$(messages told.err | wc -l)" = 1 ] && grep -F -- "$what" told.err &&
        ! compgen -G 'left/emass-status-*'
}

plans() { # RANKS
    limited "$emass" check --ranks "$1" g.yaml >plan 2>err || return 1
    cat err plan
    [ ! -s err ] && [ "$(grep -c '^# rank [0-9]' plan)" = "$1" ]
}

# A checkpoint can be written once there is an output.
stops_on() { # SIGNAL NAME: sent to the one process that the user knows
    timeout -k 10 "$EMASS_LIMIT" "$emass" "${long[@]}" --ranks 3 --output "$scratch/$2.h5" >"$2.out" 2>"$2.err" &
    local pid=$! child
    wait_for "$2.h5" "$pid" || {
        cat "$2.out" "$2.err"
        return 1
    }
    child=$(pgrep -P "$pid")
    kill -"$1" "$child"
    wait "$pid"
    local status=$?
    echo "status $status"
    cat "$2.err"
    [ "$status" = 75 ] && [ "$(messages "$2.err" | wc -l)" = 1 ] && grep 'stopped by a signal' "$2.err" &&
        [ -s "$2.h5.checkpoint" ] && ! pgrep -f "$scratch.*$2.h5"
}

goes_on() { # and is stopped by its time limit
    limited "$emass" "${long[@]}" --ranks 2 --output term.h5 --resume --max-time 1s 2>err
    local status=$?
    cat err
    [ "$status" = 75 ] && grep 'stopped by the time limit' err
}

# Ctrl-C reaches every process of the terminal's foreground group.
stops_on_the_terminal() {
    python3 - "$emass" "${long[@]}" --ranks 3 --output tty.h5 <<'END'
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
deadline = time.time() + int(os.environ["EMASS_LIMIT"])
while not (os.path.exists("tty.h5") and os.path.getsize("tty.h5")) and time.time() < deadline:
    time.sleep(0.1)
os.write(terminal, b"\x03")
text = b""
try:
    while piece := os.read(terminal, 4096):
        text += piece
except OSError:
    pass
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(status, text.decode())
sys.exit(status != 75 or not os.path.exists("tty.h5.checkpoint"))
END
}

dies_with_its_user() { # killed, it takes its ranks along
    mkdir -p left
    TMPDIR=$PWD/left timeout -k 10 "$EMASS_LIMIT" "$emass" "${long[@]}" --ranks 3 --output "$scratch/killed.h5" >/dev/null 2>&1 &
    local pid=$!
    wait_for killed.h5 "$pid" || return 1
    kill -KILL "$(pgrep -P "$pid")"
    wait "$pid"
    for _ in $(seq $((10 * EMASS_LIMIT))); do
        pgrep -f "output $scratch/killed.h5" >/dev/null || break
        sleep 0.1
    done
    ! pgrep -f "output $scratch/killed.h5" && ! compgen -G 'left/emass-status-*'
}

# A front end that is killed: the process that it started, alone or with ranks, stops with a checkpoint if it was
# told who its parent is, and otherwise goes on.
outlives() { # NAME RANKS PARENT
    # shellcheck disable=SC2016 # for the inner shell
    EMASS_PARENT=$3 sh -c '[ -z "$EMASS_PARENT" ] || EMASS_PARENT=$$
        name=$1 && shift; "$@" 2>$name.err & echo $! >$name.pid; wait' \
        sh "$1" "$emass" "${long[@]}" --ranks "$2" --output "$1.h5" &
    local parent=$! pid
    wait_for "$1.h5" "$parent" || return 1
    pid=$(<"$1.pid")
    kill -KILL "$parent"
    wait "$parent"
    for _ in $(seq $((10 * EMASS_LIMIT))); do
        kill -0 "$pid" 2>/dev/null || break
        [ -n "$3" ] || break
        sleep 0.1
    done
    kill -0 "$pid" 2>/dev/null
}

stops_with_its_parent() { # NAME RANKS
    ! outlives "$1" "$2" 1 && grep 'stopped by a signal after .* with a checkpoint' "$1.err" &&
        [ -s "$1.h5.checkpoint" ]
}

goes_on_without_its_parent() {
    local status=0
    outlives orphan 2 '' || status=1
    kill "$(<orphan.pid)"
    return "$status"
}

launches() { # a program of two ranks, whose status and words come out
    local status=0
    # shellcheck disable=SC2016 # for the ranks
    limited "$emass" launch --ranks 2 -- sh -c 'echo "rank of $1"; exit 3' sh 2 >launch.out 2>launch.err || status=$?
    cat launch.out launch.err
    [ "$status" = 3 ] && grep -qx 'rank of 2' launch.out
}

refuses_under() { # STATUS FLAG LIMIT WHAT: as users start it, who do not know of OpenBLAS's threads
    # shellcheck disable=SC3045 # bash's ulimit
    (unset OPENBLAS_NUM_THREADS && ulimit "$2" "$3" && is_refused "$1" "$4" run g.yaml --output under.h5)
}

runs_under() { # KILOBYTES
    (unset OPENBLAS_NUM_THREADS && ulimit -v "$1" && limited "$emass" run g.yaml --quiet --output enough.h5)
}

# Of OpenBLAS's threads, one for each core, none is left.
alone() {
    local pid threads
    env -u OPENBLAS_NUM_THREADS "$emass" "${long[@]}" --output alone.h5 &
    pid=$!
    wait_for alone.h5 "$pid" || return 1
    threads=$(grep -l '^State' "/proc/$pid/task"/*/status | wc -l)
    kill -9 "$pid"
    wait "$pid"
    rm -f alone.h5*
    OPENBLAS_NUM_THREADS=1 "$emass" "${long[@]}" --output alone.h5 &
    pid=$!
    wait_for alone.h5 "$pid" || return 1
    echo "$threads"
    [ "$threads" = "$(grep -l '^State' "/proc/$pid/task"/*/status | wc -l)" ]
    local status=$?
    kill -9 "$pid"
    wait "$pid"
    rm -f alone.h5*
    return "$status"
}

check 'no threads but its own' alone
for ranks in 1 2 4; do
    check "on $ranks ranks" runs_on "$ranks"
done
for value in 0 -3 x 1.5 '' 99999999999; do
    check "run --ranks '$value'" is_refused 2 "--ranks: found '$value', expected a number from 1" \
        run --ranks "$value" g.yaml --output no.h5
    check "verify --ranks='$value'" is_refused 2 "--ranks: found '$value', expected a number" \
        verify 1.h5 --ranks="$value"
done
check '--ranks alone' is_refused 2 'with a number' run g.yaml --ranks
check '--ranks twice' is_refused 2 'once' run g.yaml --ranks 2 --ranks 3
check 'a wrong config is one line and status 2' \
    is_refused 2 'did you mean draws?' run --ranks 3 g.yaml --set run.draw=3
check 'no data is status 2' is_refused 2 'No such file' \
    run --ranks 2 g.yaml --set model.name=linear --set model.data=none.csv --output no.h5
check 'of which the launcher says no more' is_told_once 2 'did you mean draws?' run --ranks 2 g.yaml --set run.draw=3
check 'nor of a run that is stopped' \
    is_told_once 75 'stopped by the time limit' run --ranks 2 g.yaml --quiet --max-time 0 --output told.h5
check 'check on 3 ranks' plans 3
check 'check of a wrong config is one line' is_told_once 2 'did you mean draws?' check --ranks 2 g.yaml --set run.draw=3
check 'too few ranks are told how to start more' \
    is_refused 2 'found 1, expected a multiple of 2, which is run.shards or run.ranks_per_chain (--ranks N' \
    check g.yaml --set run.ranks_per_chain=2
EMASS_LAUNCHER='no-such-launcher -x' check 'no launcher' \
    is_refused 2 'no-such-launcher cannot be started: No such file' run --ranks 2 g.yaml --output no.h5
EMASS_LAUNCHER='env mpirun' check 'a launcher of two words' runs_on 3
ends_with() { # STATUS: the launcher's own, which may be that of a signal
    printf '#!/bin/sh\nexit %s\n' "$1" >ends && chmod +x ends
    EMASS_LAUNCHER=$PWD/ends limited "$emass" run run.yaml --ranks 2 --quiet --output ends.h5 2>&1 | tee /dev/stderr
}
check 'status 137 is a signal' eval "ends_with 137 | grep -q 'ended with status 137: signal 9 ended a rank (Killed)'"
check 'status 244 is none' eval "ends_with 244 | grep -q 'ended with status 244; a checkpoint'"
check 'cores that taskset allows' stays_on_one_core
check 'verify on 3 ranks' limited "$emass" verify 2.h5 --ranks 3
printf 'x,y\n1,2\n2,3.5\n3,5\n4,8\n' >t.csv
# shellcheck disable=SC2016 # for the script
converts_and_predicts() { # RANKS: the same bytes as one process; the launcher in EMASS_LAUNCHER tells how many it is to start
    local ranks=$1
    printf '#!/bin/sh\necho "$2" >>started\nexec mpirun "$@"\n' >counts && chmod +x counts && : >started
    export SOURCE_DATE_EPOCH=0 EMASS_LAUNCHER=$PWD/counts
    "$emass" run --progress none --quiet --overwrite --output line.h5 line.yaml &&
        "$emass" convert t.csv one.h5 --overwrite && "$emass" convert t.csv many.h5 --overwrite --ranks "$ranks" &&
        "$emass" predict line.h5 --data t.csv --output one.p.h5 --overwrite &&
        "$emass" predict --ranks="$ranks" line.h5 --data t.csv --output many.p.h5 --overwrite || return 1
    cat started
    cmp one.h5 many.h5 && cmp one.p.h5 many.p.h5 && [ "$(cat started)" = "$ranks"$'\n'"$ranks" ]
}
printf 'model: {name: linear, data: t.csv}\nrun: {chains: 2, warmup: 50, draws: 20}\n' >line.yaml
check 'convert and predict on 3 ranks' converts_and_predicts 3
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 check 'not under mpirun' \
    sh -c "! timeout $EMASS_LIMIT mpirun -q -n 2 --oversubscribe $emass run --ranks 2 g.yaml --output no.h5 2>err &&
        grep 'leave it out under mpirun' err"
check 'SIGTERM' stops_on TERM term
check 'SIGINT' stops_on INT int
check 'SIGUSR1' stops_on USR1 usr1
check 'Ctrl-C' stops_on_the_terminal
check 'SIGKILL' dies_with_its_user
check 'a front end that is killed stops one process' stops_with_its_parent alone1 1
check 'and ranks' stops_with_its_parent alone2 2
check 'but a shell that is killed does not' goes_on_without_its_parent
check 'launch' launches
for words in '' '--ranks 2' '-- true' '--ranks 2 true'; do
    # shellcheck disable=SC2086 # words
    check "launch $words" is_refused 2 'launch: expected --ranks N -- PROGRAM' launch $words
done
check "a stopped run goes on, to its time limit" goes_on
check 'few files' refuses_under 2 -n 24 'limit of 24 open files'
check 'little memory' refuses_under 2 -v 200000 'limit of 200000 kB of address space'
# Between what Open MPI takes that starts all a user may ask for, and what BLAS takes beside it; another MPI
# takes other numbers.
case $("$emass" --version) in
*'Open MPI'*) OMPI_MCA_ess_singleton_isolated=0 OMPI_MCA_pml=^v OMPI_MCA_btl=^openib \
    check 'too little for BLAS, which would ask for ever' refuses_under 1 -v 393216 'BLAS needs 130 MB of address space'
    check 'as much is enough for what one process needs' runs_under 393216
    ;;
*) skip 'too little for BLAS' 'the limit is that of Open MPI' ;;
esac
finish
