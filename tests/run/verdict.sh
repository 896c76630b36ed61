#!/usr/bin/env bash
# One definition of convergence: the last line of progress, the verdict, the file, the summary and its
# advice have one set of numbers and limits; divergences and E-BFMI belong to it.
# shellcheck disable=SC2317 # functions are called by `check`
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

cd "$scratch" || exit
printf 'model: {name: gaussian, dim: 5}\nrun: {warmup: 300, draws: 500}\n' >g.yaml
printf 'model: {name: eight_schools}\nrun: {chains: 4, draws: 1000}\n' >schools.yaml
printf 'model: {name: eight_schools}\nsampler: {step_size: 1.2, leapfrog_steps: 10}\nrun: {warmup: 0, draws: 500}\nmass: {estimator: none}\n' >e.yaml

run() { # NAME ARGUMENT...
    local name=$1
    shift
    limited "$emass" run "$@" --output "$name.h5" --progress log >"$name.out" 2>"$name.err"
    cat "$name.err" "$name.out"
}

verdict_of() { # NAME
    grep -E '^(not converged|converged|converged with warnings): ' "$1.out"
}

# R-hat and ESS of the last line of progress, as the verdict has them.
agrees() { # NAME
    local progress verdict
    progress=$(tail -n 1 "$1.err" | sed -E '/  divergences /!s/  ESS [^ ]*/&  divergences 0/' |
        sed -nE 's/.*R-hat ([^ ]*)  ESS ([^ ]*)  divergences ([0-9]*).*/\1 \2 \3/p')
    verdict=$(verdict_of "$1" | sed -nE 's/.*R-hat ([^ ]*) .*ESS ([^ ]*) .* ([0-9]*) divergences?.*/\1 \2 \3/p')
    echo "progress: $progress; verdict: $verdict"
    [ -n "$progress" ] && [ "$progress" = "$verdict" ]
}

plain() { # whatever the checks on the way looked at
    local settings
    for settings in run.draws=500 run.draws=450 'stop.check_every=70' 'stop.ess=300' 'stop.r_hat=1.05'; do
        run plain g.yaml --overwrite --set "$settings" && agrees plain || return 1
    done
}

few_draws() { # have an R-hat above the limit, whatever the prior checks
    run few g.yaml --set run.draws=20 && agrees few && verdict_of few | grep '^not converged'
}

divergences() {
    run wild e.yaml --set sampler.step_size=2 && agrees wild || return 1
    verdict_of wild | grep -E '^not converged: .* [1-9][0-9]* divergences? \(limit 2\)' &&
        grep '^Divergences: ' wild.out
}

runs_away() { # a step without acceptance has another cause, and another cure
    run away g.yaml --set 'sampler={name: sghmc, step_size: 50}' --set run.draws=50 || return 1
    grep 'Divergences: .* (100 %). .*set sampler.step_size to a tenth' away.out
}

# Of ten seeds of NUTS some have a divergence or a few: a warning, with how many and where, in the run's last lines,
# in the file, which counts as converged, and in its summary and report.
warnings() {
    local seed
    for seed in 1 2 3 4 5 6 7 8 9 10; do
        run "warned" schools.yaml --overwrite --seed "$seed" --set sampler.name=nuts || return 1
        verdict_of warned | grep -E '^converged with warnings: worst R-hat .*, [1-4] divergences? \(limit 4\);' || continue
        grep -E '^Divergences: [1-4] of 4000 draws \(0\.[0-9]+ %\)\. .*So few are only a warning' warned.out &&
            h5dump -a /verdict warned.h5 | grep 'converged with warnings: ' && h5dump -a /converged warned.h5 | grep '(0): 1$' &&
            limited "$emass" summary warned.h5 | grep '^converged with warnings: worst R-hat' &&
            limited "$emass" report warned.h5 && grep '"grade":"warning","verdict":"converged with warnings: ' warned.html
        return
    done
    return 1
}

# What the run says of a file is what its summary says; also of an ArviZ file that has no verdict.
same_words() {
    run plain g.yaml --overwrite && verdict_of plain >said && limited "$emass" summary plain.h5 | cmp - <(head -n -1 plain.out) &&
        limited "$emass" summary plain.h5 | grep -Fx -f said &&
        run other g.yaml --overwrite --seed 2 --set run.draws=20 &&
        limited "$emass" summary other.h5 plain.h5 --common | grep -E '^not converged: worst R-hat .*; 8 chains x 20 draws$'
}

optimiser() { # is no sampler, whatever R-hat says: in the verdict, the file, its summary and report
    run search g.yaml --set 'sampler={name: adam, step_size: 0.1}' --set mass.estimator=none &&
        grep '^no sample of the posterior, adam being an optimiser: worst R-hat' search.out &&
        h5dump -a /converged search.h5 | grep '(0): 0$' && h5dump -a /optimiser search.h5 | grep '"adam"' &&
        limited "$emass" summary search.h5 | grep '^No sample: adam is an optimiser' &&
        limited "$emass" report search.h5 && grep '"verdict":"no sample of the posterior' search.html &&
        limited "$emass" list samplers | grep '^  adam .* not a sampler'
}

limits() { # 100 per chain, or those of the stop rule: in the verdict and in the advice
    run many g.yaml --set run.chains=16 --set run.draws=60 || return 1
    verdict_of many | grep 'ESS [0-9]* (limit 1600)' && grep 'ESS below 1600:' many.out || return 1
    run asked g.yaml --set run.chains=16 --set run.draws=60 --set stop.ess=400 --set stop.check_every=60 || return 1
    verdict_of asked | grep 'ESS [0-9]* (limit 400)' && ! grep 'ESS below 1600' asked.out
}

one() {
    run one g.yaml --set run.chains=1 --set run.draws=1 || return 1
    verdict_of one | grep -F '; 1 chain x 1 draw, ended' && grep -Fx 'posterior: 1 chain x 1 draw' one.out &&
        verdict_of one | grep -F 'R-hat undefined' && ! grep -e '-0 ' -e 'inf' one.err
}

stuck() { # chains that never move have no negative ESS
    run stuck e.yaml --set sampler.step_size=1000 && ! grep 'ESS -' stuck.err stuck.out
}

energy() { # is the same as from the file, on any number of ranks, and after a resume
    local whole
    run energy e.yaml --set sampler.step_size=0.2 --set run.thin=2 || return 1
    whole=$(verdict_of energy)
    grep 'smallest E-BFMI [0-9.]* (limit 0.3)' <<<"$whole" || return 1
    run parts e.yaml --set sampler.step_size=0.2 --set run.thin=2 --set run.draws=200 || return 1
    run parts e.yaml --set sampler.step_size=0.2 --set run.thin=2 --resume && [ "$(verdict_of parts)" = "$whole" ] &&
        run ranks e.yaml --set sampler.step_size=0.2 --set run.thin=2 --ranks 3 &&
        [ "$(verdict_of ranks)" = "$whole" ]
}

check 'progress and verdict agree' plain
check 'too few draws' few_draws
check 'many divergences are not converged' divergences
check 'a few are a warning' warnings
check 'the same words in the summary' same_words
check 'a step size that is too large' runs_away
check 'an optimiser is no sampler' optimiser
check 'one limit' limits
check 'one chain, one draw' one
check 'chains that do not move' stuck
check 'E-BFMI' energy
finish
