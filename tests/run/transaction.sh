#!/usr/bin/env bash
# The output transaction (src/run/transaction/transaction.h): every arrow of its state diagram, and a kill
# in every state and between any two changes of a file. After each kill the files are those of the
# table of states, and --resume, on another number of ranks, makes the bytes of an undisturbed run.
# Elsewhere: a lock that is taken away (lock.sh), damaged checkpoints (resume.sh), failures that are
# no kills (faults.sh, disk.sh), kills at random moments (chaos.sh).
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0
export OMPI_MCA_odls_base_sigkill_timeout="0" # mpirun kills the other ranks at once
command -v h5dump >/dev/null || { skip 'the output transaction' 'no h5dump (hdf5-tools)' && finish; }

awk 'BEGIN { srand(1); for (i = 0; i < 100; i++) print rand(), rand(), i % 2 }' >data.csv
cat >run.yaml <<'YAML'
model: {name: logistic, data: data.csv}
sampler: {name: hmc, leapfrog_steps: 3, step_size: 0.2, adapt_every: 10}
run: {chains: 3, warmup: 40, draws: 60}
output: {flush_every: 20, checkpoint_every: 1000}
YAML
often=(--set output.checkpoint_every=0) # a save after every segment of iterations
longer=(--set run.draws=90)

emass_on() { # RANKS ARGUMENT...
    local status=0
    local launcher=(mpirun -n "$1")
    [ "$1" != 1 ] || launcher=()
    limited "${launcher[@]}" "$emass" run run.yaml --quiet --output "$scratch/out.h5" "${@:2}" >log 2>&1 || status=$?
    while [ -n "$(ranks_of "$scratch/out.h5")" ]; do sleep 0.1; done
    grep '^emass: \|injected' log
    return "$status"
}

# ---------------------------------------------------------------- what is on the disk

# What stands beside the output, by what the names end in: "checkpoint lock". Files that Open MPI leaves
# when it is killed are not ours.
beside() {
    local file names=()
    for file in out.h5.*; do
        [[ ! -e $file || $file = *_cid-* ]] || names+=("${file#out.h5.}")
    done
    echo "${names[*]}"
}
content() { # missing, empty, unreadable, 0 or 1: its attribute complete
    if [ ! -e out.h5 ]; then
        echo missing
    elif [ ! -s out.h5 ]; then
        echo empty
    else
        h5dump -a /complete out.h5 2>/dev/null | sed -n 's/.*(0): \([01]\)$/\1/p' | grep . || echo unreadable
    fi
}
disk_is() { # CONTENT BESIDE: patterns
    local found
    found="$(content), $(beside)"
    echo "on disk: $found; expected $1, $2"
    grep -qxE "$1, $2" <<<"$found"
}
locked_disk_is() { # CONTENT BESIDE: and the lock of the run that was killed
    disk_is "$1" "$2" && [ -s out.h5.lock ]
}

# A state of the table, whichever it is.
in_a_state() {
    local found
    found="$(content), $(beside)"
    echo "on disk: $found"
    grep -qxE "missing, (checkpoint( checkpoint.previous)? )?lock
(empty|unreadable|0), (checkpoint.new )?lock
0, (checkpoint( checkpoint.new)?|checkpoint.new)( checkpoint.previous)? lock( undo.part)?
(missing|empty|unreadable|0), checkpoint( checkpoint.previous)? draws lock
(unreadable|0|1), checkpoint( checkpoint.previous)? lock undo
1, (checkpoint )?(checkpoint.new )?(checkpoint.previous )?lock" <<<"$found"
}

# ---------------------------------------------------------------- kills

from=nothing # the folder with the files that a run finds
killed() { # RANKS FAULT ARGUMENT...
    rm -f out.h5*
    cp "$from"/out.h5* . 2>/dev/null
    ! EMASS_FAULT=kill:$2 emass_on "$1" "${@:3}"
}
# On the next number of ranks; it says the words, and leaves nothing beside the output.
resumes() { # RANKS REFERENCE WORDS ARGUMENT...
    emass_on $(($1 % 3 + 1)) --resume "${@:4}" || return 1
    grep -qE -- "$3" log && cmp "$2" out.h5 && [ "$(beside)" = '' ]
}
extra=() reference=reference.h5
arrow() { # RANKS FAULT CONTENT BESIDE WORDS ARGUMENT...: killed there, and then resumed
    killed "$1" "$2" "${@:6}" "${extra[@]}" && locked_disk_is "$3" "$4" && resumes "$1" "$reference" "$5" "${extra[@]}"
}
anew='warning: starting anew: .*out.h5.checkpoint: the run had not saved a checkpoint'
newest='resuming .* from .*out.h5.checkpoint$'
previous='resuming .* from .*out.h5.checkpoint.previous$'

mkdir nothing
check 'an undisturbed run' emass_on 2
mkdir finished && cp out.h5 finished && mv out.h5 reference.h5
check 'an undisturbed run of more draws' emass_on 3 "${longer[@]}"
mv out.h5 longer.h5

# ---- NOTHING
first_lock() { # the lock is there, and nothing is written in it yet
    killed 1 lock-write:0 && disk_is missing lock && resumes 1 reference.h5 'nothing to resume'
}
check 'NOTHING: killed as it takes the lock' first_lock
check 'NOTHING: killed before the first iteration' arrow 2 model:1:1 missing lock 'nothing to resume'
check 'begin: killed before F is made' arrow 3 file-create:0 missing lock 'nothing to resume'

# ---- STARTED
check 'begin: killed before the lock knows F' arrow 1 lock-write:0:2 empty lock "$anew"
check 'begin: killed as the groups of F are written' arrow 2 hdf5-create:1:7 unreadable lock "$anew"
check 'STARTED: killed in warmup' arrow 3 model:2:60 0 lock "$anew"

# ---- SAVED
check 'the first save: killed as it writes' arrow 2 checkpoint-write:1:5 '0' 'checkpoint.new lock' "$anew" "${often[@]}"
check 'the first save: killed before the hash' arrow 3 checkpoint-trailer:0 0 'checkpoint.new lock' "$anew" "${often[@]}"
check 'the first save: killed before the rename' arrow 1 file-rename:0:1 0 'checkpoint.new lock' "$anew" "${often[@]}"
check 'SAVED: killed after the first save' arrow 2 checkpoint-create:0:2 0 'checkpoint lock' "$newest" "${often[@]}"
check 'the second save: killed as it writes' arrow 3 checkpoint-close:2:2 0 'checkpoint checkpoint.new lock' "$newest" "${often[@]}"
check 'the second save: killed before the renames' arrow 1 file-rename:0:2 0 'checkpoint checkpoint.new lock' "$newest" "${often[@]}"
check 'the second save: killed between the renames' arrow 2 file-rename:0:3 0 'checkpoint.new checkpoint.previous lock' "$previous" "${often[@]}"
check 'SAVED: killed after the second save' arrow 3 checkpoint-create:0:3 0 'checkpoint checkpoint.previous lock' "$newest" "${often[@]}"
check 'SAVED: killed while it samples' arrow 2 model:1:250 0 'checkpoint checkpoint.previous lock' "$newest" "${often[@]}"

# ---- STOPPED
keep() { # FOLDER: what is on the disk
    mkdir "$1" && cp out.h5* "$1"
}
stop() { # RANKS ITERATION CHECKPOINTS ARGUMENT...
    local status=0
    rm -f out.h5*
    EMASS_FAULT=time-limit:0:$2 emass_on "$1" "${@:4}" || status=$?
    [ "$status" = 75 ] && disk_is 0 "$3"
}
stopped() { stop "$@" && keep "stopped$2" && resumes "$1" reference.h5 "$newest"; }
check 'STARTED, close: stopped in warmup' stopped 2 20 checkpoint
check 'SAVED, close: stopped while it samples' stopped 3 70 'checkpoint checkpoint.previous' "${often[@]}"
failed() { # RANKS FAULT BESIDE WORDS ARGUMENT...: not killed: the run releases the lock
    local status=0
    rm -f out.h5*
    EMASS_FAULT=$2 emass_on "$1" "${@:5}" || status=$?
    [ "$status" = 1 ] && disk_is 0 "$3" && resumes "$1" reference.h5 "$4"
}
check 'STARTED, close: a failure' failed 3 model:2:60 '' "$anew"
check 'SAVED, close: a failure keeps the last checkpoint' failed 2 model:1:250 'checkpoint checkpoint.previous' "$newest" "${often[@]}"

# ---- REMAKING
from=stopped70 both='checkpoint checkpoint.previous'
check 'resume: killed as it reads the checkpoint' arrow 1 checkpoint-read:0:4 0 "$both lock" "$newest" --resume
check 'resume: killed before F is set aside' arrow 2 file-rename:0 0 "$both lock" "$newest" --resume
check 'REMAKING: killed before F is made' arrow 3 file-create:0 missing "$both draws lock" "$newest" --resume
check 'REMAKING: killed before the lock knows F' arrow 1 lock-write:0:2 empty "$both draws lock" "$newest" --resume
check 'REMAKING: killed as the groups of F are written' arrow 2 hdf5-create:1:7 unreadable "$both draws lock" "$newest" --resume
check 'REMAKING: killed as draws are copied' arrow 3 hdf5-write:2 0 "$both draws lock" "$newest" --resume
check 'REMAKING: killed before the old draws are removed' arrow 1 file-remove:0:2 0 "$both draws lock" "$newest" --resume
check 'SAVED again: killed while it samples' arrow 2 model:1:40 0 "$both lock" "$newest" --resume
again() { # killed in REMAKING time and again
    local fault
    killed 1 hdf5-write:0 --resume || return 1
    for fault in hdf5-create:1:7 file-create:0 hdf5-write:1:2 file-remove:0:2; do
        ! EMASS_FAULT=kill:$fault emass_on 2 --resume || return 1
        locked_disk_is '(missing|unreadable|0)' "$both draws lock" || return 1
    done
    resumes 2 reference.h5 "$newest"
}
check 'REMAKING: killed there five times' again
from=stopped20
check 'resume in warmup: killed as draws are awaited' arrow 3 file-remove:0:2 0 'checkpoint draws lock' "$newest" --resume

# ---- FINISHING, in a run that saves once, at its end
from=nothing
check 'finish: killed before the journal' arrow 1 file-journal:0 0 'checkpoint lock' "$newest"
check 'finish: killed before the journal is renamed' arrow 2 file-rename:0:2 0 'checkpoint lock undo.part' "$newest"
check 'FINISHING: killed as the end is written' arrow 3 checkpoint-large:0 '(unreadable|0)' 'checkpoint lock undo' "$newest"
check 'FINISHING: killed as F is closed' arrow 2 hdf5-close:1 '(unreadable|0|1)' 'checkpoint lock undo' "$newest"
check 'FINISHING: killed when F is complete' arrow 1 file-remove:0:9 1 'checkpoint lock undo' "$newest"
rolled_back() { # killed at each step of the way back
    killed 2 checkpoint-large:0 && locked_disk_is '(unreadable|0)' 'checkpoint lock undo' &&
        ! EMASS_FAULT=kill:file-restore:0 emass_on 1 --resume && locked_disk_is 0 'checkpoint lock undo' &&
        ! EMASS_FAULT=kill:checkpoint-open:2 emass_on 3 --resume && locked_disk_is 0 'checkpoint lock' &&
        resumes 1 reference.h5 "$newest"
}
check 'FINISHING, open: killed as F is restored' rolled_back
from=stopped70
check 'FINISHING: killed in a run that was resumed' arrow 3 checkpoint-large:0 '(unreadable|0)' "$both lock undo" "$newest" --resume

# ---- FINISHED
done_already='is complete: nothing to do'
from=nothing
check 'FINISHED: killed before the checkpoint is removed' arrow 2 file-remove:0:10 1 'checkpoint lock' "$done_already"
check 'FINISHED: killed when all is removed' arrow 3 file-done:0 1 lock "$done_already"
from=finished
check 'FINISHED, open: killed as it removes what is left' arrow 1 file-remove:0:1 1 lock "$done_already" --resume

# ---- FINISHED, for more draws
extra=("${longer[@]}") reference=longer.h5 extending='extending .*out.h5, a finished run of 60 draws, to 90$'
check 'resume, extending: killed before the checkpoint is published' arrow 2 file-rename:0:1 1 'checkpoint.new lock' "$extending" --resume
check 'resume, extending: killed before F is set aside' arrow 3 file-rename:0:2 1 'checkpoint lock' "$extending" --resume
check 'REMAKING, extending: killed before F is made' arrow 1 file-create:0 missing 'checkpoint draws lock' "$extending" --resume
check 'REMAKING, extending: killed as draws are copied' arrow 2 hdf5-write:1 0 'checkpoint draws lock' "$extending" --resume
check 'REMAKING, extending: killed before the old draws are removed' arrow 3 file-remove:0:2 0 'checkpoint draws lock' "$extending" --resume
check 'SAVED, extended: killed while it samples' arrow 1 model:0:20 0 'checkpoint lock' "$newest" --resume
check 'FINISHING, extended: killed as the end is written' arrow 2 checkpoint-large:0 '(unreadable|0)' 'checkpoint checkpoint.previous lock undo' "$newest" --resume
renamed_back() { # a failure to make F anew
    local status=0
    rm -f out.h5* && cp finished/out.h5 .
    EMASS_FAULT=hdf5-fill:$(($1 - 1)) emass_on "$1" --resume "${longer[@]}" || status=$?
    [ "$status" = 1 ] && disk_is 1 checkpoint && cmp reference.h5 out.h5 && resumes "$1" longer.h5 "$extending" "${longer[@]}"
}
check 'REMAKING, extending: a failure renames F back' renamed_back 2
change_of_mind() { # killed in the extension, and no more draws are wanted after all
    killed 3 file-rename:0:2 --resume "${longer[@]}" && resumes 3 reference.h5 "$done_already" &&
        killed 1 hdf5-write:0 --resume "${longer[@]}" && resumes 1 reference.h5 "$extending_back"
}
extending_back='extending .*out.h5, a finished run of 60 draws, to 60$'
check 'REMAKING, extending: resumed without more draws' change_of_mind

# ---- begin, over the files of an earlier run
extra=() reference=reference.h5 from=remaking
killed_remaking() { from=stopped70 killed 2 hdf5-write:1 --resume && keep remaking; }
check 'files of all kinds' killed_remaking
check 'begin, over others: killed before F is removed' arrow 1 file-remove:0:1 0 "$both draws lock" "$newest" --overwrite
check 'begin, over others: killed when F is removed' arrow 2 file-remove:0:2 missing "$both draws lock" "$newest" --overwrite
check 'begin, over others: killed when all draws are removed' arrow 3 file-remove:0:3 missing "$both lock" 'nothing to resume' --overwrite
check 'begin, over others: killed with one checkpoint left' arrow 1 file-remove:0:6 missing 'checkpoint.previous lock' 'nothing to resume' --overwrite

# ---- every change of a file, counted
sweep() { # RANKS REFERENCE ARGUMENT...: killed before the first, the second, ..., until there is none left
    local n status
    for n in $(seq 100); do
        rm -f out.h5*
        cp "$from"/out.h5* . 2>/dev/null
        status=0
        EMASS_FAULT="kill:file-*:0:$n" emass_on "$1" "${@:3}" || status=$?
        [ "$status" != 0 ] || break
        if ! in_a_state || ! emass_on $(((n + $1) % 3 + 1)) --resume "${@:4}" || ! cmp "$2" out.h5 || [ "$(beside)" != '' ]; then
            echo "killed at change $n"
            return 1
        fi
    done
    echo "$((n - 1)) changes"
    [ "$n" -gt 10 ] && cmp "$2" out.h5
}
from=nothing
check 'a run, killed at every change of a file' sweep 1 reference.h5 --resume
from=finished
check 'an extension, killed at every change of a file' sweep 2 longer.h5 --resume "${longer[@]}"

# ---- what these checks can find
twins() { # a disk that is in no state, a resume that makes other bytes, a fault that is never reached
    rm -f out.h5* && cp finished/out.h5 . && : >out.h5.draws && ! in_a_state && rm out.h5.draws &&
        ! disk_is 0 '' && ! resumes 1 longer.h5 "$done_already" && ! resumes 1 reference.h5 "$newest" &&
        from=finished && ! arrow 1 hdf5-fill:0:1000 1 lock "$done_already" --resume
}
check 'the checks can fail' twins
finish
