#!/usr/bin/env bash
# Networks: one file on any number of ranks, stopped and resumed amid an epoch, shards that agree,
# predictions that come out, and bad data and layers refused with one line. (network.py: against numpy.)
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

# The rows of a minibatch, and by parts the sums too, are the same on any number of shards.
shards_agree() {
    go 1 one.h5 --set run.minibatch_sums=by_parts && rm -f two.h5* &&
        go 3 two.h5 --set run.minibatch_sums=by_parts --set run.shards=3 &&
        "$emass" summary one.h5 --csv >one.csv && "$emass" summary two.h5 --csv >two.csv &&
        cmp one.csv two.csv
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

go 1 whole.h5 || not_ok "a network runs"
check "3 ranks, the same bytes" same 3
check "in parts, on other ranks, the same bytes" in_parts
check "by parts, the same draws on three shards" shards_agree
check "averages over draws and chains are there, and good" predicts
check "check compares the gradient, and says what memory is taken" \
    bash -c '"$1" check run.yaml >said.txt && grep -q "agrees with central differences" said.txt &&
        grep -q "once a node" said.txt && grep -q "MB per rank" said.txt' _ "$emass"

refused() { # WHY SETTING...: with status 2, one line, and nothing written
    local why=$1 options=() setting status=0
    shift
    for setting in "$@"; do options+=(--set "$setting"); done
    "$emass" run run.yaml --quiet --output bad.h5 "${options[@]}" 2>bad.txt || status=$?
    cat bad.txt
    [ "$status" = 2 ] && [ "$(wc -l <bad.txt)" = 1 ] && grep -qF -- "$why" bad.txt && [ ! -e bad.h5 ]
}

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
check "truncated images" refused "cut-images-idx3-ubyte: found 984 bytes behind the header, expected 1440" model.test=cut
check "a wrong magic number" refused "magic number 00000d03" model.test=wrong
check "images and labels that do not match" refused "found 39 labels, expected 40" model.test=few
check "labels out of range" refused "more-labels-idx1-ubyte: found label 3 of observation 4, expected an integer from 0 to 2" model.test=more
check "images without labels" refused "images without labels" model.test=lonely
check "several files in a folder" refused "images-idx in their names, expected one" model.data=.
check "labels that are images" refused "found an array of 3 axes, expected 1: labels" \
    model.labels=train-images-idx3-ubyte.gz model.data=train-images-idx3-ubyte.gz
check "a pool that does not fit" refused "model.layers[1]: found a pool of 3 on 4 x 4 pixels" \
    'model.layers=[{convolution: 3, kernel: 3}, {pool: 3}]'
sed 's/pool: 2/pool: 3/' run.yaml >line.yaml
check "and where it stands" bash -c '! "$1" check line.yaml 2>line.txt &&
    grep -q "line.yaml:8: model.layers\[1\]: found a pool" line.txt' _ "$emass"
check "a folder with one of each is fine" "$emass" check run.yaml --set model.data=folder
sed -e '/- {block/d' -e 's/^sampler:/sampler: {name: gibbs}/' run.yaml >gibbs.yaml
check "gibbs is of the scales alone" bash -c '! "$1" run gibbs.yaml --quiet 2>gibbs.txt &&
    grep -q "which it has of scales alone" gibbs.txt && [ ! -e gibbs.h5 ]' _ "$emass"
finish
