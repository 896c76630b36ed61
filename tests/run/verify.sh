#!/usr/bin/env bash
# emass verify: finds no difference where there is none, and the first one where there is.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
python=$(cd "$(dirname "$0")/../.." && pwd)/analysis/venv/bin/python
cd "$scratch" || exit 1

cat >run.yaml <<'YAML'
model: {name: eight_schools}
sampler: {name: hmc}
run: {chains: 4, warmup: 300, draws: 200}
stop: {r_hat: 1.5, ess: 10, check_every: 50}
YAML


changed() { # one draw of chain 2
    "$python" - <<'PYTHON' && says 1 'theta[Hotchkiss], chain 2, draw 7: ' "$emass" verify run.h5 --ranks 3
import h5py
with h5py.File("run.h5", "r+") as file:
    file["posterior/theta"][2, 7, 4] += 1e-12
PYTHON
}

check 'a run' limited mpirun -n 2 "$emass" run run.yaml --quiet
check 'is the same on 3 ranks' limited "$emass" verify run.h5 --ranks 3
check 'and on one' limited "$emass" verify run.h5 --draws 1000
if [ -x "$python" ]; then
    check 'a changed draw is found' changed
else
    skip 'a changed draw is found' 'no analysis/venv: make analysis/venv/ready'
fi
fewer_columns() { # since the run: what is in the file is wider than what is drawn now
    printf 'a,b,c,d,y\n%s\n' "$(seq 40 | awk '{ print $1 % 7, $1 % 5, $1 % 3, $1 % 11, $1 % 2 }' OFS=,)" >data.csv
    printf 'model: {name: logistic, data: data.csv}\nsampler: {name: hmc}\n' >columns.yaml
    limited "$emass" run columns.yaml --quiet && cut -d, -f2- data.csv >cut.csv && mv cut.csv data.csv &&
        says 1 'beta of 5 numbers in the file is beta of 4 now' "$emass" verify columns.h5
}

check 'data that lost a column since' fewer_columns
check 'a missing file' says 2 'none.h5' "$emass" verify none.h5
limited "$emass" run run.yaml --quiet --output none.drawn.h5 --max-time 0s 2>/dev/null
check 'a run that had to stop at once' says 2 'none.drawn.h5: found no draws' "$emass" verify none.drawn.h5
check 'no draws' says 2 '--draws: found 0' "$emass" verify run.h5 --draws 0
check 'nothing is left behind' test "$(echo run.h5*)" = run.h5
finish
