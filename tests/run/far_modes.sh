#!/usr/bin/env bash
# Modes far outside of where chains begin, narrow modes inside of wide ones, and wide ones around narrow ones: a run that
# has none of their draws is not converged, whatever the seed; the same run without these modes is; the same bytes on any
# number of ranks and after stops around the end of warmup.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >modes.c <<'C'
/* Normal modes: their weights, centres in the first plane, and standard deviations; and logs of gamma variates. */
#include <emass/plugin.h>
#include <math.h>
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    static const double mode[N_MODE][4] = {MODES};
    double term[N_MODE], most = -INFINITY, sum = 0;
    (void)given;
    for (int k = 0; k < N_MODE; k++) {
        term[k] = log(mode[k][0]) - DIM * log(mode[k][3]);
        for (int i = 0; i < DIM; i++)
            term[k] -= pow((theta[i] - (i < 2 ? mode[k][1 + i] : 0)) / mode[k][3], 2) / 2;
        most = fmax(most, term[k]);
    }
    for (int k = 0; k < N_MODE; k++)
        sum += exp(term[k] - most);
    *log_p += most + log(sum);
    for (int i = DIM; i < DIM + N_LOG; i++) {
        *log_p += 0.15 * theta[i] - exp(theta[i]);
        gradient[i] += 0.15 - exp(theta[i]);
    }
    for (int k = 0; k < N_MODE; k++)
        for (int i = 0; i < DIM; i++)
            gradient[i] -= exp(term[k] - most) / sum * (theta[i] - (i < 2 ? mode[k][1 + i] : 0)) / pow(mode[k][3], 2);
    return EM_OK;
}
static const em_variable x = {.name = "x", .n_axes = 1, .shape = {DIM + N_LOG}};
EMASS_PLUGIN({.name = "modes", .n_parameter = 1, .parameter = &x, .log_density_gradient = density});
C

build() { # NAME N MODES [DIMENSION] [LOGS]
    cc -O2 -std=c17 -shared -fPIC -DDIM="${4:-2}" -DN_LOG="${5:-0}" -DN_MODE="$2" -DMODES="$3" -I"$project/include" modes.c -o "$1.so" -lm &&
        printf 'model: {name: modes, library: ./%s.so}\nrun: {chains: 4, draws: 1000}\n' "$1" >"$1.yaml"
}
near='{.15, 15, 3, 1.5}'
build one 1 "$near" && build four 4 "$near, {.05, -12, -9, 1}, {.3, -5, 20, .7}, {.5, 2, -14, 1}" &&
    build positive 2 "{.5, 0, 0, 1}, {.5, 60, 0, 1}" 2 4 &&
    build far 2 "{.7, 0, 0, 1}, {.3, -80, 60, 1}" 5 && build farther 2 "{.7, 0, 0, 1}, {.3, 160, 120, 1}" &&
    build apart 2 "{.3, 0, 0, 2}, {.7, 45, 0, 2}" && build narrow 2 "{.5, 1, 2, 1}, {.5, 1, 2, .1}" 5 &&
    build off 2 "{.5, 0, 0, 1}, {.5, 3, 0, .2}" 3 && build beside 2 "{.5, 0, 0, 1}, {.5, 6, 0, .2}" &&
    build wide 2 "{.9, 1, 2, 1}, {.1, 1, 2, .02}" 30 && build sharp 1 "{1, 1, 2, .02}" 30 || exit 1

emass_on() { # RANKS ARGUMENT...
    limited mpirun -n "$1" "$emass" run "${@:2}" --quiet
}

verdicts() { # NAME WORDS SETTING...: of six seeds
    local seed settings=()
    for setting in "${@:3}"; do settings+=(--set "$setting"); done
    for seed in 1 2 3 4 5 6; do
        limited "$emass" run "$1.yaml" --overwrite --output "$1.h5" --seed "$seed" "${settings[@]}" >out 2>/dev/null || return 1
        grep converged out
        grep -q "^$2" out || return 1
    done
}

same_bytes() { # NAME
    local at n warmup
    emass_on 1 "$1.yaml" --overwrite --output one.h5 || return 1
    for n in 2 3 4; do
        emass_on "$n" "$1.yaml" --overwrite --output many.h5 && cmp one.h5 many.h5 || return 1
    done
    warmup=$(h5dump -a tuning_steps one.h5 | sed -nE 's/.*\(0\): ([0-9]+).*/\1/p')
    for at in $((warmup - 1)) "$warmup" $((warmup + 1)) $((warmup + 700)); do
        rm -f cut.h5*
        stopped_at "$at" 2 "$1.yaml" --output cut.h5 || return 1
        emass_on 3 "$1.yaml" --resume --output cut.h5 && cmp one.h5 cut.h5 || return 1
    done
}

check 'one mode: converged' verdicts one converged:
check 'four modes of which chains begin near to one' verdicts four 'not converged: .*mode'
check 'a mode 22 standard deviations away' verdicts apart 'not converged: .*mode'
check 'one 100 standard deviations away, five dimensions' verdicts far 'not converged: .*mode'
check 'one 200 standard deviations away' verdicts farther 'not converged: .*mode'
check 'beside four logs of positive parameters' verdicts positive 'not converged: .*mode'
check 'forty chains' verdicts apart 'not converged: .*mode' run.chains=40 run.draws=200
check 'one chain' verdicts apart 'not converged: .*mode' run.chains=1
check 'a narrow mode inside of a wide one, five dimensions' verdicts narrow 'not converged: .*a mode of'
check 'a narrow mode in the tail of a wide one' verdicts off 'not converged:'
check 'a narrow mode beside a wide one' verdicts beside 'not converged: .*a mode of'
check 'a wide mode around a narrow one, thirty dimensions' verdicts wide 'not converged: .*a mode of'
check 'the narrow one alone: converged' verdicts sharp converged:
for name in four narrow off wide; do
    check "$name: the same bytes on ranks and after stops" same_bytes "$name"
done
finish
