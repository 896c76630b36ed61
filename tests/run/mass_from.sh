#!/usr/bin/env bash
# A run that begins with the mass, step size and positions of an earlier one (mass.from).
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

cat >run.yaml <<'YAML'
model: {name: gaussian, dim: 30, condition: 10000, rotation: true}
sampler: {name: hmc}
run: {chains: 4, warmup: 1000, draws: 500}
output: {save_unconstrained: true}
YAML

# The smallest ESS of a run; 0 where chains that never moved leave it undefined.
ess() { # ARGUMENT...
    limited mpirun -n 2 "$emass" run run.yaml --progress none --output new.h5 --overwrite "$@" |
        sed -nE 's/.*smallest ESS (undefined|[0-9]+).*/\1/; T; s/undefined/0/; p'
}

# Without any warmup of its own it samples like the earlier run, whose smallest of 60 bulk and tail
# ESS of 2000 draws is 1000 or so; after 50 iterations that learn no mass it is below 100.
takes_over() {
    local with without
    with=$(ess --set mass.from=old.h5 --set mass.from_positions=true --set run.warmup=0)
    without=$(ess --set run.warmup=50 --set mass.estimator=none)
    echo "smallest ESS: $with with, $without without"
    [ "$with" -gt 350 ] && [ "$without" -lt 200 ]
}

# What was learned is taken as it is, to the bit, by any number of chains.
is_the_same() {
    limited "$emass" run run.yaml --quiet --output ten.h5 --set run.chains=10 --set run.draws=20 &&
        limited mpirun -n 3 "$emass" run run.yaml --quiet --output same.h5 --set run.chains=10 \
            --set run.draws=20 --set mass.from=ten.h5 --set run.warmup=0 &&
        for name in inv_mass step_size trajectory; do
            h5diff ten.h5 same.h5 "/mass_adaptation/$name" || return
        done
}

# On a normal distribution steps of several stages pay: its trajectories have 2 gradients. A run
# without warmup goes on with them, and halves the step size where the config asks for leapfrog.
stages_are_kept() {
    local integrator
    for integrator in auto leapfrog; do
        limited "$emass" run run.yaml --quiet --output "$integrator.h5" --set mass.from=old.h5 \
            --set run.warmup=0 --set run.draws=50 --set sampler.integrator="$integrator" || return
    done
    echo "$(first_steps old.h5), $(first_steps auto.h5), $(first_steps leapfrog.h5) gradients"
    [ "$(first_steps old.h5)" = 2 ] && [ "$(first_steps auto.h5)" = 2 ] && [ "$(first_steps leapfrog.h5)" -gt 2 ]
}

# The number of gradients of the first trajectory.
first_steps() { # FILE
    h5dump -d /sample_stats/n_steps "$1" | sed -nE 's/^ *\(0,0\): ([0-9]+),.*/\1/p'
}

check 'an earlier run' limited mpirun -n 2 "$emass" run run.yaml --quiet --output old.h5
check 'mass, step size and positions are taken over' takes_over
check 'they are what they were, to the bit' is_the_same
check 'and so are steps of several stages' stages_are_kept
check 'an earlier run of another dimension' run_is_refused 'expected 7 or 7 x 7' --set mass.from=old.h5 \
    --set model.dim=7
check 'no such file' run_is_refused 'missing.h5' --set mass.from=missing.h5
finish
