#!/usr/bin/env bash
# What a run says about itself on standard error, where it should and only there.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

cat >run.yaml <<'YAML'
model: {name: logistic, n: 300, intercept: false}
sampler: {name: hmc}
run: {chains: 4, warmup: 800, draws: 20}
YAML

go() { # SETTING...
    local setting options=()
    for setting in "$@"; do options+=(--set "$setting"); done
    { limited mpirun -n 2 "$emass" run run.yaml --progress none --output o.h5 --overwrite \
        "${options[@]}" >said; } 2>&1
}

notes() { # TEXT SETTING...
    local text=$1
    shift
    [ "$(go "$@" | grep -c "^emass: note: .*$text")" = 1 ]
}

silent() { # SETTING...
    ! go "$@" | grep .
}

sghmc=(sampler.name=sghmc sampler.minibatch=30)
check 'momenta that teach nothing' notes 'nothing was learned' mass.estimator=momentum \
    sampler.leapfrog_steps=10
check 'draws and gradients that do' silent
check 'more noise than friction' notes 'draws are too wide' "${sghmc[@]}" sampler.friction=0.01
check 'enough friction' silent "${sghmc[@]}" sampler.friction=10 sampler.step_size=0.005
finish
