#!/usr/bin/env bash
# Every kind of file at every path that a run opens: folders, FIFOs, sockets, devices, links. None blocks,
# each is refused in one line that says what it is, with status 2, and stays what it was.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
python=$(cd "$(dirname "$0")/../.." && pwd)/analysis/venv/bin/python
mkdir "$scratch/work" && cd "$scratch/work" || exit 1

cat >plain.yaml <<'YAML'
model: {name: eight_schools}
sampler: {name: hmc}
run: {chains: 2, warmup: 50, draws: 50}
YAML
sed 's/name: eight_schools/name: logistic, data: thing/' plain.yaml >data.yaml
sed 's/name: eight_schools/name: logistic, data: "thing:\/x"/' plain.yaml >hdf5.yaml
sed '1i mass: {from: thing}' plain.yaml >from.yaml

# Makes `thing` one of the kinds.
make() { # KIND PATH
    case $1 in
    folder) mkdir "$2" ;;
    FIFO) mkfifo "$2" ;;
    device) mknod "$2" c 1 5 2>/dev/null || ln -s /dev/zero "$2" ;;
    socket) python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$2" ;;
    esac
}

refuses() { # KIND ARGUMENT...
    refused -E "thing.*found a $1" "$emass" "${@:2}"
}

input() { # KIND ARGUMENT...
    local status=0
    rm -rf thing
    make "$1" thing && refuses "$@" --output out.h5 && [ ! -f thing ] && [ -e thing ] && [ ! -e out.h5 ] || status=1
    rm -rf thing
    return "$status"
}

config_from_pipe() {
    limited "$emass" run <(cat plain.yaml) --output pipe.h5 --quiet && rm pipe.h5*
}

silent_pipe() { # one that nobody writes into
    local status=0
    mkfifo thing
    limited "$emass" run thing 2>err || status=$?
    cat err
    rm thing
    [ "$status" = 2 ] && grep -q 'thing: a FIFO without data for' err
}

# ---- what a run writes ----

suffixes=('' .lock .draws .undo .undo.part .checkpoint .checkpoint.new .checkpoint.previous)

# Everything in the folder, links as links.
state() {
    find . -mindepth 1 ! -name 'state.*' ! -name out ! -name err '(' -type f -exec md5sum {} ';' -o -printf '%p %y %l\n' ')' | sort
}

untouched() { # COMMAND...: leaves all as it was
    state >state.before
    "$@" || return 1
    state >state.after
    cmp state.before state.after
}

at_output() { # KIND SUFFIX: in every mode, and beside a run that may go on
    local mode status=0
    rm -rf thing*
    [ -z "$2" ] || cp stopped.h5 thing.h5
    case $2 in '' | .checkpoint) ;; *) cp stopped.h5.checkpoint thing.h5.checkpoint ;; esac
    make "$1" "thing.h5$2" || return 1
    for mode in --resume --overwrite ''; do
        untouched refuses "$1" run plain.yaml --output thing.h5 ${mode:+"$mode"} || status=1
    done
    rm -rf thing*
    return "$status"
}

link_to() { # SUFFIX: a link beside the output is refused, and its target stays
    local mode status=0
    rm -rf thing*
    echo precious >thing.target
    cp stopped.h5 thing.h5
    ln -s thing.target "thing.h5$1"
    for mode in --resume --overwrite; do
        untouched refuses 'symbolic link' run plain.yaml --output thing.h5 ${mode:+"$mode"} || status=1
    done
    rm -rf thing*
    return "$status"
}

foreign() { # CONTENT-OF-A-FILE: no output of ours
    local mode status=0
    rm -rf thing*
    cp "$1" thing.h5
    for mode in --resume --overwrite; do
        untouched refuses 'file that is not an output of emass' run plain.yaml --output thing.h5 ${mode:+"$mode"} || status=1
        cp stopped.h5.checkpoint thing.h5.checkpoint # a checkpoint beside it proves nothing
    done
    rm -rf thing*
    return "$status"
}

own_input() { # WHAT CONFIG OUTPUT
    local mode status code=0
    for mode in --resume --overwrite; do
        status=0
        state >state.before
        limited "$emass" run "$2" --output "$3" "$mode" >out 2>err || status=$?
        cat err
        state >state.after
        [ "$status" = 2 ] && grep -q "is an input of this run ($1)" err && cmp state.before state.after || code=1
    done
    return "$code"
}

linked_output() { # what the link leads to is written, and the link stays
    local status=0
    rm -rf thing* && mkdir thing.folder
    ln -s thing.folder/real.h5 thing.h5
    limited "$emass" run plain.yaml --output thing.h5 --quiet --set output.keep_checkpoint=true || status=1
    [ "$(readlink thing.h5)" = thing.folder/real.h5 ] && [ -f thing.folder/real.h5.checkpoint ] || status=1
    limited "$emass" run plain.yaml --output thing.h5 --quiet --resume 2>&1 | grep -q 'nothing to do' || status=1
    limited "$emass" run plain.yaml --output thing.h5 --quiet --overwrite || status=1
    [ "$(readlink thing.h5)" = thing.folder/real.h5 ] && [ -f thing.folder/real.h5 ] || status=1
    rm -rf thing*
    return "$status"
}

empty_output() { # holds nothing: --resume and --overwrite may replace it
    rm -rf thing* && : >thing.h5
    limited "$emass" run plain.yaml --output thing.h5 --quiet --resume && : >thing.h5 &&
        limited "$emass" run plain.yaml --output thing.h5 --quiet --overwrite && rm thing*
}

long_name() { # LENGTH STATUS
    local name status=0
    name=$(printf "%0$1d" 0)
    limited mpirun -n 2 "$emass" run plain.yaml --quiet --output "$name" --overwrite >out 2>err || status=$?
    cat err
    [ "$status" = "$2" ] || return 1
    if [ "$2" = 0 ]; then rm "$name"*; else
        [ "$(grep -c '^emass: ' err)" = 1 ] && grep -q 'output.file: found' err && [ "$(find . -name '000*')" = '' ]
    fi
}

long_path() { # LENGTH STATUS
    local folder status=0
    folder=$(printf '%0150d' 1)
    mkdir "$folder"
    limited mpirun -n 2 "$emass" run plain.yaml --quiet \
        --output "$folder/$(printf "%0$(($1 - 151))d" 0)" >out 2>err || status=$?
    cat err
    rm -r "$folder"
    [ "$status" = "$2" ] && { [ "$2" = 0 ] || grep -q "output.file: found a path of $1 bytes" err; }
}

missing_folder() {
    local status=0
    limited "$emass" run plain.yaml --output none/o.h5 2>err || status=$?
    cat err
    [ "$status" = 2 ] && grep -q 'none/o.h5: cannot be written: none/: No such file' err
}

draws_alone() { # what a run left that was killed when its output was moved away
    local status=0
    rm -rf thing*
    cp stopped.h5 thing.h5.draws && cp stopped.h5.checkpoint thing.h5.checkpoint
    untouched refuses '' run plain.yaml --output thing.h5 2>/dev/null && return 1
    limited "$emass" run plain.yaml --output thing.h5 2>err && return 1
    grep -q 'thing.h5.draws, the draws of an interrupted run, exists' err || return 1
    limited "$emass" run plain.yaml --output thing.h5 --quiet --resume && cmp whole.h5 thing.h5 || status=1
    rm -rf thing*
    return "$status"
}

torn_output() { # by a kill: known by the checkpoint beside it
    local status=0
    rm -rf thing*
    cp stopped.h5.checkpoint thing.h5.checkpoint
    head -c 3000 stopped.h5 >thing.h5
    limited "$emass" run plain.yaml --output thing.h5 --quiet --resume && cmp whole.h5 thing.h5 || status=1
    head -c 3000 stopped.h5 >thing.h5
    rm thing.h5.checkpoint*
    untouched refuses 'file that is not an output of emass' run plain.yaml --output thing.h5 --resume || status=1
    rm -rf thing*
    return "$status"
}

export SOURCE_DATE_EPOCH=0
check 'a run' limited "$emass" run plain.yaml --quiet --output whole.h5
limited "$emass" run plain.yaml --quiet --output stopped.h5 --max-time 0s 2>/dev/null
check 'a run that is stopped' test -s stopped.h5.checkpoint
cp plain.yaml text
printf '\0\0\0\0\0\0\0\0text' >zeros
if "$python" -c 'import h5py' 2>/dev/null; then
    "$python" -c 'import h5py; h5py.File("table", "w")["x"] = [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [1.0, 1.0]]'
    check 'data of the user, in HDF5' foreign table
    cp table data.h5 && sed 's/name: eight_schools/name: logistic, data: "data.h5:\/x"/' plain.yaml >self.yaml
    check 'an output that is the data' own_input model.data self.yaml data.h5
else
    skip 'data of the user, in HDF5' 'no analysis/venv: make analysis/venv/ready'
fi
check 'text' foreign text
check 'an output that is the config' own_input 'its config' plain.yaml plain.yaml
sed '1i mass: {from: whole.h5}' plain.yaml >whole.yaml
check 'an output that is the earlier run' own_input mass.from whole.yaml whole.h5
check 'an output that is a link' linked_output
check 'an empty output' empty_output
check 'draws that were set aside, alone' draws_alone
check 'a torn output' torn_output
check 'a name of 255 bytes' long_name 255 2
check 'a name of 214 bytes' long_name 214 2
check 'a name of 213 bytes' long_name 213 0
check 'a path of 224 bytes' long_path 224 2
check 'a path of 223 bytes' long_path 223 0
check 'a missing folder' missing_folder

kinds=(folder FIFO device)
if command -v python3 >/dev/null; then kinds+=(socket); else skip 'sockets' 'python3 is not installed'; fi
for kind in "${kinds[@]}"; do
    for what in data hdf5 from; do
        check "a $kind for $what.yaml" input "$kind" run $what.yaml
    done
    [ "$kind" = FIFO ] || check "a $kind as the config" input "$kind" run thing
done
for kind in "${kinds[@]}"; do
    for suffix in "${suffixes[@]}"; do
        check "a $kind at o.h5$suffix" at_output "$kind" "$suffix"
    done
done
for suffix in "${suffixes[@]:1}"; do
    check "a link at o.h5$suffix" link_to "$suffix"
done
check 'a config from a pipe' config_from_pipe
check 'a config from a pipe that nobody writes into' silent_pipe
finish
