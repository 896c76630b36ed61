#!/usr/bin/env bash
# Other compute kernels, between the ranks of a run or before and after a resume, are told; with
# --same-kernels they are an error. OpenBLAS takes the name of a processor from the environment.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

cat >run.yaml <<'YAML'
model: {name: eight_schools}
sampler: {name: hmc}
run: {chains: 4, warmup: 200, draws: 100}
YAML

says() { # STATUS TEXT COMMAND...
    local expected=$1 text=$2 status=0 said
    shift 2
    said=$(limited "$@" 2>&1) || status=$?
    echo "$said"
    [ "$status" = "$expected" ] && { [ -z "$text" ] || grep -qE -- "$text" <<<"$said"; }
}

silent() { # COMMAND...: no word of kernels
    local said
    said=$(limited "$@" 2>&1) && ! grep -q 'computes with' <<<"$said"
}

unlike="mpirun -n 1 $emass run run.yaml --quiet --overwrite : -n 1 -x OPENBLAS_CORETYPE=Nehalem $emass run run.yaml --quiet --overwrite"
other=(env OPENBLAS_CORETYPE=Nehalem "$emass")

recorded() { # PATTERN: the attribute
    h5dump -a compute_kernels run.h5 | grep -E "\"$1\"\$"
}

if [ "$(uname -m)" != x86_64 ]; then
    skip 'other kernels' 'this processor is no x86_64'
    finish
    exit
fi
check 'a run' silent "$emass" run run.yaml --quiet --same-kernels
check 'records its kernels' recorded 'OpenBLAS [0-9.]+ [A-Za-z]+, [a-z0-9]+, glibc [0-9.]+'
sum=$(md5sum <run.h5)
check 'resumed with others: an error where asked for' says 2 'same-kernels: found draws made with .*, expected .* Nehalem' \
    "${other[@]}" run run.yaml --resume --set run.draws=150 --quiet --same-kernels
check 'and the file is as it was' test "$(md5sum <run.h5)" = "$sum"
check 'nothing is left beside it' test "$(echo run.h5*)" = run.h5
check 'else a warning' says 0 'was drawn with .*; this run computes with .* Nehalem' \
    "${other[@]}" run run.yaml --resume --set run.draws=150 --quiet
check 'and the file names both' recorded '.*; then OpenBLAS [0-9.]+ Nehalem, .*'
check 'resumed again with the same: silent' silent "${other[@]}" run run.yaml --resume --set run.draws=200 --quiet
check 'names each once' recorded '[^;]*; then [^;]*'
check 'verify: an error where asked for' says 2 'same-kernels: found draws made with .* Nehalem' \
    "$emass" verify run.h5 --draws 20 --same-kernels
check 'nothing is left beside it' test "$(echo run.h5*)" = run.h5
# shellcheck disable=SC2086
check 'ranks that differ: a warning' says 0 'found other compute kernels on rank 1 than on rank 0' $unlike
# shellcheck disable=SC2086
check 'or an error' says 2 'same-kernels: found .* Nehalem' ${unlike//--overwrite/--overwrite --same-kernels}
finish
