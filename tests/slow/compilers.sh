#!/usr/bin/env bash
# Everything, optimised, without a warning of either compiler: tests/lint has those that need no
# optimiser.
# shellcheck source=tests/run/lib.sh disable=SC2317
. tests/run/lib.sh

builds() { # COMPILER
    OMPI_CC=$1 MPICH_CC=$1 make --silent -j"$(nproc)" B="$scratch/$1" CI=1 all tests
}

for compiler in gcc clang; do
    if command -v $compiler >/dev/null; then
        check "no warning by $compiler" builds $compiler
    else
        skip "no warning by $compiler" "$compiler is not installed"
    fi
done
finish
