#!/usr/bin/env bash
# A sampler for each block of the parameters: the same bytes on any ranks and shards, exact resume,
# statistics and masses of their own, and one line for what cannot be.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

awk 'BEGIN { srand(4); for (i = 0; i < 1500; i++) { a = rand(); b = rand(); print a "," b "," a - b + rand() } }' >t.csv
# A kernel with minibatches and one without, coefficients and the scale of the noise.
cat >two.yaml <<'YAML'
model: {name: linear, data: t.csv, sigma: unknown}
sampler:
  - {block: beta, name: sghmc, minibatch: 100, step_size: 0.01, leapfrog_steps: 3}
  - {block: sigma, name: nuts, max_treedepth: 4}
run: {chains: 3, warmup: 60, draws: 150, minibatch_sums: by_parts}
YAML

whole() {
    limited "$emass" run two.yaml --quiet --output one.h5
}
check 'two samplers on two blocks' whole
same() { # RANKS SHARDS
    limited mpirun -n "$1" "$emass" run two.yaml --quiet --overwrite --output "$1.$2.h5" \
        --set "run.shards=$2" && cmp one.h5 "$1.$2.h5"
}
check 'the same bytes on 3 ranks' same 3 1
check 'on 2 shards' same 2 2
resumed() {
    limited mpirun -n 2 "$emass" run two.yaml --quiet --output part.h5 --set run.draws=70 &&
        limited mpirun -n 3 "$emass" run two.yaml --quiet --output part.h5 --resume &&
        for group in posterior sample_stats; do
            "$emass" summary one.h5 --group "$group" --csv >one.csv
            "$emass" summary part.h5 --group "$group" --csv >part.csv
            cmp one.csv part.csv && [ -s one.csv ] || return
        done
}
check '70 draws and 80 more are 150' resumed
learned() { # every sampler has its statistics, its mass and its step size
    h5dump -n one.h5 >names && for name in beta.step_size sigma.acceptance_rate lp diverging; do
        grep -q "/sample_stats/$name$" names || return
    done && for block in beta sigma; do
        grep -q "/mass_adaptation_$block/inv_mass$" names || return
    done && h5dump -a /sampler one.h5 | grep -q 'beta: sghmc, sigma: nuts'
}
check 'each has its statistics and its mass' learned
stored() { # the stored config is one that parses, and says the same
    "$emass" verify one.h5 --ranks 2 --draws 50
}
check 'verify finds it again' stored
other_step() {
    "$emass" run two.yaml --quiet --overwrite --output other.h5 --set 'sampler[0].step_size=0.005' &&
        h5dump -d /sample_stats/beta.step_size -s 0,0 -c 1,1 other.h5 | grep -q 0.005
}
check 'an option of one of them by its number' other_step

# What an earlier run has learned, each sampler from its own: no warmup is needed then.
goes_on_from() {
    limited "$emass" run two.yaml --quiet --output from.h5 --set mass.from=one.h5 --set run.warmup=0 --set run.draws=20 &&
        limited mpirun -n 3 "$emass" run two.yaml --quiet --output from3.h5 --set mass.from=one.h5 \
            --set run.warmup=0 --set run.draws=20 && cmp from.h5 from3.h5 || return
    for name in mass_adaptation_beta/inv_mass mass_adaptation_sigma/inv_mass mass_adaptation_sigma/step_size; do
        h5diff one.h5 from.h5 "/$name" "/$name" || return
    done
}
check 'a run begins with what each sampler of another has learned' goes_on_from
told() { # what warmup took, of each sampler that has stages
    limited "$emass" run bad.yaml --output told.h5 >told.txt &&
        grep -q '^hyper: warmup [0-9]* iterations.*; effects: warmup [0-9]* iterations' told.txt
}
printf '%s\n' 'model: {name: eight_schools}' 'sampler:' '  - {block: hyper, name: nuts}' \
    '  - {block: effects, name: hmc}' 'run: {warmup: 60, draws: 20}' >bad.yaml
check 'what each has learned is said' told

# run.warmup: auto. Each stops adapting after what it takes, and the draws begin after the longest.
took() { # FILE BLOCK: iterations of a sampler's own warmup; of no BLOCK, those of the run
    if [ -n "${2:-}" ]; then
        h5dump -d "/mass_adaptation_$2/stage_iteration" -y -w 1 "$1" | tr -d ' ,' | grep -E '^[0-9]+$' | tail -n 1
    else
        h5dump -a tuning_steps "$1" | sed -nE 's/.*\(0\): ([0-9]+).*/\1/p'
    fi
}
auto_of_two() { # both end by themselves
    printf '%s\n' 'model: {name: eight_schools}' 'sampler:' '  - {block: hyper, name: nuts}' \
        '  - {block: effects, name: hmc}' 'run: {draws: 20}' >auto.yaml
    limited "$emass" run auto.yaml --quiet --output auto.h5 &&
        limited mpirun -n 3 "$emass" run auto.yaml --quiet --output auto3.h5 && cmp auto.h5 auto3.h5 || return
    local hyper effects
    hyper=$(took auto.h5 hyper) && effects=$(took auto.h5 effects)
    echo "$hyper, $effects, together $(took auto.h5)"
    [ "$(took auto.h5)" = $((hyper > effects ? hyper : effects)) ]
}
check 'auto: the longest of two' auto_of_two
auto_of_one() { # a kernel with minibatches takes 1000, nuts what it needs, wherever it is stopped
    limited "$emass" run two.yaml --quiet --output auto1.h5 --set run.warmup=auto --set run.draws=20 || return
    local at n=0
    for at in 1 400 900; do
        stopped_at "$at" $((1 + n++ % 3)) two.yaml --output parts.h5 --resume --set run.warmup=auto --set run.draws=20 ||
            return
    done
    limited "$emass" run two.yaml --quiet --output parts.h5 --resume --set run.warmup=auto --set run.draws=20 || return
    echo "$(took auto1.h5 sigma) of $(took auto1.h5)"
    cmp auto1.h5 parts.h5 && [ "$(took auto1.h5)" = 1000 ] && [ "$(took auto1.h5 sigma)" -lt 1000 ]
}
check 'auto: 1000 of one without stages' auto_of_one

# A mass of its own: what it does not say is that of the section.
cat >own.yaml <<'YAML'
model: {name: linear, data: t.csv, sigma: unknown}
sampler:
  - {block: beta, name: hmc, leapfrog_steps: 3, mass: {estimator: none}}
  - {block: sigma, name: hmc, leapfrog_steps: 2, mass: {estimator: variance, kappa: {eta: 1}}}
mass: {s_count: 40, structure: diag}
run: {chains: 3, warmup: 60, draws: 60}
YAML
own_mass() { # the first keeps the identity without an M-step, the second learns one of its own
    limited "$emass" run own.yaml --quiet --output own.h5 &&
        limited mpirun -n 2 "$emass" run own.yaml --quiet --output two.h5 && cmp own.h5 two.h5 &&
        h5dump -d /mass_adaptation_beta/inv_mass -y -w 100 own.h5 | grep -q '^ *1, 1, 1$' &&
        h5dump -n own.h5 >names && ! grep -q /mass_adaptation_beta/S_count names &&
        grep -q /mass_adaptation_sigma/S_count names &&
        h5dump -d /mass_adaptation_sigma/S_count -s 0 -c 1 own.h5 | grep -q ': 40$'
}
check 'a mass of its own' own_mass
own_resumed() {
    limited mpirun -n 2 "$emass" run own.yaml --quiet --output half.h5 --set run.draws=20 &&
        limited mpirun -n 3 "$emass" run own.yaml --quiet --output half.h5 --resume &&
        "$emass" summary own.h5 --csv >one.csv && "$emass" summary half.h5 --csv >half.csv &&
        cmp one.csv half.csv && "$emass" verify own.h5 --ranks 2 --draws 50
}
check 'resumed, and found again by verify' own_resumed
own_printed() { # what is printed is a config that says the same
    "$emass" check own.yaml | sed '/^# plan$/,$d' >full.yaml &&
        grep -A4 '^    mass:' full.yaml | grep -q '^        eta: 1$' &&
        limited "$emass" run full.yaml --quiet --output full.h5 --set model.data=t.csv &&
        cmp own.h5 full.h5
}
check 'check prints it' own_printed
own_changed() { # of one sampler, or of all that do not say otherwise
    ! "$emass" run own.yaml --quiet --resume --output half.h5 --set 'sampler[0].mass.estimator=fisher' 2>said &&
        grep -q 'another config: sampler\[0\].mass.estimator differ' said &&
        ! "$emass" run own.yaml --quiet --resume --output half.h5 --set mass.s_count=50 2>said &&
        grep -q 'another config: mass.s_count differ' said &&
        "$emass" run own.yaml --quiet --resume --output half.h5 --set 'sampler[1].mass.s_count=40'
}
check 'what changes of it on resume is named' own_changed

# Kernels that move by the model's metric: each has its part of it, at where its chain stands.
cat >metric.yaml <<'YAML'
model: {name: linear, data: t.csv, sigma: unknown}
sampler:
  - {block: beta, name: rhmc, leapfrog_steps: 2}
  - {block: sigma, name: sgrnphmc, step_size: 0.01, leapfrog_steps: 2}
run: {chains: 3, warmup: 20, draws: 30}
YAML
by_metric() { # SETTING...: one rank, 2 shards of 4 ranks, and 2 ranks resumed on 3
    local extra=()
    for setting in "$@"; do extra+=(--set "$setting"); done
    rm -f m*.h5*
    limited "$emass" run metric.yaml --quiet --output m1.h5 "${extra[@]}" &&
        limited mpirun -n 4 "$emass" run metric.yaml --quiet --output m4.h5 --set run.shards=2 \
            "${extra[@]}" && cmp m1.h5 m4.h5 &&
        limited mpirun -n 2 "$emass" run metric.yaml --quiet --output m2.h5 "${extra[@]}" --set run.draws=10 &&
        limited mpirun -n 3 "$emass" run metric.yaml --quiet --output m2.h5 "${extra[@]}" --resume &&
        "$emass" summary m1.h5 --csv >m1.csv && "$emass" summary m2.h5 --csv >m2.csv && cmp m1.csv m2.csv
}
check 'rhmc and sgrnphmc of a block each' by_metric
others=('sampler[0].name=sgrld' 'sampler[1].name=sgrhmc')
check 'sgrld and sgrhmc of a block each' by_metric "${others[@]}" 'sampler[0].metric=fisher' 'sampler[1].metric=fisher'
check 'by the density' by_metric "${others[@]}" 'sampler[0].metric=density' 'sampler[1].metric=density'

samplers() { # LINE...: a config with these samplers
    printf '%s\n' 'model: {name: eight_schools}' 'sampler:' "$@" 'run: {warmup: 20, draws: 20}' >bad.yaml
}
samplers '  - {block: hyper, name: nuts}' '  - {block: effect, name: nuts}'
check 'a block that the model has not' refused_twice "bad.yaml:4: block: found 'effect'.*hyper, effects" bad.yaml
samplers '  - {block: hyper, name: nuts}'
check 'a block without a sampler' refused_twice 'no sampler for block effects' bad.yaml
samplers '  - {block: hyper, name: nuts}' '  - {block: hyper, name: hmc}' '  - {block: effects, name: hmc}'
check 'a block with two' refused_twice "bad.yaml:4: block: found 'hyper' again" bad.yaml
samplers '  - {block: hyper, name: nuts}' '  - {name: hmc}'
check 'a sampler without a block' refused_twice 'bad.yaml:4: sampler\[1\].block is missing' bad.yaml
samplers '  - {block: hyper}' '  - {block: effects, name: hmc}'
check 'a block without a name of a sampler' refused_twice 'sampler\[0\].name is missing' bad.yaml
samplers '  - {block: hyper, name: rhmc}' '  - {block: effects, name: hmc}'
samplers '  - {block: hyper, name: gibbs}' '  - {block: effects, name: hmc}'
check 'an update that the model has not' refused_twice 'needs an update by the model, but model eight_schools has none' bad.yaml
samplers '  - {block: hyper, name: nuts}' '  - {block: effects, name: hmc, step_sise: 1}'
check 'a misspelt option' refused_twice 'bad.yaml:4: unknown key sampler\[1\].step_sise; did you mean step_size' bad.yaml
samplers '  - {block: hyper, name: nuts}' '  - {block: effects, name: hmc}'
check 'an option of a sampler without a number' refused_twice 'sampler is a list: expected sampler\[0\] to sampler\[1\]' bad.yaml \
    --set sampler.step_size=1
other_blocks() { # a file of other samplers has nothing for these
    ! limited "$emass" run bad.yaml --set mass.from=one.h5 2>why.txt && [ ! -e bad.h5 ] && cat why.txt &&
        grep -q 'one.h5: .*mass_adaptation_hyper' why.txt
}
check 'an earlier run of other blocks' other_blocks
samplers '  - {block: hyper, name: nuts, mass: {estimater: none}}' '  - {block: effects, name: hmc}'
check 'a misspelt option of a mass' refused_twice 'bad.yaml:3: unknown key sampler\[0\].mass.estimater; did you mean estimator' bad.yaml
samplers '  - {block: hyper, name: nuts, mass: none}' '  - {block: effects, name: hmc}'
check 'a mass that is no mapping' refused_twice 'bad.yaml:3: sampler\[0\].mass: found a value, expected a mapping' bad.yaml
samplers '  - {block: hyper, name: nuts, mass: {from: one.h5}}' '  - {block: effects, name: hmc}'
check 'an earlier run of one of them' refused_twice 'unknown key sampler\[0\].mass.from; did you mean mass.from' bad.yaml
samplers '  - {block: hyper, name: nuts, mass: {estimator: noise}}' '  - {block: effects, name: hmc}'
cannot_learn() { # known only where the chains are made
    limited "$emass" run bad.yaml 2>said
    [ $? = 2 ] && [ ! -e bad.h5 ] && grep -q 'bad.yaml:3: mass.estimator is noise but sampler nuts' said
}
check 'what the sampler cannot learn by' cannot_learn
samplers '  - {block: hyper, name: nuts}' '  - hmc'
check 'text among the samplers' refused_twice 'bad.yaml:4: found text in a list of mappings' bad.yaml
changed() { # another sampler on resume is another config
    cp one.h5 again.h5 &&
        ! "$emass" run two.yaml --quiet --resume --output again.h5 --set 'sampler[1].name=hmc' 2>said &&
        grep -q 'another config: sampler\[1\].name differ' said
}
check 'what changes on resume is named' changed
finish
