#!/usr/bin/env bash
# Stan programs through libstanli.so: what is refused and how, what is reported, the same bytes on
# any number of ranks and after a stop. Skipped where there is no stanli (analysis/venv has it).
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
if ! find_stanli; then
    skip 'Stan programs' 'no libstanli.so: pip install stanli, or make analysis/venv/ready'
    finish
fi
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >good.stan <<'STAN'
data { int<lower=0> N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
transformed parameters { matrix[2, 3] M;
  for (i in 1:2) for (j in 1:3) M[i, j] = 10 * i + j; }
model { mu ~ normal(0, 2); sigma ~ exponential(1); y ~ normal(mu, sigma); }
generated quantities {
  vector[N] log_lik; array[N] int<lower=0> k; array[N] real y_rep; real late = 0;
  for (i in 1:N) {
    log_lik[i] = normal_lpdf(y[i] | mu, sigma); k[i] = poisson_rng(3); y_rep[i] = normal_rng(mu, sigma);
  }
  if (mu > 2.2) late = normal_rng(0, -1);
}
STAN
echo '{"N": 3, "y": [1.5, 2, 2.25]}' >good.json
cat >run.yaml <<'YAML'
model: {name: stan, program: good.stan, data: good.json, posterior_predictive: ["y_*"]}
sampler: {name: hmc}
run: {chains: 3, warmup: 150, draws: 200}
YAML

sample() { # RANKS OUT ARGUMENT...
    local ranks=$1 out=$2
    shift 2
    limited mpirun -n "$ranks" "$emass" run run.yaml --output "$out" --quiet "$@"
}

# ---------------------------------------------------------------- what is reported

reports() {
    local header
    sample 1 one.h5 && header=$(ncdump -h one.h5) &&
        grep -q 'double M(chain, draw, M_dim_0, M_dim_1)' <<<"$header" &&
        grep -q 'int64 k(chain, draw, k_dim_0)' <<<"$header" &&
        grep -A9 'group: log_likelihood' <<<"$header" | grep -q 'double log_lik' &&
        grep -A9 'group: posterior_predictive' <<<"$header" | grep -q 'double y_rep' &&
        grep -A9 'group: observed_data' <<<"$header" | grep -q 'double y(y_dim_0)' &&
        grep -A9 'group: constant_data' <<<"$header" | grep -q 'int64 N ;' &&
        [ "$(h5dump -y -w 80 -d /posterior/M -s 0,0,0,0 -c 1,1,2,3 one.h5 |
            grep -cE '^ *(11, 12, 13,|21, 22, 23)$')" = 2 ]
}
numbered_as_in_stan() { # in tables; the file has ArviZ's coordinates, and says what is what
    "$emass" summary one.h5 | grep '^M\[1,1\] ' && ! "$emass" summary one.h5 | grep '\[0' &&
        [ "$(h5dump -y -w 0 -d /posterior/M_dim_0 one.h5 | grep -c '^ *0, 1')" = 1 ] && ncdump -h one.h5 >words &&
        grep -q 'M:index_base = 1' words && ! grep -q 'mu:role' words &&
        grep -q 'k:role = "generated quantity"' words && grep -q 'M:role = "transformed parameter"' words
}
same_bytes() { sample 2 two.h5 && sample 3 three.h5 && cmp one.h5 two.h5 && cmp one.h5 three.h5; }
goes_on() {
    stopped_at 230 2 run.yaml --output cut.h5 && sample 3 cut.h5 --resume && cmp cut.h5 one.h5
}
another_program() { # is not gone on with, and not taken for other data
    local status=0
    stopped_at 230 1 run.yaml --output other.h5 || return 1
    cp good.stan kept.stan
    sed -i 's/normal(0, 2)/normal(0, 3)/' good.stan
    limited "$emass" run run.yaml --output other.h5 --quiet --resume 2>words || status=$?
    mv kept.stan good.stan
    cat words
    [ "$status" = 2 ] && [ "$(wc -l <words)" = 1 ] && grep -q 'of another Stan program: the hash of the program was' words
}
keeps_the_rest() { # what fails are generated quantities: mu is there all the same
    "$emass" run run.yaml --output r.h5 --overwrite >/dev/null 2>words
    cat words
    grep -qE '[0-9]+ draws could not be reported in full.*normal_rng: Scale' words &&
        [ "$(ncdump -v mu r.h5 | grep -c NaN)" = "$(ncdump -h r.h5 | grep -c NaN)" ]
}
unconstrained() { # both scales are there, each number with its name
    sample 1 both.h5 --set output.save_unconstrained=true &&
        ncdump -v unconstrained_posterior/theta_dim_0 both.h5 >words
    cat words
    grep -q '"mu"' words && grep -q '"sigma"' words
}
numbers_of() { # FILE: those of posterior/z
    h5dump -y -d /posterior/z "$1" | awk '/DATA {/ { inside = 1 } inside { print } inside && /}/ { exit }'
}
keeps_what_was_drawn() { # transformed data that were drawn at random are the same without them
    local body='transformed data { real s = normal_rng(0, 1); } parameters { real x; }
        transformed parameters { real z = x + s; } model { x ~ normal(0, 1); }'
    echo "$body" >with.stan
    echo "$body generated quantities { real never = normal_rng(0, -1); }" >without.stan
    sample 1 with.h5 --set model.program=with.stan &&
        sample 1 without.h5 --set model.program=without.stan &&
        [ "$(numbers_of with.h5 | wc -l)" -gt 10 ] && cmp <(numbers_of with.h5) <(numbers_of without.h5)
}
selects() {
    sample 1 few.h5 --set 'output.variables=[m*, log_lik]' &&
        ncdump -h few.h5 >words && ! grep -qE ' (sigma|k|y_rep)\(' words &&
        grep -q 'double mu' words && grep -q 'double log_lik' words
}
tells() {
    "$emass" check run.yaml >words || return 1
    cat words
    grep -q '# data  *int<lower=0> N: one integer' words &&
        grep -q '# data  *vector\[N\] y: 3 numbers' words &&
        grep -q 'agrees with central differences' words && grep -q ' us a gradient' words
}
# A solver of four digits under Stan's derivatives: what differs is told, and is no error.
tells_of_solvers() {
    cat >decay.stan <<'STAN'
functions { vector decay(real t, vector y, real rate) { return -rate * y; } }
data { array[4] real y; }
parameters { real<lower=0> rate; }
model {
  array[4] vector[1] z = ode_rk45_tol(decay, [10]', 0, {1, 2, 3, 4}, 1e-3, 1e-3, 1000, rate);
  for (i in 1:4) y[i] ~ normal(z[i, 1], 0.1);
}
STAN
    printf '%s\n' 'model: {name: stan, program: decay.stan, data: {y: [4, 1.4, 0.5, 0.2]}}' >decay.yaml
    limited "$emass" check decay.yaml | grep -E 'gradient +differs from central differences by .* a solver'
}

# Beside a density of 1e26 no difference of another parameter is seen.
tells_of_rounding() {
    cat >steep.stan <<'STAN'
parameters { real x; real y; }
model { target += -exp(60 + x); y ~ normal(0, 1); }
STAN
    printf '%s\n' 'model: {name: stan, program: steep.stan}' >steep.yaml
    limited "$emass" check steep.yaml | tee /dev/stderr | grep -E 'gradient +agrees .*, to [0-9.]+e-[0-9]+; 5 of 10 components could not be compared'
}

# A function that the interpreter lacks takes all with it that is made of parameters: that is told, and what is asked
# of it by name is an error.
tells_what_lacks() {
    local status=0
    cat >rated.stan <<'STAN'
data { int<lower=1> N; array[N] int y; }
parameters { real b; ordered[2] c; }
model { b ~ normal(0, 1); c ~ normal(0, 2); y ~ ordered_logistic(rep_vector(b, N), c); }
generated quantities { real twice = 2 * b; array[N] int y_rep; for (n in 1:N) y_rep[n] = ordered_logistic_rng(b, c); }
STAN
    printf '%s\n' 'model:' '  name: stan' '  program: rated.stan' '  data: {N: 4, y: [1, 2, 3, 3]}' 'run: {draws: 5, warmup: 20}' >rated.yaml
    sample 1 rated.h5 2>words --set model.program=good.stan && ! grep -q 'the draws lack' words || return 1
    limited "$emass" run rated.yaml --quiet --output rated.h5 --overwrite 2>words || return
    if ! grep -q 'of this model have no compiled path' words; then # the interpreter has it now
        return 0
    fi
    grep -q 'rated.stan: the draws lack twice and other variables, because' words || return 1
    limited "$emass" run rated.yaml --quiet --output no.h5 --set 'model.posterior_predictive=[y_rep]' 2>words || status=$?
    cat words
    [ "$status" = 2 ] && [ ! -e no.h5 ] && grep -q "model.posterior_predictive: found 'y_rep', expected names of generated quantities" words
}
misnames() {
    local status=0
    limited "$emass" run run.yaml --quiet --output no.h5 --set 'model.predictions=[z_new]' 2>words || status=$?
    cat words
    [ "$status" = 2 ] && [ "$(wc -l <words)" = 1 ] && grep -q "model.predictions: found 'z_new', expected names" words
}

check 'what the interpreter cannot compute is told' tells_what_lacks
check 'predictions that no variable has are refused' misnames
check 'arrays in the order of the file, integers, log_lik and y_rep in their groups' reports
check 'tables number from 1, and the file says what is a parameter' numbered_as_in_stan
check 'the same bytes on 1, 2 and 3 ranks' same_bytes
check 'stopped and resumed on other ranks it is the same' goes_on
check 'another program is not gone on with' another_program
check 'parameters are kept where generated quantities fail' keeps_the_rest
check 'so are parameters that transformed data shift' keeps_what_was_drawn
check 'output.variables takes patterns' selects
check 'unconstrained parameters have their names' unconstrained
check 'emass check tells what is declared and what the data hold' tells
check 'and how exact a density with a solver is' tells_of_solvers
check 'what rounding hides is no agreement' tells_of_rounding

# ---------------------------------------------------------------- what is refused

run_fails() { # STATUS PATTERN ARGUMENT...
    fails_with "$1" -E "$2" "$emass" run run.yaml --output r.h5 --overwrite --quiet "${@:3}"
}

program() { # WHAT STATUS PATTERN TEXT
    printf '%b' "$4" >p.stan
    check "program: $1" run_fails "$2" "$3" --set model.program=p.stan
}

data() { # WHAT PATTERN TEXT
    printf '%b' "$3" >d.json
    check "data: $1" run_fails 2 "$2" --set model.data=d.json
}

rm -f r.h5*
printf 'functions { real f(real a) {\n return b; } }\n' >part.stan
x='parameters { real x; }\n'
program 'a syntax error' 2 '^emass: p.stan:2:14: Syntax error: .*Expected ";"' \
    'data { int N;\n vector[N] y }\n'
program 'a name that is not declared' 2 'p.stan:2:[0-9]+: Semantic error: Identifier "z" not in scope' \
    "${x}model { x ~ normal(z, 1); }"
program 'no such distribution' 2 'p.stan:2:[0-9]+: .*looking for distribution "nrmal"' \
    "${x}model { x ~ nrmal(0, 1); }"
program 'an error in an included file' 2 'part.stan:2:9: Semantic error: Identifier "b"' \
    "#include part.stan\n$x"
program 'an included file that is not there' 2 "p.stan:1:1: .*nothere.stan" "#include nothere.stan\n$x"
program 'no parameters' 2 'p.stan: found no parameters' 'model {}'
program 'an empty one' 2 'p.stan: found no parameters' ''
program 'a NUL byte' 2 'p.stan: found a NUL byte' "$x\0"
program 'recursion without end' 2 'p.stan with good.json: .*recursion' \
    "functions { real f(real a) { return f(a + 1); } }\n${x}model { target += f(x); }"
program 'recursion between two' 2 'p.stan with good.json: .*recursion' \
    "functions { real g(real a); real f(real a) { return g(a); } real g(real a) { return f(a); } }\n${x}model { target += f(x); }"
program 'recursion without end in the data' 2 'p.stan with good.json: .*recursion' \
    "functions { real f(real a) { return f(a + 1); } }\ntransformed data { real z = f(1); }\n${x}model { x ~ normal(0, 1); }"
program 'one that refuses all data' 2 'p.stan with good.json: not these' \
    "transformed data { reject(\"not these\"); }\n${x}model { x ~ normal(0, 1); }"
program 'a negative size' 2 'p.stan with good.json: .*extent' 'parameters { vector[-3] x; }\nmodel { x ~ normal(0, 1); }'
program 'an element that is not there' 2 'p.stan with good.json: .*index 4 out of bounds for size 3' \
    "${x}model { vector[3] a; x ~ normal(a[4], 1); }"
program 'one that includes itself' 2 'p.stan:1:1: .*recursively included' '#include p.stan\n'
program 'only parameters without a size' 2 'p.stan: found no parameters' 'parameters { vector[0] x; simplex[1] y; }'
program 'bounds that cross' 1 'no finite log density in 100 tries' 'parameters { real<lower=2, upper=1> x; }'
program 'one that always rejects' 1 'no finite log density in 100 tries.*never 1' \
    "${x}model { reject(\"never \", 1); }"
program 'one without a finite density' 1 'no finite log density in 100 tries.*the log density is .*declare the bounds of all parameters, or set run.init_radius' \
    "${x}model { target += log(-1); }"
program 'a variable that is called as a coordinate' 2 'chain' \
    'parameters { real chain; }\nmodel { chain ~ normal(0, 1); }'
mkfifo pipe.stan
program 'an include of what may never end' 2 'p.stan:2: #include ./pipe.stan: found a FIFO, expected a file' \
    '\n#include pipe.stan\nparameters { real x; }\nmodel { x ~ normal(0, 1); }'
mkdir folder.stan
printf '/* #include pipe.stan */ functions { } #include\n"pipe.stan"' >deep.stan
printf '// #include pipe.stan\n#include <folder.stan>\n' >also.stan
program 'an include within an include of what may never end' 2 '^emass: ./deep.stan:1: #include ./pipe.stan: found a FIFO' \
    "#include deep.stan\n$x"
program 'an include within an include of a folder' 2 '^emass: ./also.stan:2: #include ./folder.stan: found a folder' \
    "#include also.stan\n$x"
printf '#include large.0\n#include large.0\n' >large.1
printf '#include large.1\n#include large.1\n' >large.2
yes '//' | head -c 6000000 >large.0
program 'more than 16 MB of includes' 2 'p.stan: longer than 16777216 bytes with all that it includes' \
    "#include large.2\n$x"
for i in $(seq 0 1000); do echo "#include each.$((i + 1))" >"each.$i"; done
: >each.1001
program 'a thousand includes within each other' 2 '^emass: ./each.999:1: #include ./each.1000: found more than 1000 nested' \
    "#include each.0\n$x"
rm -f large.* each.*
no_room() { # WHAT TEXT: and none is taken: no kill by the system, and no minutes until it is
    printf '%s' "$2" >p.stan
    EMASS_FAULT=memory-room:0 run_fails 1 "p.stan with good.json: out of memory: it takes more than the 0.268 GB.*$1" \
        --set model.program=p.stan
}
most=2000000000
check 'program: more parameters than there is room for' no_room '2e.09 of them in vector\[2000000000\] x$' \
    "parameters { real<lower=0> z; vector[$most] x; } model { x ~ normal(0, 1); }"
check 'program: more of what is transformed' no_room '6e.09 of them in array\[2000000000\] vector\[N\] y$' \
    "data { int N; } parameters { real x; } transformed parameters { array[$most] vector[N] y; } model { x ~ normal(0, 1); }"
check 'program: more that is generated' no_room '2e.09 of them in vector\[2000000000\] y$' \
    "parameters { real x; } model { x ~ normal(0, 1); } generated quantities { vector[$most] y = rep_vector(x, $most); }"
check 'program: more of what only the program can tell' no_room 'available to a rank$' \
    "transformed data { vector[$most] y = rep_vector(1, $most); } parameters { real x; } model { x ~ normal(0, 1); }"
never_made() { # ends by a signal, although nobody comes to ask whether there was one
    local status=0 pid
    printf 'transformed data { real z = 0; while (1) z += 1; } parameters { real x; } model { x ~ normal(z, 1); }' >p.stan
    EMASS_FAULT=impatient:0 "$emass" run run.yaml --output r.h5 --quiet --set model.program=p.stan 2>words &
    pid=$!
    until grep -q libstanli "/proc/$pid/maps" 2>/dev/null || ! kill -0 "$pid"; do sleep 0.1; done
    kill -TERM "$pid"
    wait "$pid" || status=$?
    cat words
    [ "$status" = 75 ] && grep -q 'before the run began' words && ! [ -e r.h5 ]
}
check 'program: one that never ends is stopped by a signal' never_made
# Nor does anybody ask in a density that does not come back, where other ranks wait for this one.
lost_model=(--set model.program=p.stan --set run.draws=20000 --set run.thin=50 --set output.checkpoint_every=0.05)
is_starting() { [ -e s.h5.lock ] && sleep 1; }
saves_no_more() { # although it has begun: the output is open
    local before first
    before=$(stat -c %y s.h5.checkpoint) && first=$(ranks_of "$scratch/s.h5" | head -n 1) &&
        readlink "/proc/$first/fd/"* | grep -q 's\.h5$' && sleep 2 &&
        [ "$before" = "$(stat -c %y s.h5.checkpoint)" ]
}
signalled() { # RANKS COMMAND: that ends by a signal, once COMMAND succeeds
    local status=0 pid
    EMASS_FAULT=impatient:0 limited mpirun -n "$1" "$emass" run run.yaml --output "$scratch/s.h5" --quiet \
        --resume "${lost_model[@]}" 2>words &
    pid=$!
    until "$2" 2>/dev/null || ! kill -0 "$pid"; do sleep 0.1; done
    # shellcheck disable=SC2046 # several
    kill -TERM $(ranks_of "$scratch/s.h5")
    wait "$pid" || status=$?
    cat words
    [ "$status" = 75 ]
}
never_begun() {
    printf 'parameters { real x; } model { x ~ normal(0, 1); { real z = 0; while (1) z += 1; } }' >p.stan
    signalled 1 is_starting && grep -q 'before the run began' words
}
# Once in a hundred thousand densities it never ends; until then a signal stops the run as usual.
lost() { # RANKS
    printf 'parameters { real<lower=0, upper=1> x; }\n%s' \
        'model { real z = 0; if (x > 0.5 && x < 0.50001) while (1) z += 1; }' >p.stan
    rm -f s.h5*
    stopped_at 300 1 run.yaml --output "$scratch/s.h5" "${lost_model[@]}" || return 1
    for _ in $(seq 20); do
        signalled "$1" saves_no_more || return 1
        ! grep -q 'a call of the model that does not return' words || break
    done
    grep -q 'a call of the model that does not return' words && [ -s s.h5.checkpoint ] && [ -s s.h5 ]
}
check 'program: one whose density never ends is stopped by a signal' never_begun
check 'program: one that does not come back while another rank waits: the last checkpoint stays' lost 2
# All four chains begin in one of two modes of the same mass, from where no chain gets to the other.
cat >modes.stan <<'STAN'
parameters { real x; }
model { target += log_mix(0.5, normal_lpdf(x | -7, 1), normal_lpdf(x | 6, 1)); }
STAN
modes=(--set model.program=modes.stan --set run.warmup=auto --set run.chains=4)
in_one_mode() { # the seed, of which one in eight is such
    local seed
    for seed in $(seq 1 80); do
        sample 1 on1.h5 --overwrite "${modes[@]}" --seed "$seed" || return 1
        ! h5dump -A on1.h5 | grep -q 'ATTRIBUTE "mode_search_log_mass"' || { echo "$seed" && return; }
    done
    return 1
}
missed_and_resumed() {
    local seed at
    seed=$(in_one_mode) && h5dump -a mode_search_log_mass on1.h5 | awk '/\(0\)/ { exit !($2 < 0.01 && $2 > -0.01) }' &&
        "$emass" summary on1.h5 --csv | awk -F, '/^x/ { exit !($3 < 0.2) }' &&
        sample 3 on3.h5 --overwrite "${modes[@]}" --seed "$seed" && cmp on1.h5 on3.h5 || return
    for at in 3 40 230; do
        rm -f cut.h5*
        stopped_at "$at" 2 run.yaml --output cut.h5 "${modes[@]}" --seed "$seed" &&
            sample 3 cut.h5 --resume "${modes[@]}" --seed "$seed" && cmp on1.h5 cut.h5 || return
    done
}
check 'program: a mode that no draw is near to is found; one file on any ranks, however often stopped' missed_and_resumed
check 'program: no file' run_fails 2 'cannot read none.stan' --set model.program=none.stan
check 'program: a folder' run_fails 2 'cannot read' --set model.program=.

data 'a missing variable' 'd.json: no y in it, which good.stan declares as vector\[N\] y' '{"N": 3}'
data 'a wrong length' 'd.json: found y of shape \(2\), expected \(3\): vector\[N\] y' '{"N": 3, "y": [1, 2]}'
data 'a list of lists for a vector' 'found y of shape \(1, 3\), expected \(3\)' '{"N": 3, "y": [[1, 2, 3]]}'
data 'a number for a vector' 'found y of shape \(\), expected \(1\)' '{"N": 1, "y": 2}'
data 'no integer for int' 'd.json: int variable.*name=N' '{"N": 2.5, "y": [1, 2]}'
data 'out of bounds' 'good.stan with d.json: ' '{"N": -1, "y": []}'
data 'text for a number' 'd.json:2: y: found the text .one., expected a number' '{"N": 1,\n "y": ["one"]}'
data 'R dump' 'd.json:1: found .N., expected JSON' 'N <- 3'
data 'no object' 'd.json:1: ' '[1]'
data 'nothing' 'd.json:1: found the end of the file' ''
data 'a name twice' 'd.json:1: found N again' '{"N": 1, "N": 1}'
data 'a ragged list' 'd.json:1: y: found a list of 1, expected 2' '{"N": 1, "y": [[1, 2], [3]]}'
data 'a number beyond a double' 'd.json:1: .*fits a double' '{"N": 1, "y": [1e999]}'
data 'an integer beyond an int' 'name=N' '{"N": 99999999999999999999, "y": [1]}'
data 'something after it' 'd.json:1: .*nothing after the data' '{"N": 1, "y": [1]} 2'
data 'what only the interpreter may say' 'expected the name of a variable' '{"__stanli": 1}'
data 'lists without end' 'not so deep' "{\"y\": $(printf '[%.0s' $(seq 10000))"
check 'data: no file' run_fails 2 'cannot read none.json' --set model.data=none.json
check 'shards' run_fails 2 'run.shards' --set run.shards=2
init() { # WHAT PATTERN TEXT
    echo "$3" >i.json
    check "initial values: $1" run_fails 2 "^emass: i.json: $2" --set model.init=i.json
}
init 'out of bounds' '.*Lower bound' '{"mu": 1, "sigma": -1}'
init 'of some parameters' '.*no starting value for parameter sigma' '{"mu": 1}'
init 'of another shape' 'found mu of shape \(1\), expected \(\): real mu' '{"mu": [1], "sigma": 1}'
init 'of what is no parameter' '.*other is not a parameter' '{"mu": 1, "sigma": 1, "other": 2}'
printed_once() { # each time the same, on whatever rank
    printf '%s' 'parameters { real x; } model { print("a"); print("a"); print("b"); print("b"); x ~ normal(0, 1); }' >p.stan
    sample 3 printed.h5 --set model.program=p.stan 2>words
    cat words
    [ "$(grep -c 'prints: a$' words)" = 10 ] && [ "$(grep -c 'prints: b$' words)" = 10 ] && [ "$(wc -l <words)" = 21 ] &&
        printf '%s' 'parameters { real x; } model { print("a"); x ~ normal(0, 1); }' >p.stan &&
        sample 3 printed.h5 --overwrite --set model.program=p.stan 2>words && [ "$(wc -l <words)" = 1 ]
}
check 'what a program prints is said by one rank, no line twice running' printed_once

# An emass with nothing beside it, whatever `make stanli` has put beside the one that was built.
mkdir -p alone/bin && cp "$emass" alone/bin/emass
no_library() { # PATTERN ENVIRONMENT...
    local status=0 pattern=$1
    shift
    limited env "$@" alone/bin/emass run run.yaml --output r.h5 --quiet >words 2>&1 || status=$?
    cat words
    [ "$status" = 2 ] && [ "$(wc -l <words)" = 1 ] && grep -q "$pattern" words
}
zlib=$(ldconfig -p | sed -n 's/.*libz.so.1 .*=> //p' | head -n 1)
mkdir bare && printf '#!/bin/sh\nexit 1\n' >bare/python3 && chmod +x bare/python3
check 'no stanli anywhere: how to get it' no_library 'pip install stanli' EMASS_STANLI= \
    "PATH=$scratch/bare:$PATH"
check 'EMASS_STANLI names nothing' no_library 'there is no /nowhere' EMASS_STANLI=/nowhere
check 'EMASS_STANLI names another library' no_library 'no version of BridgeStan' "EMASS_STANLI=$zlib"

# ---------------------------------------------------------------- what is read

reads() { # JSON
    echo "$1" >d.json
    limited "$emass" check run.yaml --set model.data=d.json
}
check 'numbers of every kind' reads '{"N": 3, "y": [-0.0, 1E-3, 12345678901234567890.5]}'
check 'exact numbers, spaces and a byte order mark' reads "$(printf '\xef\xbb\xbf { "N" :\t2 , "y" : [ 0.1 , 2 ] } ')"
through_python() { # found where `python3` in the path finds it
    EMASS_STANLI='' PATH=$project/analysis/venv/bin:$PATH limited alone/bin/emass check run.yaml
}
if [ -x "$project/analysis/venv/bin/python3" ]; then
    check 'libstanli.so is found through python3' through_python
else
    skip 'libstanli.so is found through python3' 'no analysis/venv'
fi
wide() {
    printf 'parameters { vector[100000] x; } model { x ~ normal(0, 1); }' >p.stan
    limited "$emass" run run.yaml --output wide.h5 --quiet --set model.program=p.stan \
        --set run.chains=1 --set run.warmup=5 --set run.draws=2
}
check '100,000 parameters' wide

# ---------------------------------------------------------------- our own

job() { # NAME: converges, reports what it says, and is the same when verified on other ranks
    local said
    said=$(limited "$emass" run "$project/jobs/$1.yaml" --output "$1.h5" 2>&1 | grep converged:) &&
        echo "$said" && grep -q '^converged: .* 0 divergences' <<<"$said" &&
        limited mpirun -n 3 "$emass" verify "$1.h5" --folder "$project/jobs" --draws 20
}
for name in rats nile faithful; do
    check "jobs/$name.yaml converges, and is the same on 3 ranks" job "$name"
done
kinds_are_integers() { ncdump -h faithful.h5 | grep -q 'int64 kind(chain, draw, kind_dim_0)'; }
check 'an array of integers is one in the file' kinds_are_integers
future_is_predicted() { ncdump -h nile.h5 | grep -A9 'group: predictions' | grep -q 'double future'; }
check 'predictions are in their group' future_is_predicted

# ---------------------------------------------------------------- posteriordb

base=${EMASS_DATA:-}/posteriordb
if [ ! -d "$base" ]; then
    skip 'posteriordb' 'no EMASS_DATA'
    finish
fi
posterior() { # NAME: loads, samples, and not otherwise on 3 ranks
    local settings=(--set "model.program=$base/$1.stan" --set "model.data=$base/$1.json"
        --set run.warmup=20 --set run.draws=10)
    limited "$emass" run run.yaml --output "$1.1.h5" --quiet "${settings[@]}" && sample 3 "$1.3.h5" "${settings[@]}" &&
        cmp "$1.1.h5" "$1.3.h5"
}
for program in "$base"/*.stan; do
    name=$(basename "$program" .stan)
    check "posteriordb: $name" posterior "$name"
done
finish
