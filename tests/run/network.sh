#!/usr/bin/env bash
# Networks: one file on any number of ranks and shards, stopped and resumed amid an epoch, predictions
# that come out, and bad data and layers refused with one line. (network.py: against numpy.)
# shellcheck source=tests/run/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

word() { # NUMBER: four bytes, the first one first
    printf '%b' "$(printf '\\0%03o' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"
}

images() { # SEED COUNT: of 6 x 6, the rows bright that belong to the label
    printf '\0\0\10\3' && word "$2" && word 6 && word 6
    LC_ALL=C awk -v seed="$1" -v n="$2" 'function below(m) { seed = (seed * 16807) % 2147483647; return seed % m }
        BEGIN { for (i = 0; i < n; i++) for (k = 0; k < 36; k++)
            printf "%c", 1 + below(60) + (int(k / 12) == i % 3 ? 60 : 0) }'
}

labels() { # COUNT CLASSES
    printf '\0\0\10\1' && word "$1"
    LC_ALL=C awk -v n="$1" -v k="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%o\n", i % k }' |
        while read -r octal; do printf '%b' "\\0$octal"; done
}

images 7 300 | gzip -n >train-images-idx3-ubyte.gz
labels 300 3 | gzip -n >train-labels-idx1-ubyte.gz
for part in images-idx3 labels-idx1; do gunzip -c "train-$part-ubyte.gz" >"plain-$part-ubyte"; done
images 9 40 >test-images-idx3-ubyte
labels 40 3 >test-labels-idx1-ubyte
cat >run.yaml <<'YAML'
model:
  name: network
  data: train
  test: test
  input_scale: 120
  layers:
    - {convolution: 3, kernel: 3}
    - {pool: 2}
    - {dense: 6}
  prior_scale: {gamma: [1, 1]}
  precision: single
  store_weights: true
  blocks: weights
sampler:
  - {block: weights, name: sghmc, step_size: 1e-3, friction: 10, minibatch: 20}
  - {block: scales, name: gibbs}
mass: {estimator: none}
run: {chains: 3, warmup: 10, draws: 30, thin: 2}
output: {flush_every: 10}
YAML

go() { # RANKS FILE ARGUMENT...
    local n=$1 file=$2
    shift 2
    limited mpirun -n "$n" "$emass" run run.yaml --quiet --output "$file" --resume "$@"
}

same() { # RANKS
    rm -f other.h5*
    go "$1" other.h5 && cmp whole.h5 other.h5
}

# Stopped amid the draws on some ranks, and the rest on others: averages go on where they were.
in_parts() {
    go 1 parts.h5 --set run.draws=13 && go 2 parts.h5 && cmp whole.h5 parts.h5
}

# By parts sums are the same on any number of shards, and so is the file: 300 rows are parts of 256 and
# 44, the 40 of the test one part.
shards_agree() { # SHARDS SETTING...
    local n=$1 by_parts=(--set run.minibatch_sums=by_parts) setting
    shift
    for setting in "$@"; do by_parts+=(--set "$setting"); done
    rm -f one.h5* many.h5*
    go 1 one.h5 "${by_parts[@]}" && go "$n" many.h5 "${by_parts[@]}" --set run.shards="$n" &&
        cmp one.h5 many.h5
}

# Stopped on shards amid an epoch of 15 minibatches; the rest on others, with the averages so far.
shards_in_parts() {
    local by_epoch=(--set 'sampler[0].minibatch_order=epoch' --set run.minibatch_sums=by_parts)
    rm -f one.h5* many.h5*
    go 1 one.h5 "${by_epoch[@]}" &&
        stopped_at 37 3 run.yaml --output many.h5 "${by_epoch[@]}" --set run.shards=3 &&
        go 2 many.h5 "${by_epoch[@]}" --set run.shards=2 && cmp one.h5 many.h5
}

predictions_agree() { # NEW: predicted by three ranks for one chain, rows shared out, as by one
    "$emass" predict table1.h5 --data "$1" --output new1.h5 --overwrite &&
        limited mpirun -n 3 "$emass" predict table1.h5 --data "$1" --output new3.h5 --overwrite &&
        cmp new1.h5 new3.h5
}

value() { # DATASET: the first number
    h5dump -d "$1" whole.h5 | sed -n 's/^ *([0-9,]*): \([^,]*\).*/\1/p' | head -n 1
}

# The probabilities of three brightnesses are easy.
predicts() {
    local accuracy
    accuracy=$(value /predictions/accuracy) && echo "$accuracy" &&
        awk -v x="$accuracy" 'BEGIN { exit !(x > 0.9 && x <= 1) }' &&
        [ "$(h5dump -H -d /predictions/probability whole.h5 | grep -c 'SIMPLE { ( 40, 3 )')" = 1 ] &&
        [ "$(h5dump -H -d /averages/probability whole.h5 | grep -c 'SIMPLE { ( 3, 1, 40, 3 )')" = 1 ]
}

images 7 1 >single-images-idx3-ubyte
labels 1 3 >single-labels-idx1-ubyte
for n in 700 500; do # parts of 256, 256 and 188, or 244
    awk -v n="$n" 'BEGIN { srand(n); print "x,z,c,y"; for (i = 0; i < n; i++) {
        x = 4 * rand() - 2; print x "," 100 * rand() ",7," sin(x) + rand() / 9 } }' >"rows$n.csv"
done
"$emass" convert rows500.csv rows500.h5
cat >table.yaml <<'YAML'
model: {name: network, data: rows700.csv, test: rows500.h5, layers: [{dense: 4}], activation: tanh, output: normal,
  standardise: true, store_weights: true}
sampler: {name: hmc, leapfrog_steps: 3, step_size: 0.01}
mass: {estimator: none}
run: {chains: 1, warmup: 3, draws: 5}
YAML

# Inputs are standardised, one of them constant; densities and scores are of all shards.
tables_agree() {
    local n
    for n in 1 3; do
        limited mpirun -n "$n" "$emass" run table.yaml --quiet --overwrite --output "table$n.h5" \
            --set run.shards="$n" && cmp table1.h5 "table$n.h5" || return 1
    done
}

go 1 whole.h5 || not_ok "a network runs"
# 4 * 16 * 27 of the convolution, 6 * 72 and 6 * 18 of the dense layers; and 5e6 over 2268.
plan_of_shards() {
    limited mpirun -n 2 "$emass" check run.yaml --set run.shards=2 |
        grep '^# work  *0.00227 MFLOP .*; shards are not worthwhile below 5 MFLOP a step, a minibatch of 2205$'
}
check 'the plan says where shards are not worthwhile' plan_of_shards
check "3 ranks, the same bytes" same 3
check "in parts, on other ranks, the same bytes" in_parts
check "by parts, the same bytes on three shards, of which one has nothing" shards_agree 3
check "with minibatches of all data too, of plain files that each reads a part of" \
    shards_agree 2 'sampler[0].minibatch=300' model.data=plain
check "and with one image" shards_agree 3 model.data=single model.classes=3
check "stopped amid an epoch on three shards, the rest on two: the same bytes" shards_in_parts
check "a table: one file on 1 and 3 shards" tables_agree
check "and predictions of new rows" predictions_agree rows500.csv
check "averages over draws and chains are there, and good" predicts
check "check compares the gradient, and says what memory is taken" \
    bash -c '"$1" check run.yaml >said.txt && grep -q "agrees with central differences" said.txt &&
        grep -q "one copy on a node" said.txt && grep -q "MB per rank" said.txt' _ "$emass"

says_shares() {
    limited mpirun -n 2 "$emass" check run.yaml --set run.shards=2 >said.txt && cat said.txt &&
        grep -q "300 observations .* on this shard 256 and 40:" said.txt
}
check "check says what data are on a rank" says_shares

# Panels of 60,003 weights: what check tells of a rank is what a run takes, within a fifth.
cat >wide.yaml <<'YAML'
model: {name: network, data: train, test: test, layers: [{dense: 1500}], precision: single, scored: 10}
sampler: {name: sghmc, step_size: 1e-7, minibatch: 10, leapfrog_steps: 1}
mass: {estimator: none}
run: {chains: 1, warmup: 0, draws: 1}
YAML
memory() { # CHAINS
    local told took
    told=$("$emass" check wide.yaml --set run.chains="$1" | sed -n 's/^# memory *\([0-9.e+]*\) MB per rank.*/\1/p')
    took=$(limited python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3)' \
        "$emass" run wide.yaml --quiet --overwrite --output wide.h5 --set run.chains="$1") || return
    echo "$told MB told, $took taken"
    awk -v told="$told" -v took="$took" 'BEGIN { exit !(told > 0.8 * took && told < 1.2 * took) }'
}
for chains in 1 24; do
    check "check tells what memory $chains chains take" memory "$chains"
done

# A gradient of 60,003 numbers is added in memory that both shards see, each of which moves half of the weights; by
# messages, where there is none, and all of them are moved by both.
moves_are_partitioned() { # SETTING...
    local wide=("$emass" run wide.yaml --quiet --overwrite --set run.shards=2 --set run.draws=2 --set sampler.leapfrog_steps=3)
    local setting
    for setting in "$@"; do wide+=(--set "$setting"); done
    limited mpirun -n 2 "${wide[@]}" --output shared.h5 &&
        EMASS_FAULT=data-shared:0:1 limited mpirun -n 2 "${wide[@]}" --output sent.h5 && cmp shared.h5 sent.h5
}
step=sampler.step_size
check "two shards that share their moves make the same ones as two that do not" moves_are_partitioned $step=1e-3
check "with thermostats, of two chains" moves_are_partitioned sampler.name=msgnht run.chains=2 $step=1e-3
check "an optimiser" moves_are_partitioned sampler.name=rmsprop $step=1e-3
check "where chains diverge" moves_are_partitioned sampler.name=msgnht run.chains=2 $step=1e9

# A shard that waits draws the normals of its next move. Here one of two is stopped half of the time.
halting() { # COMMAND...
    local me=$$
    while kill -STOP "$me" && sleep 0.02 && kill -CONT "$me" && sleep 0.02; do :; done 2>/dev/null &
    exec "$@"
}
export -f halting
draws_while_it_waits() { # SETTING...
    local wide=("$emass" run wide.yaml --quiet --overwrite --set run.shards=2 --set run.draws=100
        --set sampler.leapfrog_steps=5 --set model.store_weights=true --set sampler.step_size=1e-5) setting
    for setting in "$@"; do wide+=(--set "$setting"); done
    limited mpirun -n 1 bash -c 'halting "$@"' _ "${wide[@]}" --output halted.h5 : \
        -n 1 "${wide[@]}" --output halted.h5 &&
        EMASS_FAULT=data-shared:0:1 limited mpirun -n 2 "${wide[@]}" --output sent.h5 && cmp halted.h5 sent.h5
}
check "a shard that waits draws normals: the same bytes" draws_while_it_waits
check "with Euler's steps" draws_while_it_waits sampler.integrator=euler
check "by sgld" draws_while_it_waits sampler.name=sgld
check "with thermostats" draws_while_it_waits sampler.name=msgnht

needs_weights() {
    local status=0
    "$emass" predict wide.h5 --data test --output bad.h5 2>bad.txt || status=$?
    cat bad.txt
    [ "$status" = 2 ] && [ "$(wc -l <bad.txt)" = 1 ] && grep -q "found no weights .*store_weights" bad.txt &&
        [ ! -e bad.h5 ]
}
check "a file without weights predicts nothing, and says what was to be asked for" needs_weights

# R-hat of a weight means nothing: no advice counts weights, and a log does not list them all.
weights_give_no_advice() {
    local rows
    cat >weights.yaml <<'YAML'
model: {name: network, data: plain, layers: [{dense: 6}], store_weights: true}
sampler: {name: sghmc, step_size: 1e-3, minibatch: 50}
mass: {estimator: none}
run: {chains: 4, warmup: 20, draws: 20}
YAML
    limited "$emass" run weights.yaml --output weights.h5 --progress none >log.txt || return 1
    rows=$("$emass" summary weights.h5 | grep -c '^weights')
    grep -v '^weights' log.txt
    grep -E "^R-hat above 1.01: [0-9]+ of [1-9] rows" log.txt && ! grep -qE 'temper:|reparameterise' log.txt &&
        [ "$rows" = 243 ] && [ "$(wc -l <log.txt)" -lt 120 ] && grep 'All of them: emass summary weights.h5' log.txt
}
check "weights give no advice, and do not fill a log" weights_give_no_advice

# A model that is sampled by minibatches is tested on one; what is known is printed before.
checks_a_minibatch() {
    "$emass" check weights.yaml >plan.txt || return 1
    grep '^# ' plan.txt
    grep '^# gradient   agrees .*, for a minibatch of 50 observations$' plan.txt &&
        grep '^# speed .* of one chain, for a minibatch of 50 observations$' plan.txt &&
        "$emass" check weights.yaml --set sampler.minibatch=300 | grep '^# gradient   agrees .*[0-9]$' &&
        grep '^# classes    0: 100, 1: 100, 2: 100 training observations$' plan.txt && ! grep '^# warning' plan.txt
}
check "a minibatch is checked, and classes are counted" checks_a_minibatch

tells_what_is_unusual() {
    awk 'BEGIN { OFS = ","; print "a,b,y"; for (i = 0; i < 60; i++) print 5000 + i % 7, i % 5 / 5, i % 3 * 2 }' >gap.csv
    awk 'BEGIN { OFS = ","; print "a,b,y"; for (i = 0; i < 60; i++) print 5000 + i % 7, i % 5 / 5, 3000 + i % 3 }' >large.csv
    cat >unusual.yaml <<'YAML'
model: {name: network, data: gap.csv, layers: [{dense: 3}]}
run: {chains: 2, warmup: 20, draws: 4}
YAML
    "$emass" check unusual.yaml >plan.txt && grep '^# classes    0: 20, 1: 0, 2: 20, 3: 0, 4: 20 ' plan.txt &&
        grep '^# warning .*gap.csv: no training observation has the label 1, 3, of 0 to 4' plan.txt &&
        grep '^# warning .*most values of 1 of 2 inputs .*first: a.*model.standardise: true' plan.txt || return 1
    limited mpirun -n 2 "$emass" run unusual.yaml --quiet --output unusual.h5 --set run.chains=1 --set run.shards=2 2>said.txt || return 1
    grep 'warning: gap.csv: no training observation' said.txt || return 1
    "$emass" check unusual.yaml --set model.standardise=true --set model.classes=5 | grep '^# warning' | grep -v label && return 1
    "$emass" check unusual.yaml --set model.data=large.csv --set model.output=normal >plan.txt &&
        grep '^# warning .*most responses are above 25 in size.*model.sigma_scale' plan.txt
}
check "classes without observations and numbers of another scale are told" tells_what_is_unusual


head -c 5000 test-images-idx3-ubyte | head -c 1000 >cut-images-idx3-ubyte
cp test-labels-idx1-ubyte cut-labels-idx1-ubyte
cp test-images-idx3-ubyte few-images-idx3-ubyte
labels 39 3 >few-labels-idx1-ubyte
cp test-images-idx3-ubyte more-images-idx3-ubyte
labels 40 4 >more-labels-idx1-ubyte
{ printf '\0\0\15\3' && tail -c +5 test-images-idx3-ubyte; } >wrong-images-idx3-ubyte
cp test-labels-idx1-ubyte wrong-labels-idx1-ubyte
cp test-images-idx3-ubyte lonely-images-idx3-ubyte
mkdir -p folder && cp train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz folder
check "truncated images" run_is_refused "cut-images-idx3-ubyte: found 984 bytes after the header, expected 1440" --set model.test=cut
check "a wrong magic number" run_is_refused "magic number 00000d03" --set model.test=wrong
check "images and labels that do not match" run_is_refused "found 39 labels, expected 40" --set model.test=few
check "labels out of range" run_is_refused "more-labels-idx1-ubyte: found label 3 of observation 4, expected an integer from 0 to 2" --set model.test=more
printf 'a,y\n1,0\n\n2,2\n3,7\n4,1\n' >seven.csv
printf 'a,y\n1,no\n2,yes\n' >text.csv
check "labels that are texts" run_is_refused "text.csv:2: found 'no' for column y, expected a number (classes as 0, 1, ...," \
    --set model.data=text.csv --set model.test= --set 'model.layers=[{dense: 2}]'
check "and of a table, whose line is named" run_is_refused "seven.csv:5: found label 7, expected an integer from 0 to 2" \
    --set model.data=seven.csv --set model.test= --set model.classes=3 --set 'model.layers=[{dense: 2}]'
check "images without labels" run_is_refused "images without labels" --set model.test=lonely
check "neither a file nor what names begin with" run_is_refused "found neither this file nor none-images-idx3-ubyte[.gz]" --set model.data=none
check "several files in a folder" run_is_refused "images-idx in their names, expected one" --set model.data=.
check "labels that are images" run_is_refused "found an array of 3 axes, expected 1: labels" \
    --set model.labels=train-images-idx3-ubyte.gz --set model.data=train-images-idx3-ubyte.gz
check "a pool that does not fit" run_is_refused "model.layers[1]: found a pool of 3 on 4 x 4 pixels" \
    --set 'model.layers=[{convolution: 3, kernel: 3}, {pool: 3}]'
sed 's/pool: 2/pool: 3/' run.yaml >line.yaml
check "and where it stands" bash -c '! "$1" check line.yaml 2>line.txt &&
    grep -q "line.yaml:8: model.layers\[1\]: found a pool" line.txt' _ "$emass"
check "a folder with one of each is fine" "$emass" check run.yaml --set model.data=folder
sed -e '/- {block/d' -e 's/^sampler:/sampler: {name: gibbs}/' run.yaml >gibbs.yaml
check "gibbs is of the scales alone" bash -c '! "$1" run gibbs.yaml --quiet 2>gibbs.txt &&
    grep -q "which has one for scales only" gibbs.txt && [ ! -e gibbs.h5 ]' _ "$emass"
finish
