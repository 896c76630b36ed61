#!/usr/bin/env bash
# A chain that starts far outside, where the mass of the others is too narrow for its way, gets a mass of its own: it
# arrives, and the draws are the same bytes on any ranks and after a stop while it has that mass.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >rasch.c <<'C'
/* 1000 answers to 5 questions of y_ik ~ Bernoulli(logit^-1(b theta_i - a_k)), theta_i ~ N(0, 1), a_k ~ N(0, 100^2),
 * b ~ half-N(100), by log b. Where b is small, the slope of log b is all that leads away. */
#include <emass/plugin.h>
#include <math.h>
#include <stdbool.h>
enum { N = 1000, K = 5 };
static const double at[K] = {-2.7, -1, -0.2, -1.3, -2.1};
static double answer(int i, int k) /* with theta_i spread evenly, by its quantiles */
{
    unsigned x = (unsigned)(i * K + k) * 2654435761u;
    x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
    const double u = (i + 0.5) / N, theta = 0.55 * log(u / (1 - u));
    return (x / 4294967296.0) < 1 / (1 + exp(-0.76 * theta + at[k]));
}
static em_status density(const void *given, const double *q, double *log_p, double *gradient)
{
    const double *theta = q + K, b = q[K + N];
    static double known[N][K];
    static bool are_known;
    (void)given;
    for (int i = 0; !are_known && i < N * K; i++)
        known[i / K][i % K] = answer(i / K, i % K);
    are_known = true;
    for (int i = 0; i < N; i++) {
        *log_p -= theta[i] * theta[i] / 2;
        gradient[K + i] -= theta[i];
        for (int k = 0; k < K; k++) {
            const double y = known[i][k], eta = b * theta[i] - q[k], p = 1 / (1 + exp(-eta));
            *log_p += y * eta - (eta > 0 ? eta + log1p(exp(-eta)) : log1p(exp(eta)));
            gradient[k] -= y - p;
            gradient[K + i] += (y - p) * b;
            gradient[K + N] += (y - p) * theta[i];
        }
    }
    for (int k = 0; k < K; k++) {
        *log_p -= q[k] * q[k] / 2e4;
        gradient[k] -= q[k] / 1e4;
    }
    *log_p -= b * b / 2e4;
    gradient[K + N] -= b / 1e4;
    return EM_OK;
}
static const em_variable parameters[] = {{.name = "a", .n_axes = 1, .shape = {K}},
                                         {.name = "theta", .n_axes = 1, .shape = {N}},
                                         {.name = "b", .bounds = EM_ABOVE(0)}};
EMASS_PLUGIN({.name = "rasch", .n_parameter = 3, .parameter = parameters, .log_density_gradient = density});
C
cc -O2 -std=c17 -shared -fPIC -I"$project/include" rasch.c -o rasch.so -lm || exit 1
printf 'model: {name: rasch, library: ./rasch.so}\nrun: {chains: 4, draws: 20, seed: 1}\noutput: {save_warmup: true}\n' >run.yaml

go() { # RANKS FILE
    limited mpirun -n "$1" "$emass" run run.yaml --quiet --output "$2" --resume
}
# Of seed 1 a chain begins at a tiny b. With the mass of the others it takes all of the 750 iterations there may be.
arrives() {
    go 1 one.h5 && h5dump -a /warmup one.h5 >words
    grep warmup words
    sed -n 's/.*initial phase ended at iteration \([0-9]*\);.*/\1/p' words | awk '{ found = $1 < 400 } END { exit !found }'
}
check 'a chain that starts far outside arrives' arrives
began_outside() { # one chain has b < 0.05 after 20 iterations, and is with the others in the end
    h5dump -m %.17g -y -w 1 -d "$1" one.h5 | grep -E '^ *[-0-9]' | tr -d ', ' >b.txt
    awk -v from="$2" '{ b[NR] = $1 } END { n = NR / 4; for (c = 0; c < 4; c++) low += b[c * n + from] < 0.05; print low " chains"; exit low != '"$3"' }' b.txt
}
check 'it had begun outside' began_outside /warmup_posterior/b 20 1
check 'it is where the others are' began_outside /posterior/b 20 0
check 'the same bytes on 3 ranks' eval 'go 3 three.h5 && cmp one.h5 three.h5'
stopped() { # after so many iterations, resumed on other ranks
    rm -f part.h5*
    ! EMASS_FAULT=time-limit:0:$1 go 2 part.h5 2>words && go 1 part.h5 && cmp one.h5 part.h5
}
check 'stopped while it is outlying: the same bytes' stopped 17
check 'stopped while it has a mass of its own: the same bytes' stopped 40
finish
