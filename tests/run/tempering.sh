#!/usr/bin/env bash
# Tempered runs: the same bytes on any number of ranks and shards, stops and kills, and one line for what cannot be
# tempered.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

printf 'model: {name: logistic, n: 400, intercept: false}\ntemper: {}\nrun: {chains: 3, draws: 60, warmup: 120}\noutput: {flush_every: 20, save_warmup: true}\n' >run.yaml
printf 'model: {name: eight_schools}\ntemper: {}\n' >schools.yaml

emass_on() { # RANKS ARGUMENT...
    limited mpirun -n "$1" "$emass" run "${@:2}" --quiet
}

same_on_ranks() { # SETTING...
    local n settings=()
    for setting in "$@"; do settings+=(--set "$setting"); done
    emass_on 1 run.yaml --overwrite --output one.h5 "${settings[@]}" || return 1
    for n in 2 3 4 8; do
        emass_on "$n" run.yaml --overwrite --output many.h5 "${settings[@]}" || return 1
        cmp one.h5 many.h5 || { echo "on $n ranks" && return 1; }
    done
}

same_on_shards() {
    local shards
    emass_on 1 run.yaml --overwrite --output one.h5 || return 1
    for shards in 2 3; do
        emass_on $((2 * shards)) run.yaml --overwrite --output many.h5 --set run.shards="$shards" || return 1
        cmp one.h5 many.h5 || { echo "on $shards shards" && return 1; }
    done
}

# In the first and second halves of rounds, at their ends, and among the draws.
resumes() {
    local at ranks=1
    emass_on 2 run.yaml --overwrite --output one.h5 || return 1
    for at in 3 8 20 55 56 90 120 150; do
        rm -f cut.h5*
        stopped_at "$at" 2 run.yaml --output cut.h5 || return 1
        emass_on "$ranks" run.yaml --resume --output cut.h5 || return 1
        cmp one.h5 cut.h5 || { echo "after a stop at $at" && return 1; }
        ranks=$((ranks % 4 + 1))
    done
}

killed() {
    rm -f cut.h5*
    emass_on 1 run.yaml --overwrite --output one.h5 --set run.draws=3000 --set model.n=4000 || return 1
    limited mpirun -n 3 "$emass" run run.yaml --output "$scratch/cut.h5" --quiet --set run.draws=3000 \
        --set model.n=4000 --set output.checkpoint_every=0.1 >log 2>&1 &
    local job=$!
    wait_for cut.h5.checkpoint
    mapfile -t pids < <(ranks_of "$scratch/cut.h5")
    kill -KILL "${pids[0]}" 2>/dev/null
    wait "$job"
    while [ -n "$(ranks_of "$scratch/cut.h5")" ]; do sleep 0.1; done
    emass_on 2 run.yaml --resume --output cut.h5 --set run.draws=3000 --set model.n=4000 && cmp one.h5 cut.h5
}

extends() {
    emass_on 2 run.yaml --overwrite --output one.h5 --set run.draws=90 || return 1
    emass_on 1 run.yaml --overwrite --output cut.h5 || return 1
    emass_on 3 run.yaml --resume --output cut.h5 --set run.draws=90 || return 1
    cmp one.h5 cut.h5
}


refused_prior() {
    printf 'model: {name: gaussian, dim: 2}\ntemper: {reference: prior}\n' >g.yaml
    refused 'temper.reference: found prior' "$emass" run g.yaml --quiet --output none.h5
}

not_tempered_before() {
    local status=0
    sed '/^temper/d' run.yaml >plain.yaml
    rm -f cut.h5*
    stopped_at 50 2 plain.yaml --output cut.h5 || return 1
    limited "$emass" run run.yaml --quiet --output cut.h5 --resume 2>why || status=$?
    cat why
    [ "$status" = 2 ] && grep -q 'temper' why
}

# The table begins with the better model; a file of other data, or without evidence, is refused in one line.
compares_models() {
    local status=0
    awk 'BEGIN { srand(3); print "x,z,y"; for (i = 0; i < 40; i++) { x = rand(); print x "," rand() "," 3 * x + rand() } }' >t.csv
    for right in x z; do
        printf 'model: {name: linear, data: t.csv, formula: y ~ %s, sigma: unknown}\ntemper: {}\nrun: {draws: 200}\n' "$right" >m.yaml
        limited "$emass" run m.yaml --overwrite --quiet --output "$right.h5" || return 1
    done
    limited "$emass" evidence z.h5 x.h5 --same-data >table || return 1
    cat table
    awk 'NR == 2 && $1 == "x.h5" && $4 == 0 { a = 1 } NR == 3 && $1 == "z.h5" && $4 < -5 { b = 1 } END { exit !(a && b) }' table || return 1
    limited "$emass" evidence z.h5 x.h5 2>why || status=$?
    [ "$status" = 2 ] && [ "$(wc -l <why)" = 1 ] && grep -q 'has other data' why || return 1
    sed '/^temper/d' m.yaml >plain.yaml
    limited "$emass" run plain.yaml --overwrite --quiet --output plain.h5 || return 1
    ! limited "$emass" evidence plain.h5 2>why && grep 'found no log evidence' why
}

blocks='sampler:
  - {block: beta, name: rhmc, leapfrog_steps: 3}
  - {block: sigma, name: slice}'
data='model: {name: linear, data: xy.csv, formula: y ~ a + b}'
awk 'BEGIN { srand(1); print "y,a,b"; for (i = 0; i < 50; i++) { a = rand(); b = rand(); print a - b + rand() "," a "," b } }' >xy.csv

list_of_samplers() {
    local at ranks
    printf '%s\n' "$data" "$blocks" 'temper: {}' 'run: {chains: 3, draws: 60, warmup: 120}' 'output: {flush_every: 20}' >list.yaml
    emass_on 1 list.yaml --overwrite --output one.h5 || return 1
    for ranks in 2 3 4; do
        emass_on "$ranks" list.yaml --overwrite --output many.h5 || return 1
        cmp one.h5 many.h5 || { echo "on $ranks ranks" && return 1; }
    done
    for at in 20 56 150; do
        rm -f cut.h5*
        stopped_at "$at" 2 list.yaml --output cut.h5 || return 1
        emass_on 3 list.yaml --resume --output cut.h5 || return 1
        cmp one.h5 cut.h5 || { echo "after a stop at $at" && return 1; }
    done
}

# References and masses of low rank, of all parameters and of two blocks, with ranks that have no ladder.
in_many_dimensions() { # SAMPLER
    local at ranks
    printf '%s\n' 'model: {name: gaussian, dim: 210, condition: 400, rotation: true, blocks: 2}' "sampler: $1" \
        'temper: {rungs: 4}' 'run: {chains: 3, draws: 20, warmup: 60}' 'output: {flush_every: 10}' >many.yaml
    emass_on 1 many.yaml --overwrite --output one.h5 || return 1
    for ranks in 2 3 4 8; do
        emass_on "$ranks" many.yaml --overwrite --output many.h5 || return 1
        cmp one.h5 many.h5 || { echo "on $ranks ranks" && return 1; }
    done
    for at in 14 40 55 70; do
        rm -f cut.h5*
        stopped_at "$at" 2 many.yaml --output cut.h5 || return 1
        emass_on 3 many.yaml --resume --output cut.h5 || return 1
        cmp one.h5 cut.h5 || { echo "after a stop at $at" && return 1; }
    done
}

# Three kernels of one posterior; each log evidence has a standard error of 0.02 or less.
same_evidence() {
    printf '%s\n' "$data" 'temper: {}' 'run: {draws: 400}' >plain.yaml
    printf '%s\n' "$data" "$blocks" 'temper: {}' 'run: {draws: 400}' >list.yaml
    limited "$emass" run plain.yaml --overwrite --output a.h5 --quiet || return 1
    limited "$emass" run plain.yaml --overwrite --output b.h5 --quiet --set sampler.name=nuts --set run.seed=2 || return 1
    limited "$emass" run list.yaml --overwrite --output c.h5 --quiet --set run.seed=3 || return 1
    "$emass" evidence a.h5 b.h5 c.h5 >table || return 1
    cat table
    awk 'NR > 1 { d = $4 < 0 ? -$4 : $4; if (d > 0.1) bad = 1; n++ } END { exit !(n == 3 && !bad) }' table
}

says_evidence() {
    limited "$emass" run schools.yaml --overwrite --output s.h5 >out 2>/dev/null || return 1
    "$emass" summary s.h5 >again && grep -E '^log evidence -31\.[23][0-9] ' again && grep -E '^log evidence ' out
}

check 'the same bytes on 1, 2, 3, 4, 8 ranks' same_on_ranks
check 'one ladder on 1, 2, 3, 4, 8 ranks' same_on_ranks run.chains=1
check 'one leg of two rungs, NUTS' same_on_ranks temper.legs=1 temper.rungs=2 sampler.name=nuts
check 'rungs as given, more copies than ranks by an odd number' same_on_ranks temper.rungs=5 run.chains=5
check 'the same bytes on shards' same_on_shards
check 'Riemannian HMC between reference and posterior' same_on_ranks sampler.name=rhmc sampler.leapfrog_steps=3
check 'samplers of two blocks, the same bytes on ranks and after stops' list_of_samplers
check '210 dimensions, the same bytes on ranks and after stops' in_many_dimensions '{name: hmc}'
check 'a block of 105 of them' in_many_dimensions '[{block: block_1, name: nuts}, {block: block_2, name: hmc}]'
check 'evidence by Riemannian HMC and by a list of samplers' same_evidence
check 'a stop in every part of a round, and among the draws' resumes
if command -v pgrep >/dev/null; then
    check 'a rank that is killed' killed
else
    skip 'a rank that is killed' 'pgrep (procps) is not installed'
fi
check 'a finished run is extended' extends
check 'a run that was not tempered is not resumed as one' not_tempered_before
check 'models by their evidence' compares_models
check 'a sampler of minibatches' refused_twice 'does not move by an exact density' run.yaml --set sampler.name=sghmc --set sampler.step_size=0.01
check 'a number of rungs' refused_twice 'temper.rungs' run.yaml --set temper.rungs=1
check 'a reference that is none' refused_twice 'temper.reference' run.yaml --set temper.reference=nowhere
check 'a prior that a model cannot draw from' refused_prior
check 'run and summary say the evidence' says_evidence
finish
