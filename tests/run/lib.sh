# Sourced by the shell tests of this folder, which are given the build: TAP lines and a scratch
# folder that goes when the test ends.
# shellcheck shell=bash
set -u
export LC_ALL=C.UTF-8
build=$(cd "${1:?usage: tests/run/NAME.sh BUILD}" && pwd)
# shellcheck disable=SC2034 # for the tests
emass=$build/emass
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
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

finish() {
    echo "1..$number"
    exit $((failures > 0))
}
