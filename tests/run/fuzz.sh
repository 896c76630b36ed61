#!/usr/bin/env bash
# A few seconds of libFuzzer on every program of tests/fuzz: no crash, no hang, no report of a
# sanitizer. FUZZ_SECONDS=3600 tests/run/fuzz.sh BUILD goes on for longer, with the inputs it finds
# kept in BUILD/fuzz.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
seconds=${FUZZ_SECONDS:-3}
fuzz=$build/fuzz

# Inputs to begin with, the same for all: each makes of them what it can.
write_seeds() {
    local job number=0 table options='\0\0\1\2\1\1'
    mkdir -p "$scratch/seeds"
    for job in jobs/*.yaml; do
        cp "$job" "$scratch/seeds"
        { cat "$job" && printf '\0run.draws=1e3\0mass={estimator: momentum}\0stop.max_time=01:00:00'; } \
            >"$scratch/seeds/set-$(basename "$job")"
    done
    printf 'model: {name: eight_schools}\ntemper: auto\n\0temper={scale: 3}\0temper=\0temper.when=auto' >"$scratch/seeds/temper"
    for table in 'a,b,y\n1,2,0\n3,4,1\n' '1 2 0\n3 4 1\n"5" -6e0 1\n' '0 1:1 2:.5\n1 2:1\n' \
        '1;2;0\n3;4;1\n' '1\t2\t0\n3\t4\t1\n'; do
        number=$((number + 1))
        printf '%b' "$options$table" >"$scratch/seeds/table$number"
    done
    for table in '2 0:3 4:1\n0\n3 1:1 2:2 3:1\n' '3\n5\n5\n1 1 3\n1 5 1\n\n3 2 1\n3 3 2\n3 4 1\n' \
        '%%MatrixMarket matrix coordinate real general\n%% x\n3 5 5\n1 1 3\n1 5 1e0\n3 2 1\n3 3 2\n3 4 1\n'; do
        number=$((number + 1))
        printf '%b' "\0\0\201$table" >"$scratch/seeds/corpus$number"
    done
    for table in 'a,b\n"the cat, ""sat""\non",1\nnew york,2\n' '{"a": "New York\\u00e9", "b": "x"}\n'; do
        number=$((number + 1))
        printf '%b' "\1\1\1$table" >"$scratch/seeds/text$number"
    done
    printf '%b' '\1\1a2,0\n40\n4' >"$scratch/seeds/response" # and no other column
    { printf '%b' "$options" && printf '1,2,0\n3,4,1\n' | gzip -n; } >"$scratch/seeds/gzip"
}

# In a folder of its own, in memory, for the file that it reads over and over. What it says is kept
# in BUILD/fuzz, as is the input that broke it.
# LeakSanitizer crashes beside MPI's threads: a program that starts MPI looks for leaks by itself.
survives() ( # PROGRAM
    leaks=1
    ! grep -q em_world_start "tests/fuzz/$1.c" || leaks=0
    work=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$fuzz/corpus/$1"
    cd "$work" || exit 1
    ASAN_OPTIONS=detect_leaks=$leaks:allocator_may_return_null=1:max_allocation_size_mb=256:quarantine_size_mb=8 \
        nice "$build/asan/tests/fuzz/$1" -max_total_time="$seconds" -timeout=300 \
        -detect_leaks="$leaks" -max_len=4096 -close_fd_mask=2 -artifact_prefix="$fuzz/$1-" \
        -print_final_stats=1 "$fuzz/corpus/$1" "$scratch/seeds" >"$fuzz/$1.log" 2>&1
    status=$?
    grep -aE 'broken promise|ERROR|/(src|tests)/.*\.c:[0-9]|written to|executed_units' \
        "$fuzz/$1.log"
    exit "$status"
)

if ! libfuzzer_is_there; then
    skip "fuzzing" "clang with libFuzzer is not installed"
    finish
fi
cd "$(dirname "$0")/../.." || exit 1
programs=()
for source in tests/fuzz/*.c; do programs+=("$(basename "$source" .c)"); done
check "the programs compile" sanitized "${programs[@]/#/tests/fuzz/}"
((failures == 0)) || finish
write_seeds
for program in "${programs[@]}"; do
    check "$seconds s of $program" survives "$program"
    sed -n 's/^stat::number_of_executed_units: */# inputs: /p' "$scratch/said"
done
finish
