#!/usr/bin/env bash
# The benches say something: each of them ends well, and every figure is a positive number.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/../run/lib.sh"

figures=$scratch/figures
benches() {
    for source in tests/bench/bench_*.c; do
        make --silent B="$build" "$build/tests/bench/$(basename "$source" .c)" || return
    done
    limited tests/bench/run "$build" >"$figures"
}
positive() { # and none is missing: the last ones are of the program that writes draws
    grep '"draws written on 2 ranks"' "$figures" &&
        ! sed 1d "$figures" | grep -vE '"value": [0-9.e+-]*[1-9][0-9.e+-]*,'
}
check 'benches end well' benches
check 'figures are positive numbers' positive
finish
