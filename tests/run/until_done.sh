#!/usr/bin/env bash
# draws: auto: a run goes on until ESS and R-hat are good, or a limit ends it; its file holds draws that
# are thinned evenly. The same bytes on any ranks and after kills, from the draws alone.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0
export OMPI_MCA_odls_base_sigkill_timeout="0" # mpirun kills the other ranks at once
command -v h5dump >/dev/null || { skip 'draws: auto' 'no h5dump (hdf5-tools)' && finish; }

go() { # RANKS FILE ARGUMENT...
    limited mpirun -n "$1" "$emass" run run.yaml --quiet --output "$2" --resume "${@:3}"
}
config() { printf '%s\n' "$@" >run.yaml; }
attribute() { # FILE NAME
    h5dump -a "/$2" "$1" | sed -n 's/^ *(0): "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p'
}
is() { # FILE NAME VALUE
    local found
    found=$(attribute "$1" "$2")
    echo "$2 of $1: $found; expected $3"
    # shellcheck disable=SC2053 # a pattern
    [[ $found == $3 ]]
}
draws_are() { # FILE N: of each of its groups of draws
    local found
    found=$(for group in posterior sample_stats; do h5ls "$1/$group/draw"; done | sed 's/.*{\([0-9]*\).*/\1/' | sort -u)
    echo "$found draws; expected $2"
    [ "$found" = "$2" ]
}
# Of each chain in its file.
count_draws() { h5ls "$1/posterior/draw" | sed 's/.*{\([0-9]*\).*/\1/'; }

# ---------------------------------------------------------------- the rule

config 'model: {name: logistic, n: 200, intercept: false}' 'run: {chains: 4}'
by_rule() {
    go 1 rule.h5 && is rule.h5 ended_by 'the stop rule' && is rule.h5 thinning 1 && is rule.h5 verdict 'converged*' &&
        n=$(count_draws rule.h5) && [ $((n % 200)) = 0 ] && draws_are rule.h5 "$n" &&
        limited "$emass" summary rule.h5 >table && cat table &&
        grep -q "x $n draws, ended by the stop rule" table
}
check 'without run.draws a run ends when it is done, and says so' by_rule
same_draws() { # but for what says why it ended, the file is that of a run of so many draws
    go 1 number.h5 --set run.draws="$n" && limited "$emass" diff rule.h5 number.h5 >differences
    cat differences
    ! grep -vE '^(attribute (ended_by|planned_draws|thinning|verdict)|config (run.draws|stop.(max_|end_after)))' differences
}
check 'with the draws of a run of so many' same_draws
check 'on 3 ranks the same bytes' eval 'go 3 three.h5 && cmp rule.h5 three.h5'
check 'it is complete' eval 'go 1 rule.h5 2>words; grep -q "complete: nothing to do" words'
number_refused() { # a number of draws is none of the ways to extend this run, and the message names them
    local status=0
    cp rule.h5 part.h5
    go 1 part.h5 --set run.draws=4000 2>words || status=$?
    cat words
    [ "$status" = 2 ] && cmp rule.h5 part.h5 &&
        grep -q 'run.draws differ; give the old values (run.draws: auto; a higher stop.max_draws or stop.ess gives' words
}
check 'a number of draws for a run without one: the message says how to extend it' number_refused
limits_alone() { # the limits that are named are the rule, however few draws meet them
    go 1 named.h5 --set stop.ess=400 && is named.h5 ended_by 'the stop rule' && draws_are named.h5 400
}
check 'with limits of its own it ends when they are met' limits_alone
few_chains() { go 1 one.h5 --chains 1 --set stop.check_every=100 && is one.h5 ess_limit 400; }
check 'one chain needs an ESS of 400 as well' few_chains

# ---------------------------------------------------------------- limits, and thinning

# A slow chain, whose ESS is far from what is wanted: 3000 draws, of which 1 of 4 is kept. So many numbers that the
# file has room for 800 draws first, and for 1000 later, and may keep room for 185 that are not there.
config 'model: {name: gaussian, dim: 140}' 'sampler: {name: hmc, leapfrog_steps: 1, step_size: 0.03}' \
    'run: {chains: 5, warmup: 20, draws: auto}' 'stop: {ess: 620, max_draws: 3000}' \
    'output: {save_warmup: true, prior_draws: 0, checkpoint_every: 1000}'
slow() {
    go 1 whole.h5 && is whole.h5 ended_by stop.max_draws && is whole.h5 thinning 4 && draws_are whole.h5 750 &&
        is whole.h5 verdict '*5 chains x 750 draws, 1 of 4 kept, ended by stop.max_draws' &&
        limited "$emass" summary whole.h5 | grep -q '1 of 4 kept, ended by stop.max_draws'
}
check 'a limit ends a run and is named; draws are thinned to the bound' slow
check 'on 2 ranks the same bytes' eval 'go 2 two.h5 && cmp whole.h5 two.h5'
evenly() { # the kept draws are every 4th of those of a run that keeps all
    sed 's/draws: auto/draws: 3000/; s/, max_draws: 3000//; s/ess: 620/ess: none/' run.yaml >plain.yaml
    limited "$emass" run plain.yaml --quiet --output all.h5 || return 1
    for file in whole all; do
        h5dump -m %.17g -y -w 1 -d /posterior/x -s 0,0,0 -c "5,$(count_draws "$file.h5"),2" "$file.h5" | grep -E '^ *-?[0-9]' | tr -d ', ' >"$file.txt"
    done
    awk 'int((NR - 1) / 2) % 4 == 3' all.txt | cmp - whole.txt
}
check 'evenly' evenly
check 'emass verify draws the kept ones again' limited "$emass" verify whole.h5 --draws 20
killed() { # FAULT RANKS ARGUMENT...: then resumed on so many ranks
    rm -f part.h5*
    EMASS_FAULT=$1 go 2 part.h5 "${@:3}" >words 2>&1
    while [ -n "$(ranks_of "$scratch/part.h5")" ]; do sleep 0.1; done
    [ -e part.h5.lock ] && go "$2" part.h5 "${@:3}" && cmp "${reference:-whole.h5}" part.h5 &&
        [ "$(echo part.h5*)" = part.h5 ]
}
for n in 1 2 3; do # room for more draws, two thinnings
    check "killed before output $n is set aside: the same bytes" killed "kill:file-rename:0:$((3 * n))" 1
    check "killed while output $((n + 1)) is made: the same bytes" killed "kill:hdf5-create:1:$((n + 1))" 3
done
killed_at_the_end() { # where too much room is left, so that the output is made again
    go 1 less.h5 --set stop.max_draws=1100 && draws_are less.h5 550 &&
        reference=less.h5 killed kill:hdf5-create:1:4 1 --set stop.max_draws=1100 &&
        reference=less.h5 killed kill:hdf5-close:0 3 --set stop.max_draws=1100
}
check 'killed while the last output is made, and at its end: the same bytes' killed_at_the_end
check 'killed after a thinning: the same bytes' killed kill:model:1:2100 1
cut() { # stopped with a checkpoint, by a limit that is not the run's
    rm -f part.h5*
    ! EMASS_FAULT=time-limit:0:$1 go 2 part.h5 2>words && go 1 part.h5 && cmp whole.h5 part.h5
}
check 'stopped in warmup, resumed: the same bytes' cut 10
check 'stopped before the first thinning, resumed: the same bytes' cut 700
check 'stopped after a thinning, resumed: the same bytes' cut 2777
extended() {
    rm -f part.h5*
    go 1 part.h5 --set stop.max_draws=1100 && is part.h5 thinning 2 && draws_are part.h5 550 && go 2 part.h5 &&
        cmp whole.h5 part.h5
}
check 'a run that its limit ended goes on to a higher one' extended
by_gradients() {
    for n in 1 2; do
        rm -f part.h5*
        go "$n" part.h5 --set stop.max_gradients=2500 && is part.h5 ended_by stop.max_gradients &&
            draws_are part.h5 600 || return 1
    done
    go 1 part.h5 --set stop.max_gradients=none && cmp -s whole.h5 part.h5
}
check 'gradients end a run at the first check after so many' by_gradients
by_time() {
    rm -f part.h5*
    go 2 part.h5 --set stop.end_after=0.2s --set stop.max_draws=100000000 && is part.h5 ended_by stop.end_after &&
        is part.h5 verdict '*ended by stop.end_after, which no other run reproduces'
}
interrupted_by_time() { # which is no end
    local status=0
    rm -f part.h5*
    go 1 part.h5 --max-time 0s || status=$?
    [ "$status" = 75 ] && go 2 part.h5 && cmp whole.h5 part.h5
}
check 'the time limit of a job interrupts it instead' interrupted_by_time
check 'time ends a run that has draws, and that no other run reproduces it is said' by_time

# ---------------------------------------------------------------- separate modes

cat >modes.c <<'C'
/* 1/2 N(-at, 1) + 1/2 N(at, 1) */
#include <emass/plugin.h>
#include <math.h>
typedef struct { double at; } options;
static const em_field fields[] = {EM_REAL(options, at, .fallback = "1", .doc = "where the modes are"), {0}};
static em_status density(const void *given, const double *x, double *log_p, double *gradient)
{
    const double at = ((const options *)given)->at;
    *log_p -= (x[0] * x[0] + at * at) / 2 - at * fabs(x[0]) - log1p(exp(-2 * at * fabs(x[0])));
    gradient[0] -= x[0] - at * tanh(at * x[0]);
    return EM_OK;
}
EMASS_PLUGIN({.name = "modes", .options_size = sizeof(options), .fields = fields, .dim = 1, .log_density_gradient = density});
C
cc -O2 -std=c17 -shared -fPIC -I"$project/include" modes.c -o modes.so -lm || exit 1
config 'model: {name: modes, library: ./modes.so, at: 8}' 'run: {chains: 4, seed: 3}'
separate() {
    go 1 apart.h5 && is apart.h5 ended_by 'separate modes' && is apart.h5 verdict 'not converged: 2 modes*' && draws_are apart.h5 200 &&
        limited "$emass" summary apart.h5 >table && grep -q 'temper' table
}
check 'chains in separate modes end a run, and the remedy is named' separate
check 'on 3 ranks the same bytes' eval 'go 3 apart3.h5 && cmp apart.h5 apart3.h5'
interrupted() { EMASS_FAULT=time-limit:0:$1 go 2 part.h5 2>words || go 1 part.h5 && cmp apart.h5 part.h5; }
check 'interrupted between the two checks, resumed: the same bytes' eval 'rm -f part.h5*; interrupted 190'
goes_on() { # FILE ARGUMENT...: to the limit
    go 1 "$1" "${@:2}" && is "$1" ended_by stop.max_draws && draws_are "$1" 600
}
check 'not where that is switched off' goes_on off.h5 --set stop.separate_modes=false --set stop.max_draws=600
check 'not before a share of the limit' eval 'go 1 later.h5 --set stop.max_draws=12000 && draws_are later.h5 800'
check 'nor where chains still cross' goes_on cross.h5 --set model.at=3.2 --set stop.max_draws=600

# A check ends at the first number that misses the limits: on one rank x[0], of which the chains agree.
sed 's/x\[0\]/x[1]/g; s/gradient\[0\]/gradient[1]/; s/\.dim = 1/.dim = 2/; s/"modes"/"second"/' modes.c |
    sed 's/    return EM_OK;/    *log_p -= x[0] * x[0] \/ 2, gradient[0] -= x[0];\n    return EM_OK;/' >second.c
cc -O2 -std=c17 -shared -fPIC -I"$project/include" second.c -o second.so -lm || exit 1
config 'model: {name: second, library: ./second.so, at: 8}' 'run: {chains: 4, seed: 3}' 'stop: {ess: 100000}'
check 'the modes of a second number, while the first has no ESS yet' \
    eval 'go 1 second1.h5 && is second1.h5 ended_by "separate modes" && draws_are second1.h5 200'
check 'on 2 and 3 ranks the same bytes' \
    eval 'go 2 second2.h5 && go 3 second3.h5 && cmp second1.h5 second2.h5 && cmp second1.h5 second3.h5'

# ---------------------------------------------------------------- where it has no meaning

config 'model: {name: logistic, n: 200, intercept: false}' 'sampler: {name: adam, step_size: 0.01, minibatch: 20}' \
    'run: {chains: 2, warmup: 10}'
check 'an optimiser is refused' refused -E 'run.draws: found auto, expected a number: adam is an optimiser' \
    go 1 no.h5 --set run.draws=auto
config 'model: {name: logistic, n: 200, intercept: false}' 'sampler: {name: sgld, step_size: 0.001, minibatch: 20}' \
    'mass: {estimator: none}' 'run: {chains: 4, warmup: 10}'
check 'a sampler that takes minibatches has 1000 draws' eval 'go 1 sgld.h5 && draws_are sgld.h5 1000'
config 'model: {name: logistic, n: 200, intercept: false}' 'run: {chains: 4, draws: 60}'
check 'a number of draws has no such limit' refused -E 'stop.max_gradients: found together with run.draws: 60, expected run.draws: auto' \
    go 1 no.h5 --set stop.max_gradients=100
another_kind() { go 1 number.h5 && refused -E 'run.draws differ' go 1 number.h5 --set run.draws=auto; }
rm -f number.h5
check 'a run of so many draws does not become another' another_kind
finish
