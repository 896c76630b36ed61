#!/usr/bin/env bash
# The same seed gives the same file, byte for byte, on any number of ranks: every criterion, both
# structures, the stop rule, chains that do not divide, saved warmup.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >run.yaml <<'YAML'
model: {name: gaussian, dim: 6, condition: 100, rotation: true}
sampler: {name: hmc, leapfrog_steps: 5}
run: {chains: 8, warmup: 150, draws: 200}
output: {flush_every: 50}
YAML

# The files of the given rank counts are the same; what they are called must not matter either.
same() { # RANKS SETTINGS...
    local ranks=$1 n sums settings=()
    shift
    for n in "$@"; do settings+=(--set "$n"); done
    rm -f ./*.h5
    for n in $ranks; do
        limited mpirun -n "$n" "$emass" run run.yaml --quiet --output "on$n.h5" \
            "${settings[@]}" || return 1
    done
    sums=$(md5sum ./*.h5)
    echo "$sums"
    [ "$(cut -d' ' -f1 <<<"$sums" | sort -u | wc -l)" = 1 ] &&
        [ "$(wc -l <<<"$sums")" = "$(wc -w <<<"$ranks")" ]
}

differs() {
    "$emass" run run.yaml --quiet --output one.h5 --seed 1 || return 1
    "$emass" run run.yaml --quiet --output two.h5 --seed 2 || return 1
    ! cmp -s one.h5 two.h5
}

check 'fisher, dense, stop rule: one md5 on 1 2 3 4 8 ranks' \
    same '1 2 3 4 8' stop.r_hat=1.01 stop.ess=400 stop.check_every=100
for estimator in fisher momentum variance gradient; do
    for structure in dense diag; do
        check "$estimator, $structure: one md5 on 1 3 ranks" \
            same '1 3' sampler.adapt_every=6 mass.estimator=$estimator \
            mass.structure=$structure
    done
done
check 'momentum with the interval rule' same '1 3' sampler.adapt_every=5 mass.estimator=momentum \
    mass.s_count_rule=interval
check 'each chain for itself' same '1 3' mass.share=none
check 'saved warmup, thinning, 5 chains' same '1 2 4' run.chains=5 run.thin=3 \
    output.save_warmup=true output.save_unconstrained=true
check 'adaptation updates every 7 iterations' same '1 2' sampler.adapt_every=7
check 'metadata larger than a cache of HDF5: one md5 on 1 3 ranks' same '1 3' model.dim=2 \
    sampler.leapfrog_steps=1 run.draws=100000 output.flush_every=100
check 'another seed gives another file' differs
finish
