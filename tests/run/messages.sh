#!/usr/bin/env bash
# What was silent, or taken for something else, is one line: usage, config and data errors end with
# status 2, say what they found, and leave nothing behind; on several ranks too.
# shellcheck disable=SC2317 # functions are called by `check`
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

mkdir "$scratch/work" && cd "$scratch/work" || exit
printf 'model: {name: gaussian, dim: 3}\nrun: {warmup: 20, draws: 20}\n' >g.yaml
printf 'model: {name: linear, data: t.csv}\nrun: {warmup: 20, draws: 20}\n' >l.yaml
printf 'x,y\n1,0\n2,3\n3,4\n' >t.csv
printf '1,0\n0,1\n' >p.csv

refuses() { # RANKS WHAT ARGUMENT...
    refused "$2" "$emass" run --ranks "$1" --progress none "${@:3}"
}

warns() { # WHAT ARGUMENT...: once, and goes on
    local what=$1
    shift
    limited "$emass" run --ranks 2 --progress none --overwrite --output w.h5 "$@" \
        >/dev/null 2>"$scratch/err" &&
        [ "$(grep -cF -- "$what" "$scratch/err")" = 1 ]
}

for ranks in 1 3; do
    check "rhmc without a metric, $ranks ranks" refuses "$ranks" 'gaussian has no metric' g.yaml \
        --set sampler.name=rhmc
    check "a missing folder, $ranks ranks" refuses "$ranks" 'emass: none/o.h5: cannot be written: none/: No such file' \
        g.yaml --output none/o.h5
    check "an empty name, $ranks ranks" refuses "$ranks" "output.file: found ''" g.yaml --set "output.file=''"
done
checks_output() { # STATUS WHAT CONFIG ARGUMENT...: all that check finds is printed, and nothing is written
    local status=$1 what=$2 before got=0
    before=$(ls)
    shift 2
    limited "$emass" check "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
    cat "$scratch/err"
    [ "$got" = "$status" ] && grep -q '^# speed' "$scratch/out" && [ "$(wc -l <"$scratch/err")" = "$((status != 0))" ] &&
        grep -qF -- "$what" "$scratch/err" "$scratch/out" && [ "$(ls)" = "$before" ]
}
for ranks in 1 2; do
    check "check: a missing folder, $ranks ranks" checks_output 2 'emass: none/o.h5: cannot be written: none/: No such file' \
        g.yaml --set output.file=none/o.h5 --ranks "$ranks"
done
check 'check: a table for an output' checks_output 2 't.csv is an input of this run (model.data)' \
    l.yaml --set model.data=t.csv --set output.file=t.csv
check 'check: a folder that can be written' checks_output 0 '# output     o.h5' g.yaml --set output.file=o.h5
check 'a file for a folder' refuses 1 'Not a directory' g.yaml --output t.csv/o.h5
for option in output seed chains max-time; do
    check "--$option ''" refuses 1 "run: found nothing after --$option, expected a value" g.yaml "--$option" ''
done
nothing() { # AFTER COMMAND...: an empty text would mean the default of the option
    local after=$1 status=0
    shift
    "$emass" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    cat "$scratch/err"
    [ "$status" = 2 ] && [ ! -s "$scratch/out" ] && [ "$(cat "$scratch/err")" = "emass: $1: found nothing after $after, expected a value" ]
}
check 'topics --documents ""' nothing --documents topics x.h5 --documents ''
check 'topics --output=' nothing --output= topics x.h5 --output=
check 'report --output ""' nothing --output report x.h5 --output ''
check 'convert --like ""' nothing --like convert t.csv o.h5 --like ''
check 'check --set=' nothing --set= check g.yaml --set=
check 'summary ""' nothing summary summary ''
check 'run on 2 ranks' nothing --report run g.yaml --report '' --ranks 2
check 'a seed of 2^53 + 1' refuses 1 "run.seed: found '9007199254740993'" g.yaml --seed 9007199254740993
check 'dim beside a matrix' refuses 1 'p.csv:1: found 2 x 2 numbers, expected 3 x 3' g.yaml \
    --set model.precision=p.csv
check 'condition beside a matrix' refuses 1 'found condition together with a file' g.yaml \
    --set model.dim=auto --set model.covariance=p.csv --set model.condition=3
check 'the dimension of a matrix' limited "$emass" check g.yaml --set model.dim=auto \
    --set model.precision=p.csv
check 'from_positions alone' refuses 1 'mass.from_positions: found true without mass.from' g.yaml \
    --set mass.from_positions=true
check 'a minibatch above all' warns 'sampler.minibatch is 9, but model linear has 3 observations' l.yaml \
    --set sampler.name=sgld --set sampler.step_size=0.01 --set sampler.minibatch=9
check 'a name that is not set' env -u EMASS_DATA "$BASH" -c "! '$emass' run l.yaml \
    --set 'model.data=\${EMASS_DATA}/t.csv' 2>err.txt; s=\$?; cat err.txt; grep -q 'variable EMASS_DATA, which is not set' err.txt; r=\$?; rm err.txt; exit \$((s + r))"
check 'no word of HDF5 but the reason' refuses 1 'No such file or directory' g.yaml --set mass.from=none.h5
check 'HDF5 lists no arguments' "$BASH" -c "! grep -E 'errno|flags' '$scratch/err'"
printf '\357\273\277model: {name: gaussian, dim: 3}\nrun: {warmup: 20, draws: 20}\n' >bom.yaml
check 'a byte order mark' limited "$emass" run bom.yaml --progress none --quiet
finish
