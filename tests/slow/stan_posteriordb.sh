#!/usr/bin/env bash
# Every program of posteriordb, by default: the same bytes on 1, 2, 3, 4 and 8 ranks. Six of them, and three of
# our own that a longer trajectory, NUTS or another mode is found for: the same when in every phase of warmup, and
# among the draws, the run is killed (kill -9) at random and stopped at an iteration, and other ranks go on.
# EMASS_KILLS_SEED (1) is that of the moments.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/../run/lib.sh"
base=${EMASS_DATA:-}/posteriordb
if ! find_stanli || [ ! -d "$base" ]; then
    skip 'posteriordb' 'no EMASS_DATA, or no libstanli.so (make analysis/venv/ready)'
    finish
fi
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0
RANDOM=${EMASS_KILLS_SEED:-1}
cat >run.yaml <<'YAML'
model: {name: stan, program: "${PROGRAM}.stan", data: "${PROGRAM}.json"}
run: {chains: 8, draws: 30}
output: {flush_every: 10, save_warmup: true}
YAML

settings=()
sample() { # RANKS OUT ARGUMENT...
    limited mpirun -n "$1" "$emass" run run.yaml --output "$2" --quiet "${settings[@]}" "${@:3}"
}

same_on_any_ranks() {
    local ranks
    rm -f ./*.h5*
    sample 1 1.h5 || return 1
    for ranks in 2 3 4 8; do
        sample "$ranks" "$ranks.h5" && cmp 1.h5 "$ranks.h5" || return 1
    done
}

# ---------------------------------------------------------------- in every phase

ends_of_stages() { # FILE
    h5dump -y -d mass_adaptation/stage_iteration "$1" | sed -nE '/DATA \{/,/\}/ s/^ *([0-9][0-9, ]*)$/\1/p' | tr -d ' ' | tr , '\n'
}

# The first iteration, after the starts; in and after the first window; when trees may grow deeper; before and
# after the end of the initial phase; in and after each later phase; in the draws.
moments() { # FILE
    local ends initial last
    mapfile -t ends < <(ends_of_stages "$1")
    initial=${ends[0]} last=${ends[-1]}
    printf '%d\n' 1 9 14 27 51 $((initial - 1)) "$initial" $((initial + 12)) "${ends[@]}" $((last + 1)) $((last + 13)) |
        sort -un
}

is_locked() { # FILE
    local pid
    for pid in $(ranks_of "$1"); do
        readlink "/proc/$pid/fd/"* 2>/dev/null | grep -qxF "$1.lock" && return
    done
    return 1
}

# All ranks are killed within 0.3 s of the file's being held (over one that is killed while it connects, Open
# MPI's launcher may hang); the run may have got to its iteration before that.
killed_before() { # ITERATION RANKS FILE
    local job status=0 pids
    EMASS_FAULT=time-limit:0:$1 sample "$2" "$3" --resume 2>/dev/null &
    job=$!
    until is_locked "$3" || ! kill -0 "$job" 2>/dev/null; do sleep 0.02; done
    sleep "$((RANDOM % 300))e-3"
    mapfile -t pids < <(ranks_of "$3")
    [ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
    wait "$job" || status=$?
    while [ -n "$(ranks_of "$3")" ]; do sleep 0.1; done
    [ "$status" != 75 ]
}

in_every_phase() { # ADAPTED: what the run says that it learned
    local iteration times=0 parts=$scratch/parts.h5
    rm -f ./*.h5*
    limited "$emass" run run.yaml --output 1.h5 --progress none "${settings[@]}" >ended || return 1
    grep "^warmup" ended
    grep -qE "$1" ended || return 1
    for iteration in $(moments 1.h5); do
        times=$((times + 1))
        if killed_before "$iteration" $((1 + times % 4)) "$parts"; then
            kills=$((kills + 1))
            # Killed at its checkpoint there, before it could say so, it stops one further on.
            stopped_at "$iteration" $((1 + (times + 1) % 3)) run.yaml --output "$parts" --resume "${settings[@]}" ||
                grep -q "the time limit after $((iteration + 1)) of" "$scratch/why" || return 1
        fi
    done
    sample 3 "$parts" --resume && cmp 1.h5 "$parts"
}

for program in "$base"/*.stan; do
    export PROGRAM=${program%.stan}
    check "$(basename "$PROGRAM"): the same bytes on 1, 2, 3, 4 and 8 ranks" same_on_any_ranks
done
have h5dump pgrep || { skip 'runs killed in every phase' 'h5dump (hdf5-tools) or pgrep (procps) is not installed' && finish; }
kills=0
for name in arK eight_schools_noncentered garch11 hmm_example lotka_volterra nes1972_nes; do
    export PROGRAM=$base/$name
    check "$name: killed and stopped in every phase" in_every_phase 'T 2, '
done
own() { # NAME ADAPTED TEXT
    export PROGRAM=$1
    echo "$3" >"$1.stan"
    echo '{}' >"$1.json"
    check "$1: killed and stopped in every phase" in_every_phase "$2"
}
own tails 'T 3.4, ' 'parameters { vector[3] x; } model { x ~ student_t(2.5, 0, 1); }'
own funnel 'NUTS makes the draws' 'parameters { real v; vector[4] x; } model { v ~ normal(0, 1.5); x ~ normal(0, exp(v / 2)); }'
settings=(--seed 2 --set run.chains=3)
own modes 'all moved at' 'parameters { vector[2] x; } model {
  target += log_sum_exp(-33 - 12.5 * dot_self(x + 1), -3.5 * log1p(dot_self(x - 6) / (5 * square(0.005)))); }'
check "they were killed $kills times before they got so far" test $kills -gt 9
finish
