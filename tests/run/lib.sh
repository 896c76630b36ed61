# Sourced by the shell tests of this folder, which are given the build: TAP lines and a scratch
# folder that goes when the test ends.
# shellcheck shell=bash
set -u
export LC_ALL=C.UTF-8
export EMASS_LIMIT=${EMASS_LIMIT:-900}
build=$(cd "${1:?usage: tests/run/NAME.sh BUILD}" && pwd)
# shellcheck disable=SC2034 # for the tests
emass=$build/emass
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# An emass that `make install` has put into a folder of PATH is not the one that is tested: such a
# folder is seen without it.
hide_installed() {
    local folders folder seen=''
    IFS=: read -ra folders <<<"$PATH"
    for folder in "${folders[@]}"; do
        if [ -e "$folder/emass" ]; then
            mkdir -p "$scratch/seen$folder"
            ln -sf "$folder"/* "$scratch/seen$folder/"
            folder=$scratch/seen$folder
            rm "$folder/emass"
        fi
        seen+=${seen:+:}$folder
    done
    PATH=$seen
}
hide_installed
# Of a build with another MPI, mpirun and mpicc are that one's.
PATH=$("$(dirname "${BASH_SOURCE[0]}")/../launcher" "$build")$PATH
number=0 failures=0

ok() { # WHAT...
    number=$((number + 1))
    echo "ok $number - $*"
}

not_ok() { # WHAT...
    number=$((number + 1)) failures=$((failures + 1))
    echo "not ok $number - $*"
}

check() { # WHAT COMMAND...: ok when the command succeeds; what it says is shown when it does not
    local what=$1
    shift
    if "$@" >"$scratch/said" 2>&1; then
        ok "$what"
    else
        not_ok "$what"
        tail -n 20 "$scratch/said" >&2
    fi
}

skip() { # WHAT WHY
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

# A command that hangs ends here; one that is slow, on whatever machine, does not get here.
limited() { # COMMAND...
    timeout -k 10 "$EMASS_LIMIT" "$@"
}

# The names of all commands, from the list in `emass --help`.
emass_commands() {
    "$emass" --help | awk '/^commands:/ { listed = 1; next } /^$/ { listed = 0 } listed { print $1 }'
}

moment_run() {
    printf '%s: {%s}\n' model 'name: eight_schools' sampler 'name: hmc' \
        run 'chains: 2, warmup: 50, draws: 50' >"$scratch/moment.yaml"
    EMASS_FAULT='' limited mpirun -n 2 "$emass" run "$scratch/moment.yaml" --quiet --overwrite
}

# The command succeeds, and takes no longer than SECONDS on an idle machine; one that is not is given
# as many times what a run of a moment takes on it now. The best of three counts.
within() { # SECONDS COMMAND...
    local most=$1 start took moment
    shift
    for _ in 1 2 3; do
        start=$SECONDS
        "$@" || return 1
        took=$((SECONDS - start))
        [ "$took" -gt "$most" ] || return 0
        start=$SECONDS
        moment_run
        moment=$((SECONDS - start))
        [ "$took" -gt $((most + most * moment)) ] || return 0
        echo "took $took s, where a run of a moment takes $moment s"
    done
    return 1
}

# Runs run.yaml with these settings, from where FILE was left.
run_with() { # RANKS FILE SETTING...
    local n=$1 file=$2 setting with=()
    shift 2
    for setting in "$@"; do with+=(--set "$setting"); done
    limited mpirun -n "$n" "$emass" run run.yaml --quiet --output "$file" --resume "${with[@]}"
}

# A run that is stopped at that iteration, as by its time limit, on a machine of any speed.
stopped_at() { # ITERATION RANKS ARGUMENT...
    local status=0
    EMASS_FAULT=time-limit:0:$1 limited mpirun -n "$2" "$emass" run --quiet "${@:3}" 2>"$scratch/why" || status=$?
    cat "$scratch/why"
    [ "$status" = 75 ] && grep -q "the time limit after $1 of" "$scratch/why"
}

# In what follows TEXT is fixed text or, after -E, a pattern.

says() { # STATUS [-E] TEXT COMMAND...: the command ends with that status, and prints TEXT
    local expected=$1 kind=-F status=0
    shift
    [ "$1" != -E ] || { kind=-E && shift; }
    limited "${@:2}" >"$scratch/.said" 2>&1 || status=$?
    cat "$scratch/.said"
    [ "$status" = "$expected" ] && grep -q $kind -- "$1" "$scratch/.said"
}

# The command ends with that status and one line of emass's, which has TEXT. It prints nothing on
# standard output and leaves no new file. A launcher that is the command may add lines.
fails_with() { # STATUS [-E] TEXT COMMAND...
    local expected=$1 kind=-F text limit=limited status=0 before
    shift
    [ "$1" != -E ] || { kind=-E && shift; }
    text=$1 before=$(ls)
    shift
    [ "$(type -t "$1")" != function ] || limit=
    $limit "$@" >"$scratch/.out" 2>"$scratch/.err" || status=$?
    messages "$scratch/.err" >"$scratch/.message"
    cat "$scratch/.out" "$scratch/.message"
    [ "$1" = "$emass" ] || sed -i '/^emass: /!d' "$scratch/.message"
    [ "$status" = "$expected" ] && [ ! -s "$scratch/.out" ] && [ "$(wc -l <"$scratch/.message")" = 1 ] &&
        grep -q $kind -- "$text" "$scratch/.message" && ! comm -13 <(echo "$before") <(ls) | grep .
}

refused() { # [-E] TEXT COMMAND...
    fails_with 2 "$@"
}

run_is_refused() { # TEXT ARGUMENT...: of run.yaml
    refused "$1" "$emass" run run.yaml --quiet --output none.h5 "${@:2}"
}

refused_twice() { # PATTERN ARGUMENT...: by check, and in the same words by run
    refused -E "$1" "$emass" check "${@:2}" && cp "$scratch/.message" "$scratch/.first" &&
        refused -E "$1" "$emass" run "${@:2}" && diff "$scratch/.first" "$scratch/.message"
}

messages() { # FILE: what a run said, without the progress of one that needs long to start
    grep -vE '^[0-9-]{10} [0-9:]{8} starting' "$1" || true
}

wait_for() { # FILE [PID]: until there is something in it, or the process that is to write it has ended
    for _ in $(seq $((10 * EMASS_LIMIT))); do
        [ ! -s "$1" ] || return 0
        [ -z "${2-}" ] || kill -0 "$2" 2>/dev/null || break
        sleep 0.1
    done
    echo "no $1"
    [ -z "${2-}" ] || ps -e -o pid,ppid,stat,etime,wchan:20,args --forest | tail -n 12 | cut -c 1-160
    return 1
}

# The ranks of the run that writes FILE, named by its whole path: no other test's, nor mpirun.
ranks_of() { # FILE
    pgrep -f "^$emass run .*--output $1" || true
}

libfuzzer_is_there() {
    echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d[0] < n; }' |
        clang -fsanitize=fuzzer,address -x c - -o "$scratch/probe" 2>/dev/null
}

# Makes TARGETs of BUILD/asan, under AddressSanitizer and UndefinedBehaviorSanitizer: by clang where
# it has libFuzzer, so that what is fuzzed and what is run are one build. Two tests may want it at once.
sanitized() { # TARGET...
    local compiler=gcc flags=''
    ! libfuzzer_is_there || compiler=clang flags=-fsanitize=fuzzer-no-link
    mkdir -p "$build/asan"
    OMPI_CC=$compiler MPICH_CC=$compiler flock "$build/asan/lock" \
        make --silent -j"$(nproc)" MODE=asan B="$build/asan" CFLAGS="$flags" "${@/#/$build/asan/}"
}

have() { # PROGRAM...: all of them
    local program
    for program; do command -v "$program" >/dev/null || return 1; done
}

finish() {
    echo "1..$number"
    exit $((failures > 0))
}

# Where the interpreter of Stan programs is, if anywhere: EMASS_STANLI, or what analysis/venv has.
find_stanli() {
    local project found
    project=$(cd "$(dirname "$0")/../.." && pwd)
    found=$(find "$project"/analysis/venv/lib/python3*/site-packages/stanli/_bin -name libstanli.so \
        2>/dev/null | head -n 1)
    export EMASS_STANLI=${EMASS_STANLI:-$found}
    [ -e "$EMASS_STANLI" ]
}
