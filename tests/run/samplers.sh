#!/usr/bin/env bash
# Every sampler of densities: run 50 on 2 ranks + resume 50 on 3, or 4, = run 100 on one, byte for byte.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >run.yaml <<'YAML'
model: {name: logistic, n: 300, intercept: false}
sampler: {name: hmc, step_size: 0.02, adapt_every: 5}
mass: {estimator: variance}
run: {chains: 5, warmup: 60, draws: 100}
YAML

same() { # SETTING...
    rm -f ./*.h5*
    ranks=$((7 - ranks)) # 3 and 4 in turn
    run_with 1 whole.h5 "$@" && run_with 2 parts.h5 "$@" run.draws=50 && run_with "$ranks" parts.h5 "$@" &&
        cmp whole.h5 parts.h5
}

# What a sampler needs beyond the defaults: gradients of minibatches, or a metric of the model.
settings_of() { # SAMPLER
    case $1 in
    hmc | nuts | walnuts) echo sampler.step_size=adapt run.warmup=auto ;;
    rwm) echo sampler.step_size=adapt sampler.steps=3 ;;
    rhmc | nphmc | slice) ;;
    *) echo sampler.minibatch=30 ;;
    esac
}

ranks=4
for sampler in $("$emass" list samplers | awk 'NR > 1 && /^  [a-z]/ { print $1 }'); do
    case $sampler in gibbs | lda_gibbs) continue ;; esac # local_state.sh, topics.sh
    # shellcheck disable=SC2046 # words
    check "$sampler" same sampler.name="$sampler" $(settings_of "$sampler")
done
check 'hmc, of a given number of steps' same sampler.leapfrog_steps=10
check 'hmc, warmup of given length' same sampler.step_size=adapt run.warmup=330
check 'nuts, each chain for itself' same sampler.name=nuts sampler.step_size=adapt mass.share=none
check 'slice, each chain for itself' same sampler.name=slice sampler.step_size=2 mass.share=none
check 'rwm, tempered' same sampler.name=rwm sampler.step_size=adapt run.warmup=30 run.draws=60 temper.rungs=3
check 'slice, tempered' same sampler.name=slice sampler.step_size=2 run.warmup=30 run.draws=60 temper.rungs=3
check 'sgnht with noise' same sampler.name=sgnht sampler.minibatch=30 mass.estimator=noise
check 'sghmc with momentum' same sampler.name=sghmc sampler.minibatch=30 mass.estimator=momentum
check 'sgnphmc with momentum and Q' same sampler.name=sgnphmc sampler.minibatch=30 \
    mass.estimator=momentum sampler.learn_thermostat_mass=true
finish
