#!/usr/bin/env bash
# Draws do not depend on run.shards: exact means of a minibatch sampler, and for every sampler and
# model the file of one shard on several, with rows that do not divide, one row, and fewer rows than
# shards.
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
# step size. Three rows stay together; of 512 rows y = 0 and 88 rows y = 9, in parts of 256, two
# shards have 512 and 88: their mean is 792 / 600.1.

cat >three.yaml <<'YAML'
model: {name: linear, data: three.csv, intercept: false, sigma: 1, prior_scale: 10}
sampler: {name: sgld, minibatch: 2, step_size: 0.05}
mass: {estimator: none}
run: {chains: 4, warmup: 100, draws: 3000}
output: {file: three.h5}
YAML
three_rows() { printf '1,0\n1,0\n1,9\n' >three.csv; }
many_rows() {
    awk -v nines="$1" 'BEGIN { for (i = 0; i < 600; i++) print "1," (i < 600 - nines ? 0 : 9) }' \
        >three.csv
}
another_share() { printf '1,0\n1,9\n1,9\n' >three.csv; } # as if one shard counted twice

mean_is_exact() { # MEAN SHARDS SETTING...
    local mean=$1 n=$2
    shift 2
    run "$n" three.h5 three.yaml "$@" || return 1
    "$emass" summary three.h5 --csv | tee /dev/stderr |
        awk -F, -v mean="$mean" 'NR == 2 { z = ($2 - mean) / $3; exit !(z < 4.5 && z > -4.5) }'
}

three_rows
hows=('1 false' '2 true' '2 false' '3 true' '4 false')
for how in "${hows[@]}"; do # and the draws on 3 are those, below
    check "1 shard, minibatch ${how% *}, replacement ${how#* }: the exact mean" mean_is_exact 2.9032258 1 \
        sampler.minibatch="${how% *}" sampler.replacement="${how#* }" run.seed="$((1 + 10 * ${how% *}))"
done
check '3 shards, minibatch 2: the exact mean' mean_is_exact 2.9032258 3 run.seed=23
another_share
twin_fails() { ! mean_is_exact 2.9032258 2; }
check 'other weights of the rows are found out' twin_fails
many_rows 88
for how in '20 false' '20 true' '599 false' '700 true'; do
    check "2 shards of 600 rows, minibatch ${how% *}, replacement ${how#* }: the exact mean" \
        mean_is_exact 1.3197800 2 sampler.minibatch="${how% *}" sampler.replacement="${how#* }" \
        sampler.step_size=0.001 run.seed="$((2 + ${how% *}))"
done
many_twin_fails() {
    many_rows 92 && ! mean_is_exact 1.3197800 2 sampler.minibatch=20 sampler.step_size=0.001
}
check 'four rows more of 9 are found out' many_twin_fails
three_rows

# ---- the same file, byte for byte, for every sampler and model: gradients and metrics are summed by
# parts of the data that do not know how many shards there are; those of minibatches where asked for.
# 700 rows are parts of 256, 256 and 188.

printf '2.0,0\n1,1\n' >labels.csv
echo 2,3 >one.csv
awk 'BEGIN { srand(2); for (i = 0; i < 600; i++) print rand(), rand(), 3 * rand() }' >table.csv
awk 'BEGIN { srand(3); for (i = 0; i < 600; i++) print i % 2, 1 + int(9 * rand()) ":1" }' >sparse.txt

config() { # MODEL
    cat >any.yaml <<YAML
model: {$1}
sampler: {name: hmc, step_size: 0.02}
run: {chains: 3, warmup: 30, draws: 30, minibatch_sums: by_parts}
output: {file: any.h5, flush_every: 10}
YAML
}

same() { # SHARDS SETTING...
    local shards=$1 n
    shift
    run 1 one.h5 any.yaml "$@" || return 1
    for n in $shards; do
        run "$n" many.h5 any.yaml "$@" && cmp one.h5 many.h5 || return 1
    done
}

takes_minibatches() { # SAMPLER
    case $1 in
    hmc | rhmc | nphmc | nuts | walnuts) false ;;
    esac
}
gradients_of() { # SAMPLER ROWS: settings
    ! takes_minibatches "$1" || echo sampler.minibatch="$2"
}
# gibbs and lda_gibbs: local_state.sh, topics.sh
samplers=$("$emass" list samplers | awk 'NR > 1 && /^  [a-z]/ && $1 !~ /gibbs/ { print $1 }')

config 'name: logistic, n: 700, intercept: false, prior_scale: 10'
for sampler in $samplers; do
    # shellcheck disable=SC2046 # words
    check "$sampler: one file on 1 and 3 shards" \
        same 3 sampler.name="$sampler" $(gradients_of "$sampler" 30)
done
check 'chains in groups of shards' same '2 4' run.chains=5
check 'learned step size and mass' same '2 3' sampler.step_size=adapt run.warmup=200

config 'name: linear, data: one.csv'
for sampler in $samplers; do
    case $sampler in rhmc | sgrnphmc) continue ;; esac # a metric is what linear has not
    # shellcheck disable=SC2046 # words
    check "$sampler: one row on 3 shards" same 3 sampler.name="$sampler" $(gradients_of "$sampler" 1)
done

config 'name: logistic, data: labels.csv, prior_scale: 10'
for sampler in rhmc sgrnphmc; do
    # shellcheck disable=SC2046 # words
    check "$sampler: two rows on 3 shards" same 3 sampler.name=$sampler $(gradients_of $sampler 2)
done

for model in 'name: linear, data: table.csv' 'name: eight_schools' \
    'name: normal_wishart, n: 700' 'name: gaussian, dim: 3, gradient_noise: 1' \
    'name: banana, gradient_noise: 1' 'name: linear, data: one.csv' \
    'name: logistic, data: labels.csv' 'name: logistic, data: sparse.txt'; do
    config "$model"
    check "$model: hmc" same 4
    check "$model: sgld" same 3 sampler.name=sgld sampler.minibatch=1
    check "$model: sghmc with replacement" same 4 sampler.name=sghmc sampler.minibatch=9 \
        sampler.replacement=true
done

twin() { run 2 one.h5 any.yaml && run 2 many.h5 any.yaml run.seed=2 && ! cmp one.h5 many.h5; }
check 'another seed gives another file' twin

resumed() {
    config 'name: logistic, n: 700, intercept: false, prior_scale: 10'
    run 1 one.h5 any.yaml && rm -f parts.h5* &&
        run 2 parts.h5 any.yaml run.draws=10 &&
        limited mpirun -n 3 "$emass" run any.yaml --quiet --resume --output parts.h5 \
            --set run.shards=3 && cmp one.h5 parts.h5
}
check 'begun on 2 shards, gone on with on 3' resumed

# ---- fast sums of minibatches: the same rows, and sums up to rounding; a shard that took other rows,
# another scale or number of rows would be far from that.

numbers() { "$emass" summary "$1" --csv && "$emass" summary "$1" --csv --group sample_stats; }

close() { # A B
    paste -d, "$1" "$2" | awk -F, '
        function far(a, b) { return !(a == b || (a - b) ^ 2 <= 1e-12 * (1 + a ^ 2)) }
        NR > 1 { for (i = 2; i <= 4; i++) if (far($i, $(i + NF / 2))) { print; bad = 1 } }
        END { exit NR < 2 || bad }'
}

nearly_same() { # SHARDS SETTING...
    local shards=$1 n
    shift
    run 1 one.h5 any.yaml "$@" && numbers one.h5 >one.txt || return 1
    for n in $shards; do
        run "$n" many.h5 any.yaml "$@" && numbers many.h5 >many.txt && close one.txt many.txt ||
            return 1
    done
}

config 'name: logistic, n: 700, intercept: false, prior_scale: 10'
for sampler in sgld sgnht sgrnphmc; do
    check "$sampler: the same draws but for rounding" nearly_same '2 3' sampler.name=$sampler \
        sampler.minibatch=30 sampler.step_size=0.002 run.minibatch_sums=fast
done
for sampler in $samplers; do # the weight of a minibatch that is all rows is 1 on every shard
    ! takes_minibatches "$sampler" || check "$sampler: minibatches as large as the data" nearly_same 3 \
        sampler.name="$sampler" sampler.minibatch=700 sampler.step_size=0.002 run.minibatch_sums=fast
done
twin_is_far() {
    run 1 one.h5 any.yaml sampler.name=sgld sampler.step_size=0.002 sampler.minibatch=30 && numbers one.h5 >one.txt &&
        run 1 many.h5 any.yaml sampler.name=sgld sampler.step_size=0.002 sampler.minibatch=31 &&
        numbers many.h5 >many.txt && ! close one.txt many.txt
}
check 'another minibatch is found out' twin_is_far

config 'name: linear, data: three.csv, intercept: false, sigma: 1, prior_scale: 10'
for how in "${hows[@]}"; do
    check "three rows, minibatch ${how% *}, replacement ${how#* }: the same draws but for rounding" nearly_same 3 \
        sampler.name=sgld sampler.step_size=0.05 sampler.minibatch="${how% *}" sampler.replacement="${how#* }" \
        run.minibatch_sums=fast
done
finish
