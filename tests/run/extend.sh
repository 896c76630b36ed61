#!/usr/bin/env bash
# A finished run is extended from its own file, on any number of ranks, to the bytes of a run that was
# asked for as many draws at once; and --resume never draws a finished file anew.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
python=$(cd "$(dirname "$0")/../.." && pwd)/analysis/venv/bin/python
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

go() { # RANKS FILE DRAWS ARGUMENT...: goes on with FILE, or begins it
    local n=$1 file=$2 draws=$3
    shift 3
    limited mpirun -n "$n" "$emass" run run.yaml --quiet --output "$file" --resume --set "run.draws=$draws" "$@"
}
beside() { # FILE: nothing but it
    local found
    found=$(echo "$1"*)
    [ "$found" = "$1" ] || { echo "found $found, expected $1 alone" && false; }
}
untouched() { # COMMAND...: part.h5 stays as it was
    local before status=0
    before=$(md5sum part.h5)
    "$@" || status=$?
    [ "$(md5sum part.h5)" = "$before" ] && beside part.h5 && return "$status"
}

# ---------------------------------------------------------------- every kind of sampler

extended() { # DRAWS: twice, on 3 ranks and on 2
    rm -f ./*.h5*
    go 1 whole.h5 "$1" && go 2 part.h5 $(($1 / 3)) && go 3 part.h5 $(($1 / 2)) && go 2 part.h5 "$1" 2>words &&
        cat words && grep -q "extending part.h5, a finished run of $(($1 / 2)) draws, to $1\$" words &&
        cmp whole.h5 part.h5 && beside part.h5
}

logistic='model: {name: logistic, n: 200, intercept: false}'
config() { printf '%s\n' "$@" >run.yaml; }

config "$logistic" 'run: {chains: 4, draws: 60}'
check 'hmc, all of it learned' extended 60
config "$logistic" 'sampler: {name: nuts}' 'run: {chains: 4, warmup: 50, draws: 60}' 'output: {save_warmup: true}'
check 'nuts, with its warmup' extended 60
config "$logistic" 'sampler: {name: sgld, step_size: 0.001, minibatch: 20}' 'mass: {estimator: none}' \
    'run: {chains: 4, warmup: 10, draws: 60}'
check 'sgld, with minibatches' extended 60
awk 'BEGIN { print "a,b,label"; for (i = 0; i < 60; i++) print sin(i) "," cos(2 * i) "," i % 3 }' >rows.csv
config 'model: {name: linear, data: rows.csv, sigma: unknown}' 'sampler:' \
    '  - {block: beta, name: sghmc, minibatch: 20, step_size: 0.01, leapfrog_steps: 3}' \
    '  - {block: sigma, name: nuts, max_treedepth: 4}' 'run: {chains: 3, warmup: 30, draws: 60}'
check 'a sampler for each block' extended 60
awk 'BEGIN { for (d = 1; d <= 40; d++) for (w = 1 + d % 2; w <= 20; w += 2) print d, w, 1 + (d * w) % 3 }' >entries
printf '40\n20\n%s\n%s\n' "$(wc -l <entries)" "$(cat entries)" >docword.c.txt
config 'model: {name: lda, data: docword.c.txt, topics: 3}' 'sampler: {name: lda_gibbs}' \
    'run: {chains: 3, warmup: 10, draws: 60}'
check 'lda_gibbs, with the topics of all tokens' extended 60
config 'model: {name: network, data: rows.csv, response: label, layers: [{dense: 4}]}' \
    'sampler: {name: sghmc, step_size: 0.001, minibatch: 20}' 'run: {chains: 3, warmup: 20, draws: 60}'
check 'a network' extended 60

# ---------------------------------------------------------------- what is no extension

config "$logistic" 'run: {chains: 4, warmup: 50, draws: 60}' 'output: {checkpoint_every: 0}'
rm -f ./*.h5*
check 'the whole run' go 1 whole.h5 60
check 'a part of it' go 2 part.h5 30
nothing_to_do() { go 2 part.h5 30 2>words && grep -q 'part.h5 is complete: nothing to do' words; }
check 'nothing is changed: nothing to do' untouched nothing_to_do
check 'fewer draws: nothing to do' untouched go 2 part.h5 20
check 'another seed is refused' untouched refused -E 'run.seed differ' go 2 part.h5 60 --seed 2
check 'another model is refused' untouched refused -E 'model.prior_scale differ' go 2 part.h5 60 --set model.prior_scale=3
nothing_there() { go 1 new.h5 20 2>words && grep -q 'nothing to resume at new.h5: starting' words && rm new.h5; }
check 'nothing is there: the run starts' nothing_there
goes_on_from() { # warmup is named, and where it goes on
    ! EMASS_FAULT=time-limit:0:20 go 2 cut.h5 60 2>/dev/null && go 1 cut.h5 60 2>words && cat words &&
        grep -q 'resuming cut.h5 at iteration 20 of 110 (warmup), from cut.h5.checkpoint$' words && cmp whole.h5 cut.h5
}
check 'an interrupted run says from where it goes on' goes_on_from

# ---------------------------------------------------------------- files without the state

left_out() {
    cp part.h5 kept.h5 && EMASS_FAULT=checkpoint-large:0 go 2 part.h5 40 && ! h5dump -n part.h5 | grep -q /checkpoint &&
        h5dump -a checkpoint_left_out part.h5 | grep -q 'more than the draws' && untouched go 1 part.h5 40 &&
        untouched refused -E 'more than the draws; --overwrite .*output.keep_checkpoint: true' go 2 part.h5 60
}
check 'too large a state is left out, and --resume says so' left_out
kept_beside() {
    cp kept.h5 part.h5 && EMASS_FAULT=checkpoint-large:0 go 2 part.h5 40 --set output.keep_checkpoint=true &&
        [ -s part.h5.checkpoint ] && go 3 part.h5 60 && cmp whole.h5 part.h5 && beside part.h5
}
check 'but may be kept beside the file' kept_beside
with_h5py() { # STATEMENT: changes part.h5
    "$python" -c "import h5py
with h5py.File('part.h5', 'r+') as f: $1"
}
older_file() {
    cp kept.h5 part.h5 && with_h5py "del f['checkpoint']" && untouched go 1 part.h5 30 &&
        untouched refused -E 'an earlier version of emass wrote it; --overwrite' go 2 part.h5 60 &&
        untouched refused -E 'exclude each other' go 1 part.h5 60 --overwrite
}
damaged_state() { # STATEMENT TEXT
    cp kept.h5 part.h5 && with_h5py "$1" && untouched refused -E "cannot be extended: $2" go 2 part.h5 60
}
if [ -x "$python" ]; then
    check 'an older file is not drawn anew' older_file
    check 'nor one with an altered state' damaged_state "f['checkpoint/bytes'][3, 5] ^= 1" 'the checkpoint in it: altered since'
    check 'nor one with a state cut short' damaged_state "f['checkpoint/bytes'].attrs['length'] = 5" '.*damaged'
    check 'nor one with too long a state' damaged_state "f['checkpoint/bytes'].attrs['length'] = 2**40" '.*damaged'
    check 'nor one with another thing in its place' damaged_state \
        "del f['checkpoint/bytes']; f['checkpoint/bytes'] = 'text'" '.*damaged'
else
    skip 'files without a state, or with a damaged one' 'no analysis/venv: make analysis/venv/ready'
fi

# ---------------------------------------------------------------- failures, and kills, meanwhile

comes_back() { # the finished file is there, or what stands there goes on
    [ ! -e part.h5.draws ] || "$emass" summary part.h5.draws >/dev/null || return 1
    go 2 part.h5 60 && cmp whole.h5 part.h5 && beside part.h5
}
fault() { # SITE:RANK:N
    local status=0
    rm -f part.h5* && cp kept.h5 part.h5
    EMASS_FAULT=$1 go 2 part.h5 60 2>words || status=$?
    cat words
    [ "$status" = 1 ] && comes_back
}
put_back() { # a file that cannot be made anew is the old one
    rm -f part.h5* && cp kept.h5 part.h5
    ! EMASS_FAULT=$1 go 2 part.h5 60 2>words && cmp kept.h5 part.h5
}
for site in file-rename:0:1 file-rename:0:2 file-create:0 hdf5-create:1 hdf5-write:1 checkpoint-read:1 model:1:20 \
    checkpoint-write:0 file-journal:0 hdf5-close:1; do
    check "a failure at $site" fault $site
done
check 'a failure to make the file anew leaves the old one' put_back hdf5-fill:0
killed() { # at moments all over the extension
    local k pid
    for k in 1 2 3 4 5 6; do
        rm -f part.h5* && cp kept.h5 part.h5
        "$emass" run run.yaml --quiet --output part.h5 --resume --set run.draws=60 2>/dev/null &
        pid=$!
        sleep "0.$((k * RANDOM % 90 + 10))"
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
        comes_back || return 1
    done
}
check 'killed at any moment' killed
finish
