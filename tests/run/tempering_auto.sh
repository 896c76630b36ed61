#!/usr/bin/env bash
# temper: auto. Runs whose warmup ends in several modes are tempered from there on, others are as they would be without
# it: the same bytes on any number of ranks and after stops before, at and after the switch, one line for bad input.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
has_stanli=false
find_stanli && has_stanli=true
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >modes.c <<'C'
/* 1/4 N(-8, 1) + 3/4 N(8, 1) in two dimensions; the integral is 1. */
#include <emass/plugin.h>
#include <math.h>
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    const double at[] = {-8, 8}, weight[] = {0.25, 0.75};
    double term[2], most, sum = 0;
    (void)given;
    for (int k = 0; k < 2; k++)
        term[k] = log(weight[k]) - 1.837877066409345 - (pow(theta[0] - at[k], 2) + pow(theta[1] - at[k], 2)) / 2;
    most = fmax(term[0], term[1]);
    for (int k = 0; k < 2; k++)
        sum += exp(term[k] - most);
    *log_p += most + log(sum);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++)
            gradient[i] -= exp(term[k] - most) / sum * (theta[i] - at[k]);
    return EM_OK;
}
static const em_variable x = {.name = "x", .n_axes = 1, .shape = {2}};
EMASS_PLUGIN({.name = "modes", .n_parameter = 1, .parameter = &x, .log_density_gradient = density});
C
cc -O2 -std=c17 -shared -fPIC -I"$project/include" modes.c -o modes.so -lm || exit 1
cat >modes.yaml <<'YAML'
model: {name: modes, library: ./modes.so}
temper: auto
run: {chains: 4, draws: 400}
output: {flush_every: 20, save_warmup: true}
YAML
printf 'model: {name: logistic, n: 400, intercept: false}\nrun: {chains: 3, draws: 60}\noutput: {flush_every: 20, save_warmup: true}\n' >one.yaml

emass_on() { # RANKS ARGUMENT...
    limited mpirun -n "$1" "$emass" run "${@:2}" --quiet
}

first_of() { # FILE: the iteration from which it is tempered
    h5dump -a /tempered_from "$1" | awk '/\(0\)/ { print $2 }'
}

# The line, the file, and the weight of a mode within what the run says of it.
says_so() {
    limited "$emass" run modes.yaml --overwrite --output one.h5 --set run.draws=2000 >out 2>why || { cat why && return 1; }
    cat out
    [ "$(grep -c '^emass: warmup ends after .* in several modes' why)" = 1 ] || { cat why && return 1; }
    grep -q '; tempered from iteration [0-9]* on: 2 modes (.* of 4 chains)' out &&
        "$emass" summary one.h5 | grep -q '; tempered from iteration [0-9]* on: 2 modes' &&
        h5dump -a /tempered_because one.h5 | grep -q '2 modes' &&
        "$emass" summary one.h5 --csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
            $1 == "x[0]" { z = ($at["mean"] - 4) / $at["mcse_mean"]; print "z " z; found = z * z < 25 }
            END { exit !found }'
}

same_on_ranks() { # SETTING...
    local n settings=()
    for setting in "$@"; do settings+=(--set "$setting"); done
    emass_on 1 modes.yaml --overwrite --output one.h5 "${settings[@]}" && [ -n "$(first_of one.h5)" ] || return 1
    for n in 2 3 4; do
        emass_on "$n" modes.yaml --overwrite --output many.h5 "${settings[@]}" || return 1
        cmp one.h5 many.h5 || { echo "on $n ranks" && return 1; }
    done
}

same_on_shards() {
    emass_on 1 modes.yaml --overwrite --output one.h5 || return 1
    emass_on 6 modes.yaml --overwrite --output many.h5 --set run.shards=2 && cmp one.h5 many.h5
}

# In the warmup of the chains, at and after the switch, in the warmup of the ladders, and among the draws.
resumes() {
    local at first ranks=1
    emass_on 2 modes.yaml --overwrite --output one.h5 || return 1
    first=$(first_of one.h5)
    for at in 3 $((first / 2)) $((first - 1)) "$first" $((first + 1)) $((first + 30)) $((first + 600)); do
        rm -f cut.h5*
        stopped_at "$at" 2 modes.yaml --output cut.h5 || return 1
        emass_on "$ranks" modes.yaml --resume --output cut.h5 || return 1
        cmp one.h5 cut.h5 || { echo "after a stop at $at" && return 1; }
        ranks=$((ranks % 4 + 1))
    done
}

extends() {
    emass_on 2 modes.yaml --overwrite --output one.h5 --set run.draws=500 || return 1
    emass_on 1 modes.yaml --overwrite --output cut.h5 || return 1
    emass_on 3 modes.yaml --resume --output cut.h5 --set run.draws=500 || return 1
    cmp one.h5 cut.h5 && "$emass" verify cut.h5 --ranks 2
}

# One mode: not a bit of the draws differs, nor of the verdict, and there is nothing of ladders.
leaves_alone() { # SETTING...
    local settings=()
    for setting in "$@"; do settings+=(--set "$setting"); done
    limited "$emass" run one.yaml --overwrite --quiet --output plain.h5 "${settings[@]}" >plain || return 1
    limited mpirun -n 2 "$emass" run one.yaml --overwrite --quiet --output auto.h5 --set temper=auto \
        "${settings[@]}" >auto 2>why || return 1
    cmp plain auto || return 1
    [ ! -s why ] || { cat why && return 1; }
    "$emass" diff plain.h5 auto.h5 >differs
    cat differs
    ! grep -vE '^(config temper\.|(warmup_)?sample_stats visit: )' differs && ! h5ls auto.h5 | grep -q '^tempering'
}

# As a run without the section, to the byte.
never() {
    emass_on 1 one.yaml --overwrite --output one.h5 || return 1
    for setting in temper=never temper.when=never; do
        emass_on 2 one.yaml --overwrite --output many.h5 --set temper.legs=1 --set "$setting" && cmp one.h5 many.h5 || return 1
    done
}

resumes_plain() {
    local at
    emass_on 2 one.yaml --overwrite --output one.h5 --set temper=auto || return 1
    for at in 20 200; do
        rm -f cut.h5*
        stopped_at "$at" 1 one.yaml --output cut.h5 --set temper=auto || return 1
        emass_on 2 one.yaml --resume --output cut.h5 --set temper=auto || return 1
        cmp one.h5 cut.h5 || { echo "after a stop at $at" && return 1; }
    done
}

# Ladders take the place of two samplers: the same law, on other ranks, and after a stop among the draws of ladders.
list_of_samplers() {
    cat >list.stan <<'STAN'
parameters { real x; real y; }
model {
  target += log_mix(0.25, normal_lpdf(x | -8, 1) + normal_lpdf(y | -8, 1), normal_lpdf(x | 8, 1) + normal_lpdf(y | 8, 2));
}
STAN
    cat >list.yaml <<'YAML'
model: {name: stan, program: list.stan}
sampler:
  - {block: x, name: nuts}
  - {block: y, name: hmc}
temper: auto
run: {chains: 4, draws: 1000}
YAML
    emass_on 1 list.yaml --overwrite --output one.h5 && [ -n "$(first_of one.h5)" ] || return 1
    emass_on 3 list.yaml --overwrite --output many.h5 && cmp one.h5 many.h5 || return 1
    rm -f cut.h5*
    stopped_at $(($(first_of one.h5) + 100)) 2 list.yaml --output cut.h5 || return 1
    emass_on 3 list.yaml --resume --output cut.h5 && cmp one.h5 cut.h5 || return 1
    "$emass" summary one.h5
    "$emass" summary one.h5 --csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        NR > 1 { z = ($at["mean"] - 4) / $at["mcse_mean"]; print "z " z; n++; bad += z * z > 25 }
        END { exit !(n == 2 && !bad) }'
}


more_ranks() {
    local status=0
    emass_on 5 modes.yaml --overwrite --output none.h5 2>why || status=$?
    cat why
    [ "$status" = 2 ] && grep -q 'chains' why && [ ! -e none.h5 ]
}

check 'never' never
check 'a run in two modes is tempered, and says so' says_so
check 'the same bytes on 1, 2, 3, 4 ranks' same_on_ranks
check 'a given warmup, NUTS' same_on_ranks run.warmup=150 sampler.name=nuts
check 'draws until they are enough' same_on_ranks run.draws=auto
check 'the same bytes on shards' same_on_shards
if "$has_stanli"; then
    check 'a list of samplers' list_of_samplers
else
    skip 'a list of samplers' 'stanli is not installed'
fi
check 'a stop before, at and after the switch' resumes
check 'a finished run is extended and verified' extends
check 'a run in one mode is as it is without' leaves_alone
check 'the same with a given warmup' leaves_alone run.warmup=120
check 'the same with draws until they are enough' leaves_alone run.draws=auto
check 'a stop of a run in one mode' resumes_plain
check 'a word that is none' refused 'temper.when: found ' "$emass" run one.yaml --quiet --output none.h5 --set temper=sometimes
check 'a list' refused 'temper: found a value' "$emass" run one.yaml --quiet --output none.h5 --set 'temper=[auto]'
check 'a warmup that tells no modes' refused 'run.warmup: found 10 with temper: auto' "$emass" run one.yaml --quiet --output none.h5 --set temper=auto --set run.warmup=10
check 'a sampler that cannot be tempered' refused 'does not move by an exact density' "$emass" run one.yaml --quiet --output none.h5 --set temper=auto --set sampler.name=sghmc --set sampler.step_size=0.01
check 'more ranks than chains' more_ranks
finish
