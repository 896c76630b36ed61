#!/usr/bin/env bash
# Other compute kernels, between the ranks of a run or before and after a resume, are told; with
# --same-kernels they are an error. OpenBLAS takes the name of a processor from the environment, and
# vector kernels the name of an instruction set, as EMASS_SIMD.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

cat >run.yaml <<'YAML'
model: {name: eight_schools}
sampler: {name: hmc}
run: {chains: 4, warmup: 200, draws: 100}
YAML


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
check 'resumed with others: an error where asked for' says 2 -E 'same-kernels: found draws made with .*, expected .* Nehalem' \
    "${other[@]}" run run.yaml --resume --set run.draws=150 --quiet --same-kernels
check 'and the file is as it was' test "$(md5sum <run.h5)" = "$sum"
check 'nothing is left beside it' test "$(echo run.h5*)" = run.h5
check 'else a warning' says 0 -E 'was drawn with .*; this run computes with .* Nehalem' \
    "${other[@]}" run run.yaml --resume --set run.draws=150 --quiet
check 'and the file names both' recorded '.*; then OpenBLAS [0-9.]+ Nehalem, .*'
check 'resumed again with the same: silent' silent "${other[@]}" run run.yaml --resume --set run.draws=200 --quiet
check 'names each once' recorded '[^;]*; then [^;]*'
check 'verify: else a warning' says 0 -E 'was drawn with .* Nehalem.*; this run computes with' \
    "$emass" verify run.h5 --draws 20
check 'verify: an error where asked for' says 2 -E 'same-kernels: found draws made with .* Nehalem' \
    "$emass" verify run.h5 --draws 20 --same-kernels
check 'nothing is left beside it' test "$(echo run.h5*)" = run.h5
# shellcheck disable=SC2086
check 'ranks that differ: a warning' says 0 -E 'found other compute kernels on rank 1 than on rank 0' $unlike
# shellcheck disable=SC2086
check 'or an error' says 2 -E 'same-kernels: found .* Nehalem' ${unlike//--overwrite/--overwrite --same-kernels}

# Instruction sets: of AVX-512 and AVX2 the bits are the same, and the file records which it was.
draws_by() { # SET: the draws' sum
    SOURCE_DATE_EPOCH=0 EMASS_SIMD=$1 limited "$emass" run run.yaml --overwrite --quiet --output "$1.h5" &&
        h5dump -g /posterior "$1.h5" | tail -n +2 | md5sum
}
of_portable=$(draws_by portable)
check 'portable kernels' test -n "$of_portable"
check 'are recorded' eval "h5dump -a compute_kernels portable.h5 | grep -q ', portable, '"
if grep -q avx512f /proc/cpuinfo; then
    check 'AVX2 draws what AVX-512 does' test "$(draws_by avx2)" = "$(draws_by avx512)"
    check 'and is recorded' eval "h5dump -a compute_kernels avx2.h5 | grep -q ', avx2, '"
else
    skip 'AVX2 draws what AVX-512 does' 'this processor has no AVX-512'
fi
check 'an instruction set that is none' says 2 -E 'EMASS_SIMD: found avx9, expected an instruction set .*portable' \
    env EMASS_SIMD=avx9 "$emass" run run.yaml --overwrite --quiet
finish
