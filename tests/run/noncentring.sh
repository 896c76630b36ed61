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
    cc -std=c17 -Wall -Wextra -Werror -shared -fPIC -I"$project/include" funnel.c -o funnel.so -lm
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

# v ~ N(-1, 0.5), and N numbers with data c_i ~ N(exp(v) x_i, 1 / P) and x_i ~ N(0, 1): factors of the scale. With
# CENTRED c_i ~ N(x_i, 1 / P) and x_i ~ N(0, exp(v)), which has the same law of v.
cat >hierarchy.c <<'C'
#include <emass/plugin.h>
#include <math.h>
static em_status density(const void *options, const double *theta, double *log_p, double *gradient)
{
    const double v = theta[0], scale = CENTRED ? 1 : exp(v), of_prior = CENTRED ? exp(v) : 1;
    (void)options;
    *log_p -= 2 * (v + 1) * (v + 1) + (CENTRED ? N * v : 0);
    gradient[0] -= 4 * (v + 1) + (CENTRED ? N : 0);
    for (int i = 0; i < N; i++) {
        const double x = theta[1 + i], away = scale * x - 0.5 * sin(2.0 * i + 1), z = x / of_prior;
        *log_p -= z * z / 2 + P * away * away / 2;
        gradient[0] += CENTRED ? z * z : -P * away * scale * x;
        gradient[1 + i] -= z / of_prior + P * away * scale;
    }
    return EM_OK;
}
static const em_variable parameters[] = {{.name = "v"}, {.name = "x", .n_axes = 1, .shape = {N}}};
EMASS_PLUGIN({.name = NAME, .n_parameter = 2, .parameter = parameters,
              .log_density_gradient = density});
C

build_hierarchy() { # NAME N CENTRED P
    cc -std=c17 -Wall -Wextra -Werror -shared -fPIC -I"$project/include" -DN="$2" -DCENTRED="$3" -DP="$4.0" "-DNAME=\"$1\"" \
        hierarchy.c -o "$1.so" -lm || return
    sed "s/funnel/$1/g; s/draws: 200/draws: 1000/" run.yaml >"$1.yaml"
}

hierarchy_on() { # RANKS NAME ARGUMENT...
    limited mpirun -n "$1" "$emass" run "$2.yaml" --progress none --overwrite "${@:3}"
}

# All members are mapped; the mean and the standard deviation of v are within 4.5 Monte Carlo standard errors of those
# by a sum over a grid; and its ESS is at least GAIN times that in the model's own coordinates with seed 1.
is_mapped() { # NAME N P WHAT GAIN SEED
    hierarchy_on 1 "$1" --output mapped.h5 --seed "$6" >mapped.txt 2>&1 || return
    grep -q "; $2 parameters $4" mapped.txt || return
    if [ "$6" = 1 ]; then
        hierarchy_on 1 "$1" --output "$1_off.h5" --seed 1 --set mass.noncentring=off --quiet || return
    fi
    for name in mapped "$1_off"; do
        limited "$emass" summary "$name.h5" --csv >"$name.csv" || return
    done
    awk -F, -v n="$2" -v precision="$3" -v gain="$5" '
        function log_p(v,    p, i, variance) {
            p = -2 * (v + 1) ^ 2
            for (i = 0; i < n; i++) {
                variance = exp(2 * v) + 1 / precision
                p -= (0.5 * sin(2 * i + 1)) ^ 2 / variance / 2 + log(variance) / 2
            }
            return p
        }
        BEGIN { top = log_p(-1)
                for (v = -8; v < 2; v += 0.004) {
                    p = exp(log_p(v) - top); all += p; first += p * v; second += p * v * v
                }
                mean = first / all; sd = sqrt(second / all - mean * mean) }
        FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
        $1 == "v" { ess[++found] = $column["ess_bulk"] }
        $1 == "v" && found == 1 { z = ($column["mean"] - mean) / $column["mcse_mean"]
                                  of_sd = ($column["sd"] - sd) / (sd / sqrt(2 * $column["ess_tail"])) }
        END { print "z of the mean", z, "of the sd", of_sd, "ESS", ess[1], "and", ess[2]
              exit !(z < 4.5 && z > -4.5 && of_sd < 4.5 && of_sd > -4.5 && ess[1] > gain * ess[2]) }' \
        mapped.csv "$1_off.csv"
}

# The 64 chains end warmup after few iterations, so some of them have not arrived. They arrive in the coordinates of
# the map: in the model's, one of them stood still for the whole run.
all_move() { # NAME SEED
    local said
    said=$(hierarchy_on 2 "$1" --output all.h5 --seed "$2" --set run.chains=64 --set run.draws=60 2>&1)
    echo "$said"
    grep -q "; 300 parameters" <<<"$said" && ! grep -q 'stood still' <<<"$said"
}

are_the_same() { # NAME RANKS
    hierarchy_on 1 "$1" --output one_hierarchy.h5 --quiet && hierarchy_on "$2" "$1" --output other.h5 --quiet &&
        cmp one_hierarchy.h5 other.h5
}

# Stopped after an iteration on two ranks, resumed on three.
hierarchy_goes_on() { # NAME ITERATION
    rm -f cut.h5*
    stopped_at "$2" 2 "$1.yaml" --output cut.h5 || return
    limited mpirun -n 3 "$emass" run "$1.yaml" --progress none --output cut.h5 --resume && cmp one_hierarchy.h5 cut.h5
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
check 'a hierarchy in the non-centred form' build_hierarchy factors 40 0 100
check 'one of many members' build_hierarchy many_factors 300 0 100
check 'one of many members, centred' build_hierarchy many 300 1 4
for seed in 1 2 3; do
    check "factors of a scale are centred, seed $seed" is_mapped factors 40 100 centred 3 "$seed"
    check "many factors of a scale, seed $seed" is_mapped many_factors 300 100 centred 3 "$seed"
    check "many members of a scale, seed $seed" is_mapped many 300 4 non-centred 10 "$seed"
done
for seed in 1 3; do
    check "64 chains of many factors, seed $seed" all_move many_factors "$seed"
    check "64 chains of many members, seed $seed" all_move many "$seed"
done
for name in factors many_factors many; do
    check "$name, the same bytes on three ranks" are_the_same "$name" 3
done
for iteration in 30 80 140 300; do
    check "many members, stopped after $iteration iterations" hierarchy_goes_on many "$iteration"
done
check 'a choice that there is not' run_is_refused 'noncentring' --set mass.noncentring=always
check 'a map that may not be used' run_is_refused 'mass.noncentring: auto' --set mass.from=one.h5 --set mass.noncentring=off
check 'tempered' begins_tempered
check 'tempered, the same bytes on three ranks' is_the_same 3
for iteration in 100 247 300 550; do
    check "tempered, stopped after $iteration iterations" goes_on_tempered "$iteration"
done
finish
