#!/usr/bin/env bash
# The posterior does not depend on run.shards: exact means of a minibatch sampler, and for every
# sampler and model the draws of one shard on several, with rows that do not divide, one row,
# and fewer rows than shards.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

run() { # SHARDS FILE CONFIG SETTING...
    local n=$1 file=$2 config=$3 setting options=()
    shift 3
    for setting in "$@"; do options+=(--set "$setting"); done
    limited mpirun -n "$n" "$emass" run "$config" --quiet --overwrite --output "$file" \
        --set run.shards="$n" "${options[@]}"
}

# ---- exact means: rows y = 0, 0, 9 at x = 1, prior variance 10. Every minibatch has the same
# Hessian, so that the mean of Langevin dynamics is that of the posterior, 9 / (3 + 1/10), at any
# step size.

cat >three.yaml <<'YAML'
model: {name: linear, data: three.csv, intercept: false, prior_scale: 10}
sampler: {name: sgld, minibatch: 2, step_size: 0.05}
mass: {estimator: none}
run: {chains: 4, warmup: 100, draws: 3000}
output: {file: three.h5}
YAML
three_rows() { printf '1,0\n1,0\n1,9\n' >three.csv; }
another_share() { printf '1,0\n1,9\n1,9\n' >three.csv; } # as if one shard counted twice

mean_is_exact() { # SHARDS SETTING...
    local n=$1
    shift
    run "$n" three.h5 three.yaml "$@" || return 1
    "$emass" summary three.h5 --csv | tee /dev/stderr |
        awk -F, 'NR == 2 { z = ($2 - 9 / 3.1) / $3; exit !(z < 4.5 && z > -4.5) }'
}

three_rows
for n in 1 2 3; do
    for how in '1 false' '2 true' '2 false' '3 true' '4 false'; do
        check "$n shards, minibatch ${how% *}, replacement ${how#* }: the exact mean" \
            mean_is_exact "$n" sampler.minibatch="${how% *}" sampler.replacement="${how#* }" \
            run.seed="$((n + 10 * ${how% *}))"
    done
done
another_share
twin_fails() { ! mean_is_exact 2; }
check 'other weights of the rows are found out' twin_fails
three_rows

# ---- the same draws, up to the rounding of sums, for every sampler: a shard that evaluated another
# minibatch, scale or number of rows would be far from that.

echo 2,3 >one.csv
printf '2,0\n1,1\n' >labels.csv
config() { # MODEL
    cat >any.yaml <<YAML
model: {$1}
sampler: {name: hmc, step_size: 0.02}
run: {chains: 3, warmup: 30, draws: 30}
output: {file: any.h5, flush_every: 10}
YAML
}

numbers() { "$emass" summary "$1" --csv && "$emass" summary "$1" --csv --group sample_stats; }

close() { # A B
    paste -d, "$1" "$2" | awk -F, '
        function far(a, b) { return !(a == b || (a - b) ^ 2 <= 1e-12 * (1 + a ^ 2)) }
        NR > 1 { for (i = 2; i <= 4; i++) if (far($i, $(i + NF / 2))) { print; bad = 1 } }
        END { exit NR < 2 || bad }'
}

same() { # SHARDS SETTING...
    local shards=$1 n
    shift
    run 1 one.h5 any.yaml "$@" && numbers one.h5 >one.txt || return 1
    for n in $shards; do
        run "$n" many.h5 any.yaml "$@" && numbers many.h5 >many.txt && close one.txt many.txt ||
            return 1
    done
}

gradients_of() { # SAMPLER: settings
    case $1 in
    hmc | rhmc | nphmc | nuts) ;;
    *) echo sampler.minibatch="$2" ;;
    esac
}

config 'name: logistic, n: 300, intercept: false'
for sampler in $("$emass" list samplers | awk 'NR > 1 && /^  [a-z]/ { print $1 }'); do
    # shellcheck disable=SC2046 # words
    check "$sampler: the same draws on 1, 2 and 3 shards" \
        same '2 3' sampler.name="$sampler" $(gradients_of "$sampler" 30)
done
for model in 'name: linear, data: three.csv' 'name: eight_schools' 'name: normal_wishart, n: 7' \
    'name: gaussian, dim: 3, gradient_noise: 1' 'name: banana, gradient_noise: 1' \
    'name: linear, data: one.csv' 'name: logistic, data: labels.csv'; do
    config "$model"
    check "$model: hmc" same 4
    check "$model: sgld" same 3 sampler.name=sgld sampler.minibatch=1
    check "$model: sghmc with replacement" same 4 sampler.name=sghmc sampler.minibatch=2 \
        sampler.replacement=true
done
finish
