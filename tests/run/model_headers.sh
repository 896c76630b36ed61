#!/usr/bin/env bash
# Each example in the headers of models builds as it stands, has a right gradient, samples the
# posterior that it says, and writes the same bytes on three ranks and, where it has rows, two shards.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# NAME.c of what stands under "Example NAME:", with the headers that a plug-in includes; prints the names.
extract() {
    awk '/^ \* Example [a-z_]+:$/ {
            name = $3; sub(":", "", name); file = name ".c"; print name
            print "#include <emass/plugin.h>\n#include <math.h>\n#include <stdlib.h>\n#include <string.h>" >file
            next
        }
        name && /^ \*(     .*)?$/ { sub(/^ \*(     )?/, ""); print >file; next }
        { name = "" }' "$@"
}
extract "$project"/include/emass/model.h "$project"/include/emass/model/*.h >names
silent() { # headers of capabilities without an example
    diff <(grep -vxE 'scalar|bounded' names | sort) <(cd "$project/include/emass/model" && printf '%s\n' *.h | sed 's/\.h$//' | sort)
}
check 'each capability has an example' silent

awk 'BEGIN { srand(4); print "x,y"; for (i = 0; i < 700; i++) { x = rand(); print x "," 1 + 2 * x + rand() - 0.5 } }' >points.csv
printf 'x\n0\n1\n2\n' >new.csv

build() { # NAME
    cc -std=c17 -Wall -Werror -shared -fPIC -I"$project/include" "$1.c" -o "$1.so" -lm
}
configure() { # NAME: what the example needs besides its name
    local data='' sampler='' prior=0
    case $1 in
    rows | prediction) data=', data: points.csv' ;;
    minibatch | ranges) sampler='sampler: {name: sgld, step_size: 0.05, minibatch: 2}' ;;
    prior) prior=2000 ;;
    esac
    printf '%s\n' "model: {name: $1, library: ./$1.so$data}" "$sampler" \
        'run: {chains: 4, warmup: 300, draws: 2000}' "output: {prior_draws: $prior}" >"$1.yaml"
}
gradient() { # NAME: of those that have a density
    limited "$emass" check "$1.yaml" >"$1.txt" && grep -qE 'agrees with central|update of its own' "$1.txt"
}
sampled() { # NAME
    limited "$emass" run "$1.yaml" --quiet --output "$1.h5"
}
bytes() { # NAME RANKS SHARDS
    limited mpirun -n "$2" "$emass" run "$1.yaml" --quiet --overwrite --output other.h5 --set run.shards="$3" && cmp "$1.h5" other.h5
}
mean() { # GROUP ROW FILE LOW HIGH: the mean of a row is between these
    "$emass" summary "$3" --group "$1" --csv | awk -F, -v row="$2" -v low="$4" -v high="$5" '
        $1 == row || $1 == "\"" row "\"" { found = 1; good = $2 > low && $2 < high; print }
        END { exit !(found && good) }'
}
mapfile -t names <names
for name in "${names[@]}"; do
    check "the example $name builds" build "$name"
    configure "$name"
    check "$name: its gradient" gradient "$name"
    check "$name: a run" sampled "$name"
    check "$name: the same bytes on 3 ranks" bytes "$name" 3 1
done
check 'and on 2 shards: rows' bytes rows 4 2
check 'and on 2 shards: summary' bytes summary 2 2
check 'and on 2 shards: counts' bytes counts 2 2

# Exact values: sum y / (n + 1) of five normal observations; and what was put into the table.
check 'scalar: the law' mean posterior 'theta[0]' scalar.h5 -0.1 0.1
check 'bounded: the law' mean posterior 'beta[slope]' bounded.h5 1.9 2.1
check 'rows: the law' mean posterior b rows.h5 1.8 2.2
check 'rows: its log likelihood' mean log_likelihood 'y[0]' rows.h5 -3 0
check 'rows: rows drawn anew' mean posterior_predictive 'y[0]' rows.h5 0.8 3.2
check 'latent: the outlier has no weight' mean posterior mu latent.h5 0.6 1.4
check 'minibatch: the law' mean posterior mu minibatch.h5 0.7 0.97
check 'ranges: the law' mean posterior mu ranges.h5 0.7 0.97
check 'ranges are those of minibatches' cmp <("$emass" summary ranges.h5 --csv) <("$emass" summary minibatch.h5 --csv)
check 'summary: the law' mean posterior mu summary.h5 0.79 0.88
check 'averages: of squares' mean averages square averages.h5 0.9 1.1
check 'prior: draws from it' mean prior mu prior.h5 -0.1 0.1
check 'prior: and from the posterior' mean posterior mu prior.h5 0.9 1.1
predicts() { # NAME LOW HIGH: of the row x = 2
    limited "$emass" predict "$1.h5" --data new.csv --output "$1.predicted.h5" &&
        mean predictions 'y[2]' "$1.predicted.h5" "$2" "$3"
}
check 'prediction: of new rows' predicts prediction 4.5 8
check 'rows: of new rows' predicts rows 4.8 5.2
finish
