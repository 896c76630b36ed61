#!/usr/bin/env bash
# Non-centred coordinates, learned in warmup (mass.noncentring): a funnel of known law, to which no
# constant mass fits; the same bytes on any ranks and after a restart; the map in the file, and from
# there in the next run; and what is refused.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# v ~ N(0, 3), mu ~ N(0, 1), x_i ~ N(mu, exp(v / 2)): Neal's funnel about a mean.
cat >funnel.c <<'C'
#include <emass/plugin.h>
#include <math.h>
static em_status density(const void *options, const double *theta, double *log_p, double *gradient)
{
    const double v = theta[0], mu = theta[1];
    (void)options;
    *log_p -= v * v / 18 + mu * mu / 2;
    gradient[0] -= v / 9;
    gradient[1] -= mu;
    for (int i = 2; i < 10; i++) {
        const double x = theta[i] - mu;
        *log_p -= v / 2 + x * x * exp(-v) / 2;
        gradient[0] += x * x * exp(-v) / 2 - 0.5;
        gradient[1] += x * exp(-v);
        gradient[i] -= x * exp(-v);
    }
    return EM_OK;
}
static const em_variable parameters[] = {{.name = "v"}, {.name = "mu"},
                                         {.name = "x", .n_axes = 1, .shape = {8}}};
EMASS_PLUGIN({.name = "funnel", .n_parameter = 3, .parameter = parameters,
              .log_density_gradient = density});
C
cat >run.yaml <<'YAML'
model: {name: funnel, library: ./funnel.so}
run: {chains: 4, draws: 200}
output: {checkpoint_every: 0}
YAML

build() {
    for name in funnel factors; do
        cc -std=c17 -Wall -Wextra -Werror -shared -fPIC -I"$project/include" "$name.c" -o "$name.so" -lm || return
    done
}

emass_on() { # RANKS ARGUMENT...
    local n=$1
    shift
    limited mpirun -n "$n" "$emass" run run.yaml --quiet "$@"
}

many=(--set run.draws=1000 --set output.checkpoint_every=60)

# Mean and standard deviation of v within 4.5 Monte Carlo standard errors of 0 and 3, and no
# divergence; of x no moments exist that a sample would show.
is_the_law() { # SEED SAMPLER
    emass_on 1 --overwrite --output law.h5 --seed "$1" --set "sampler.name=$2" "${many[@]}" || return
    limited "$emass" summary law.h5 --csv >law.csv || return
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
        $1 == "v" { mean = $column["mean"] / $column["mcse_mean"]
                    ess = $column["ess_bulk"] < $column["ess_tail"] ? $column["ess_bulk"] : $column["ess_tail"]
                    sd = ($column["sd"] - 3) / (3 / sqrt(2 * ess))
                    print "z of the mean", mean, "of the sd", sd
                    fine = mean < 4.5 && mean > -4.5 && sd < 4.5 && sd > -4.5 && $column["r_hat"] < 1.01 }
        END { exit !fine }' law.csv
}

# The non-centred form with precise data: v ~ N(-1, 0.5), x_i ~ N(0, 1), c_i ~ N(exp(v) x_i, 0.1).
cat >factors.c <<'C'
#include <emass/plugin.h>
#include <math.h>
enum { N = 40 };
static em_status density(const void *options, const double *theta, double *log_p, double *gradient)
{
    const double v = theta[0], scale = exp(v);
    (void)options;
    *log_p -= 2 * (v + 1) * (v + 1);
    gradient[0] -= 4 * (v + 1);
    for (int i = 0; i < N; i++) {
        const double x = theta[1 + i], away = scale * x - 0.5 * sin(2.0 * i + 1);
        *log_p -= x * x / 2 + 50 * away * away;
        gradient[0] -= 100 * away * scale * x;
        gradient[1 + i] -= x + 100 * away * scale;
    }
    return EM_OK;
}
static const em_variable parameters[] = {{.name = "v"}, {.name = "x", .n_axes = 1, .shape = {N}}};
EMASS_PLUGIN({.name = "factors", .n_parameter = 2, .parameter = parameters,
              .log_density_gradient = density});
C
sed 's/funnel/factors/g; s/draws: 200/draws: 1000/' run.yaml >factors.yaml

on_factors() { # RANKS ARGUMENT...
    limited mpirun -n "$1" "$emass" run factors.yaml --progress none --overwrite "${@:2}"
}

# The mean and the standard deviation of v within 4.5 Monte Carlo standard errors of those by a sum over a grid, and
# an ESS of more than three times that in the model's own coordinates.
are_centred() { # SEED
    on_factors 1 --output centred.h5 --seed "$1" >centred.txt 2>&1 || return
    grep -q '; 40 parameters centred' centred.txt || return
    on_factors 1 --output off.h5 --seed "$1" --set mass.noncentring=off --quiet || return
    for name in centred off; do
        limited "$emass" summary "$name.h5" --csv >"$name.csv" || return
    done
    awk -F, 'BEGIN { for (v = -3; v < 1; v += 0.001) {
                         p = -2 * (v + 1) ^ 2
                         for (i = 0; i < 40; i++) {
                             variance = exp(2 * v) + 0.01
                             p -= (0.5 * sin(2 * i + 1)) ^ 2 / variance / 2 + log(variance) / 2
                         }
                         p = exp(p - 40); all += p; first += p * v; second += p * v * v
                     }
                     mean = first / all; sd = sqrt(second / all - mean * mean) }
        FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
        $1 == "v" { ess[++n] = $column["ess_bulk"] }
        $1 == "v" && n == 1 { z = ($column["mean"] - mean) / $column["mcse_mean"]
                              of_sd = ($column["sd"] - sd) / (sd / sqrt(2 * $column["ess_tail"])) }
        END { print "z of the mean", z, "of the sd", of_sd, "ESS", ess[1], "and", ess[2]
              exit !(z < 4.5 && z > -4.5 && of_sd < 4.5 && of_sd > -4.5 && ess[1] > 3 * ess[2]) }' \
        centred.csv off.csv
}

are_the_same() { # RANKS
    on_factors 1 --output one_factors.h5 --quiet && on_factors "$1" --output other.h5 --quiet && cmp one_factors.h5 other.h5
}

# In the model's own coordinates the same run does not get there.
is_needed() {
    local said
    said=$(limited "$emass" run run.yaml --progress none --overwrite --output off.h5 --set mass.noncentring=off \
        "${many[@]}" 2>&1)
    echo "$said"
    grep -q '^not converged' <<<"$said" && ! h5ls off.h5/mass_adaptation | grep -q '^noncentring'
}

# Eight of ten parameters have scale v and location mu, in the file; those are not.
says_so() {
    h5dump -d /mass_adaptation/noncentring -s 0,0 -c 10,1 -y -w 200 one.h5 | tr -cd '01\n,' | tr -d '\n' |
        grep -q '0,0,1,1,1,1,1,1,1,1' && h5ls one.h5/mass_adaptation | grep -q '^noncentring'
}

# The initial phase goes on until a map is found in 400 draws of the later half of its iterations: 200 iterations of 4
# chains. Without a map it may end earlier.
takes_400_draws() {
    local ended
    ended=$(h5dump -a /warmup one.h5 | grep -o 'ended at iteration [0-9]*')
    ended=${ended##* }
    echo "it ended at iteration $ended"
    [ "$ended" -ge 200 ]
}

is_the_same() { # RANKS [ARGUMENT...]
    emass_on "$1" --overwrite --output other.h5 "${@:2}" && cmp one.h5 other.h5
}

# The priors are proved before the first iteration, so a warmup of 20 iterations, which has too few draws for a search,
# has the map of the eight members too.
is_there_at_once() {
    emass_on 2 --overwrite --output early.h5 --set run.warmup=20 || return
    h5dump -d /mass_adaptation/noncentring -s 0,0 -c 10,1 -y -w 200 early.h5 | tr -cd '01\n,' | tr -d '\n' |
        grep -q '0,0,1,1,1,1,1,1,1,1'
}

# Stopped after so many evaluations of a rank, in warmup or later.
goes_on() { # EVALUATIONS PHASE
    rm -f cut.h5*
    ! EMASS_FAULT=model:1:$1 emass_on 2 --output cut.h5 || return
    [ -s cut.h5.checkpoint ] && resumes "$2"
}

goes_on_after() { # ITERATIONS PHASE
    rm -f cut.h5*
    stopped_at "$1" 2 run.yaml --output cut.h5 && resumes "$2"
}

resumes() { # PHASE
    local said
    said=$(limited mpirun -n 3 "$emass" run run.yaml --progress none --output cut.h5 --resume 2>&1)
    echo "$said"
    grep -q "resuming .*($1)" <<<"$said" && cmp one.h5 cut.h5
}

is_taken_over() {
    emass_on 2 --overwrite --output next.h5 --set mass.from=one.h5 --set run.warmup=0 || return
    for name in inv_mass step_size noncentring; do
        h5diff one.h5 next.h5 "/mass_adaptation/$name" || return
    done
}

# Ladders find the map in the fifth round, which ends after 248 iterations.
begins_tempered() {
    sed -i 's/^run:.*/temper: {}\nrun: {chains: 3, warmup: 520, draws: 60}/' run.yaml
    emass_on 1 --overwrite --output one.h5 && h5ls one.h5/tempering | grep '^noncentring'
}

goes_on_tempered() { # ITERATION
    rm -f cut.h5*
    stopped_at "$1" 2 run.yaml --output cut.h5 || return
    emass_on 3 --resume --output cut.h5 && cmp one.h5 cut.h5
}

check 'a funnel' build
check 'one rank' emass_on 1 --output one.h5
for seed in 1 2 3 4; do
    check "the funnel's law by hmc, seed $seed" is_the_law "$seed" hmc
done
check "the funnel's law by nuts" is_the_law 5 nuts
check 'without it the run does not converge' is_needed
check 'the map is in the file' says_so
check 'a map takes 400 draws' takes_400_draws
check 'a map before there are draws' is_there_at_once
check 'the same bytes on two ranks' is_the_same 2
check 'the same bytes on three ranks' is_the_same 3
check 'stopped with the first map' goes_on_after 20 warmup
check 'stopped where the first map is fitted anew' goes_on_after 49 warmup
check 'stopped in warmup' goes_on 1500 warmup
check 'stopped in sampling' goes_on_after 330 sampling
check 'the next run takes it over' is_taken_over
for seed in 1 2 3; do
    check "factors of a scale are centred, seed $seed" are_centred "$seed"
done
check 'factors of a scale, the same bytes on three ranks' are_the_same 3
check 'a choice that there is not' run_is_refused 'noncentring' --set mass.noncentring=always
check 'a map that may not be used' run_is_refused 'mass.noncentring: auto' --set mass.from=one.h5 --set mass.noncentring=off
check 'tempered' begins_tempered
check 'tempered, the same bytes on three ranks' is_the_same 3
for iteration in 100 247 300 550; do
    check "tempered, stopped after $iteration iterations" goes_on_tempered "$iteration"
done
finish
