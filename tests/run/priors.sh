#!/usr/bin/env bash
# Priors of regressions through the whole program: posteriors of tables as they come (years near
# 2010, predictors of 1e-6, prices near 300,000) beside a Stan program that has the same priors
# written down; what the plan, the report and the advice say; the same bytes on any ranks and shards.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
has_stan=no
! find_stanli || has_stan=yes
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

awk 'BEGIN {
    srand(2)
    print "year,tiny,w,o,count,price"
    for (i = 0; i < 120; i++) {
        year = 2000 + int(20 * rand()); tiny = 1e-6 * (rand() - 0.5); w = int(3 * rand()) / 2
        o = rand() - 0.5; u = rand() + rand() + rand() - 1.5
        price = 300000 + 917 * (year - 2010) + 3e9 * tiny + 4000 * u
        count = int(exp(1 + 0.05 * (year - 2010) + o + u / 2))
        printf "%d,%.6e,%.1f,%.3f,%d,%.2f\n", year, tiny, w, o, count, price
    }
}' >t.csv

run() { # OUT RANKS MODEL ARGUMENT...
    local out=$1 ranks=$2 model=$3
    shift 3
    cat >run.yaml <<YAML
model: {data: t.csv, $model}
run: {chains: 4, draws: 1500, seed: 4}
YAML
    limited mpirun -n "$ranks" --oversubscribe "$emass" run run.yaml --output "$out" --quiet --overwrite "$@"
}

# ---------------------------------------------------------------- beside Stan

# What both share: a coefficient is z 2.5 unit / sd, the intercept is of predictors at their means.
stan_program() { # LIKELIHOOD: of y, at eta
    cat <<STAN
data { int N; vector[N] year; vector[N] tiny; vector[N] w; vector[N] o; $2 }
transformed data { real unit = $3; real centre = $4; }
parameters { vector[3] z; real<lower=0> s; }
transformed parameters {
  vector[3] beta; real sigma = s * unit;
  beta[2] = z[2] * 2.5 * unit / sd(year);
  beta[3] = z[3] * 2.5 * unit / sd(tiny);
  beta[1] = centre + 2.5 * unit * z[1] - mean(year) * beta[2] - mean(tiny) * beta[3];
}
model {
  vector[N] eta = beta[1] + year * beta[2] + tiny * beta[3];
  z ~ std_normal(); s ~ exponential(1);
  $1
}
STAN
}
stan() { # OUT PROGRAM Y
    cat >stan.yaml <<YAML
model: {name: stan, program: $2, data: {N: rows, year: t.csv:year, tiny: t.csv:tiny, w: t.csv:w, o: t.csv:o, y: t.csv:$3}}
run: {chains: 4, draws: 1500, seed: 5}
YAML
    limited "$emass" run stan.yaml --output "$1" --quiet --overwrite
}

# Means of all numbers within five Monte Carlo standard errors of their difference; and sds, which
# have about 1 in 70 (half the error of a mean of 2500), within a tenth.
agree() { # OURS STAN N
    paste -d, <("$emass" summary "$1" --csv | sed 1d | head -"$3") \
        <("$emass" summary "$2" --var 'beta*' --var "$4" --csv | sed 1d) | tee /dev/stderr |
        awk -F, -v n="$3" '{
            m = NF / 2; z = ($2 - $(m + 2)) / sqrt($3 * $3 + $(m + 3) * $(m + 3)); r = $4 / $(m + 4)
            good += z < 5 && z > -5 && r < 1.1 && r > 0.9
        } END { exit !(NR == n && good == n) }'
}

if [ $has_stan = yes ]; then
    stan_program 'y ~ normal(eta, sigma);' 'vector[N] y;' 'sd(y)' 'mean(y)' >linear.stan
    stan_program 'for (i in 1:N) target += w[i] * normal_lpdf(y[i] | eta[i] + 1e4 * o[i], sigma);' \
        'vector[N] y;' 'sd(y)' 'mean(y)' >weighted.stan
    stan_program 'y ~ neg_binomial_2_log(eta + o, sigma);' 'array[N] int y;' 1 0 >counts.stan
    linear() { run one.h5 1 'name: linear, columns: [year, tiny]' && stan s.h5 linear.stan price && agree one.h5 s.h5 4 sigma; }
    check 'linear: the posterior of the Stan program' linear
    twin_fails() {
        run twin.h5 1 'name: linear, columns: [year, tiny], prior: {coefficients: {normal: [0, 300]}}' &&
            ! agree twin.h5 s.h5 4 sigma
    }
    check 'with another prior it is not' twin_fails
    standardised() { # sigma stands behind them, as there
        run two.h5 1 'name: linear, columns: [year, tiny], standardise: true' &&
            "$emass" summary two.h5 --var 'beta_original' --var sigma --csv |
                awk -F, '/^sigma/ { last = $0 } /^beta/ { print } END { print last }' >a &&
            "$emass" summary s.h5 --var 'beta*' --var sigma --csv | sed 1d >b &&
            paste -d, a b | tee /dev/stderr | awk -F, '{
                m = NF / 2; z = ($2 - $(m + 2)) / sqrt($3 * $3 + $(m + 3) * $(m + 3)); good += z < 5 && z > -5
            } END { exit !(NR == 4 && good == 4) }'
    }
    check 'standardised columns have the same posterior on the original scale' standardised
    weighted() {
        awk -F, -v OFS=, 'NR > 1 { $4 *= 10000 } { print }' t.csv >scaled.csv && mv t.csv plain.csv && mv scaled.csv t.csv &&
            run w.h5 1 'name: linear, columns: [year, tiny], weights: w, offset: o' && mv plain.csv t.csv &&
            stan s.h5 weighted.stan price && agree w.h5 s.h5 4 sigma
    }
    check 'linear with weights and an offset: likewise' weighted
    counts() {
        run c.h5 1 'name: negative_binomial, response: count, columns: [year, tiny], offset: o' &&
            stan s.h5 counts.stan count && agree c.h5 s.h5 4 sigma
    }
    check 'negative binomial with an offset: likewise' counts
else
    skip 'posteriors beside a Stan program' 'no libstanli.so: pip install stanli, or make analysis/venv/ready'
fi

# ---------------------------------------------------------------- what is said

says_all() { # COMMAND... -- TEXT...
    local command=()
    while [ "$1" != -- ]; do command+=("$1") && shift; done
    shift
    "${command[@]}" >said.txt 2>&1 || return 1
    for text; do grep -qF -- "$text" said.txt || { cat said.txt && return 1; }; done
}
run one.h5 1 'name: linear, columns: [year, tiny]'
check 'the plan has every prior in numbers' says_all limited "$emass" check run.yaml -- \
    '# prior      intercept (where predictors are at their means) ~ normal(3' '# prior      year ~ normal(0, 2' \
    '# prior      tiny ~ normal(0, ' '# prior      sigma ~ exponential(0.0001'
check 'the report has them' says_all limited "$emass" report one.h5 --output one.html -- one.html
check 'the report has them in numbers' grep -q '"year ~ normal(0, 2' one.html
check 'the stored config has them in numbers' sh -c "ncdump -h one.h5 | grep -q '# prior      year ~ normal(0, 2'"
check 'nothing is said of priors that are wide enough' \
    sh -c "'$emass' summary one.h5 >s.txt && ! grep -E 'Prior far off|Residuals unlike' s.txt"
run far.h5 1 'name: linear, columns: [year, tiny], sigma: 1, prior_scale: 10'
check 'a prior far off, and residuals unlike sigma, are named' says_all limited "$emass" summary far.h5 -- \
    'Prior far off: ' 'the data do not bound it' 'normal(0, 3.162)' 'Residuals unlike sigma: ' 'fixed at 1,'
run off.h5 1 'name: linear, columns: [year, tiny], prior: {coefficients: {year: {normal: [0, 100]}}}'
check 'one coefficient whose prior is far off' says_all limited "$emass" summary off.h5 -- \
    'the posterior mean of beta[year] is' 'normal(0, 100)'

# ---------------------------------------------------------------- the same bytes

same() { # MODEL
    local options=(--set run.warmup=30 --set run.draws=40 --set 'sampler.leapfrog_steps=4')
    run a.h5 1 "$1" "${options[@]}" && run b.h5 3 "$1" "${options[@]}" && cmp a.h5 b.h5 &&
        run b.h5 2 "$1" "${options[@]}" --set run.shards=2 --set run.chains=4 &&
        cmp <("$emass" summary a.h5 --csv) <("$emass" summary b.h5 --csv)
}
check 'the same bytes on 1 and 3 ranks, the same draws on 2 shards: a formula, weights, an offset' \
    same 'name: linear, formula: "log(price) ~ poly(year, 2) + I(tiny^2 * 1e12)", weights: w, offset: o'
check 'likewise counts' same 'name: poisson, response: count, columns: [year, tiny], offset: o, weights: w'
predicts() {
    run p.h5 1 'name: linear, formula: "log(price) ~ poly(year, 2) + log(w + 1)", offset: o, weights: tiny2' \
        --set run.draws=50 2>/dev/null && return 1
    run p.h5 1 'name: linear, formula: "log(price) ~ poly(year, 2) + log(w + 1)", offset: o' --set run.draws=50 &&
        printf 'o,w,year\n0,1,2010\n0.5,1,2010\n' >new.csv && limited "$emass" predict p.h5 --data new.csv --output q.h5 &&
        "$emass" summary q.h5 --group predictions --var mu --csv | tee /dev/stderr |
        awk -F, 'NR > 1 { m[NR] = $2 } END { d = m[3] - m[2]; exit !(d > 0.4999 && d < 0.5001 && m[2] > 12 && m[2] < 13.2) }'
}
check 'new rows are coded as those of the run, their offsets by name' predicts
finish
