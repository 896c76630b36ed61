#!/usr/bin/env bash
# Every kind of file at every path that a run opens: folders, FIFOs, sockets, devices, links. None blocks,
# each is refused in one line that says what it is, with status 2, and stays what it was.   timeout: 600
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

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

refuses() { # KIND ARGUMENT...: status 2, soon, in one line that names the kind
    local kind=$1 status=0
    shift
    timeout 60 "$emass" "$@" >out 2>err || status=$?
    cat err
    [ "$status" = 2 ] && [ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q "thing.*found a $kind" err
}

input() { # KIND ARGUMENT...
    local status=0
    rm -rf thing
    make "$1" thing && refuses "$@" --output out.h5 && [ ! -f thing ] && [ -e thing ] && [ ! -e out.h5 ] || status=1
    rm -rf thing
    return "$status"
}

config_from_pipe() {
    timeout 100 "$emass" run <(cat plain.yaml) --output pipe.h5 --quiet && rm pipe.h5*
}

silent_pipe() { # one that nobody writes into
    local status=0
    mkfifo thing
    timeout 100 "$emass" run thing 2>err || status=$?
    cat err
    rm thing
    [ "$status" = 2 ] && grep -q 'thing: a FIFO that nothing has come from' err
}

kinds=(folder FIFO device)
if command -v python3 >/dev/null; then kinds+=(socket); else skip 'sockets' 'python3 is not installed'; fi
for kind in "${kinds[@]}"; do
    for what in data hdf5 from; do
        check "a $kind for $what.yaml" input "$kind" run $what.yaml
    done
    [ "$kind" = FIFO ] || check "a $kind as the config" input "$kind" run thing
done
check 'a config from a pipe' config_from_pipe
check 'a config from a pipe that nobody writes into' silent_pipe
finish
