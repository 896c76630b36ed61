#!/usr/bin/env bash
# A model in a shared object that reads a CSV (tests/examples/line.c): the same law, log likelihoods
# and predictions as the built-in model of the same posterior, a sampler for each of its blocks, on
# any ranks and shards; a bad line is named.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cp "$project/tests/examples/line.c" .
check 'it compiles' cc -std=c17 -Wall -Wextra -Werror -shared -fPIC line.c -I"$project/include" -lm -o line.so
awk 'BEGIN { print "y,x"; srand(4); for (i = 0; i < 700; i++) { x = rand(); print 1 + 2 * x + rand() - 0.5 "," x } }' >data.csv
awk -F, 'NR > 1 { print $2 "," $1 }' data.csv >swapped.csv

run() { # RANKS SHARDS MODEL BLOCK BLOCK OUTPUT
    cat >run.yaml <<YAML
model: {$3}
sampler:
  - {block: $4, name: hmc, step_size: 0.02, leapfrog_steps: 8}
  - {block: $5, name: nuts, max_treedepth: 4}
mass: {estimator: none}
run: {chains: 4, shards: $2, warmup: 200, draws: 300}
YAML
    limited mpirun -n "$1" "$emass" run run.yaml --quiet --overwrite --output "$6"
}
plugin() { # RANKS SHARDS OUTPUT
    run "$1" "$2" 'name: line, library: ./line.so, data: data.csv' coefficients noise "$3"
}
echo 'model: {name: line, library: ./line.so, data: data.csv}' >check.yaml
check 'its gradient is that of its density' "$emass" check check.yaml
bytes() {
    plugin 1 1 one.h5 || return 1
    for layout in '2 1' '3 3' '4 2'; do
        # shellcheck disable=SC2086 # words
        plugin $layout many.h5 && cmp one.h5 many.h5 || return 1
    done
}
check 'the same bytes on any ranks and shards' bytes
groups() {
    h5dump -n one.h5 >names
    for name in posterior/beta posterior/sigma log_likelihood/y posterior_predictive/y; do
        grep -q "/$name$" names || return
    done
}
check 'its log likelihoods and predictions have groups of their own' groups
agree() { # GROUP ROWS: means of both files within Monte Carlo errors
    paste -d, <("$emass" summary one.h5 --group "$1" --csv) <("$emass" summary linear.h5 --group "$1" --csv) |
        awk -F, -v rows="$2" 'NR > 1 { z = ($2 - $(NF / 2 + 2)) / sqrt($3 ^ 2 + $(NF / 2 + 3) ^ 2); n++
            if (z > 5 || z < -5) { print; bad = 1 } }
            END { exit n != rows || bad }'
}
law() {
    run 2 1 'name: linear, data: swapped.csv, sigma: unknown, prior_scale: 10, log_likelihood: true, posterior_predictive: true' \
        beta sigma linear.h5 &&
        agree posterior 3 && agree log_likelihood 700 && agree posterior_predictive 700
}
check 'the law, log likelihoods and predictions of the built-in model' law
named() {
    sed -i '600s/.*/1,old/' data.csv
    ! plugin 3 3 bad.h5 2>err.txt && cat err.txt &&
        grep -q "^emass: .*data.csv:600: found 'old' for column x, expected a number" err.txt
}
check 'a bad line is named' named
finish
