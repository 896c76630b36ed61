#!/usr/bin/env bash
# One rank fails, at every site where it can: all ranks end soon, the exit status is not 0, one line
# names the rank, and no file is taken for complete.   timeout: 400
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

awk 'BEGIN { srand(1); for (i = 0; i < 500; i++) print rand(), rand(), i % 2 }' >data.csv
cat >run.yaml <<'YAML'
model: {name: logistic, data: data.csv}
sampler: {name: hmc}
run: {chains: 4, warmup: 200, draws: 200}
YAML

# SITE:RANK[:N] fails within 10 s (and what mpirun itself needs to start and stop).
fails() { # FAULT
    local start=$SECONDS status=0
    rm -f out.h5
    EMASS_FAULT=$1 timeout 30 mpirun -n 2 "$emass" run run.yaml --output out.h5 \
        >log 2>&1 || status=$?
    cat log
    [ "$status" != 0 ] && [ "$status" != 124 ] && [ $((SECONDS - start)) -le 12 ] &&
        [ "$(grep -c '^emass: ' log)" = 1 ] && grep -q '^emass: .*rank 1: ' log &&
        { [ ! -e out.h5 ] || ! "$emass" summary out.h5 2>&1 | grep -q '^mu'; }
}

for site in config data allocate:1:5 allocate:1:60 allocate:1:200 model model:1:3000 \
    hdf5-create hdf5-write hdf5-write:1:4 hdf5-close; do
    fault=$site
    [[ $site == *:* ]] || fault=$site:1
    check "EMASS_FAULT=$fault" fails "$fault"
done
check 'without a fault it runs' timeout 60 mpirun -n 2 "$emass" run run.yaml --quiet --output ok.h5
finish
