#!/usr/bin/env bash
# Stan models as compiled libraries: one written by hand with BridgeStan's C interface, so that no
# C++ is needed. What a model may report, besides: failures, random numbers, other groups, tuples.
# shellcheck source=tests/run/lib.sh disable=SC2317,SC2016
. "$(dirname "$0")/lib.sh"
source=$(cd "$(dirname "$0")" && pwd)/bridgestan_model.c
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

compile() { # OUT FLAG...
    local out=$1
    shift
    gcc -std=c17 -O1 -D_GNU_SOURCE -shared -fPIC "$@" "$source" -o "$out"
}
compile model.so && compile old.so -DMAJOR=1 && compile unnamed.so -DWITHOUT_NAMES \
    -Wno-implicit-function-declaration && compile wrong.so -DWRONG_NAMES &&
    compile random.so -DWITHOUT_RANDOM || exit 1
echo '{"s": 1.25}' >d.json
echo '{"s": -1}' >bad.json
echo '{"mu": 0.5}' >init.json
mkfifo fifo.so
cat >run.yaml <<'YAML'
model: {name: stan, library: model.so, data: d.json, predictions: ["z*"], posterior_predictive: ["t:1"]}
sampler: {name: hmc}
run: {chains: 3, warmup: 100, draws: 300}
YAML

refused() { # PATTERN ARGUMENT...
    local pattern=$1 status=0
    shift
    limited "$emass" run run.yaml --output r.h5 --overwrite --quiet "$@" >words 2>&1 || status=$?
    cat words
    [ "$status" = 2 ] && [ "$(grep -vc 'the program prints' words)" = 1 ] && grep -qE "$pattern" words && [ ! -e r.h5 ]
}

runs() { # RANKS OUT ARGUMENT...
    local ranks=$1 out=$2
    shift 2
    limited mpirun -n "$ranks" "$emass" run run.yaml --output "$out" "$@" 2>words || {
        cat words
        return 1
    }
}

samples() {
    local header
    runs 1 one.h5 >verdict && header=$(ncdump -h one.h5) &&
        grep -q 'double L(chain, draw, L_dim_0, L_dim_1)' <<<"$header" &&
        grep -q 'L_dim_1 = 3' <<<"$header" &&
        grep -q 'group: predictions' <<<"$header" && grep -q 'double z.real' <<<"$header" &&
        grep -q 'group: posterior_predictive' <<<"$header"
}
says_what_failed() {
    cat words
    grep -q 'the program prints: hello' words &&
        grep -qE 'warning: [0-9]+ draws could not be reported in full.*nothing is generated' words &&
        grep -qE 'note: the model rejected [0-9]+ positions.*mu is beyond its end' words
}
same_bytes() { runs 2 two.h5 && runs 3 three.h5 && cmp one.h5 two.h5 && cmp one.h5 three.h5; }

goes_on() {
    stopped_at 300 2 run.yaml --output cut.h5 && runs 3 cut.h5 --resume --quiet && cmp cut.h5 one.h5
}

check 'a library samples; matrices, tuples and complex numbers have their shapes' samples
check 'it says which draws were not reported, and what was rejected' says_what_failed
check 'the same bytes on 1, 2 and 3 ranks' same_bytes
check 'stopped and resumed on other ranks it is the same, with what is drawn and failed' goes_on
check 'emass check agrees with its gradient' limited "$emass" check run.yaml
check 'chains begin where they are told' runs 1 r.h5 --set model.init=init.json --quiet
rm -f r.h5*
check 'another version of the interface' refused 'old.so: found version 1.6 .*expected 2' \
    --set model.library=old.so
check 'a library without a function' refused 'unnamed.so: .*bs_param_names' \
    --set model.library=unnamed.so
check 'names that make no array' refused 'wrong.so: the elements of L make no array' \
    --set model.library=wrong.so
check 'no Stan model' refused 'no version of BridgeStan' --set model.library="$(
    ldconfig -p | sed -n 's/.*libz.so.1 .*=> //p' | head -n 1)"
check 'no shared object' refused 'run.yaml: cannot be loaded' --set model.library=run.yaml
head -c 2000 model.so >cut.so
check 'a library that was cut short' refused 'cut.so: found [0-9]+ bytes, expected [0-9]+: it has been cut' \
    --set model.library=cut.so
check 'a FIFO' refused 'fifo.so: found a FIFO, expected a regular file' --set model.library=fifo.so
check 'no such file' refused 'none.so: could not open' --set model.library=none.so
check 'data that the model refuses' refused 's is not positive' --set model.data=bad.json
check 'initial values that it refuses' refused 'd.json: no mu' --set model.init=d.json
check 'neither program nor library' refused 'found neither' --set model.library=null
check 'both program and library' refused 'found both' --set model.program=m.stan

ends_the_run() { # what is reported fails for good: all ranks end, with status 1
    local status=0
    limited mpirun -n 3 "$emass" run run.yaml --output r.h5 --quiet \
        --set model.library=random.so >words 2>&1 || status=$?
    cat words
    [ "$status" = 1 ] && grep -q "random numbers: there are no random numbers" words
}
check 'a report that fails for good ends the run' ends_the_run
rm -f r.h5*

differ() { # two builds of one name, as node-local copies may be
    local status=0
    sed -i 's/library: model.so/library: "${MODEL}"/' run.yaml
    compile other.so -O0
    limited mpirun -n 1 env MODEL=model.so "$emass" run run.yaml --output r.h5 : \
        -n 1 env MODEL=other.so "$emass" run run.yaml --output r.h5 >words 2>&1 || status=$?
    cat words
    [ "$status" = 2 ] && grep -q 'rank 1: other.so: found build .*, expected .* as on rank 0' words
}
check 'ranks with other builds of it end together' differ
finish
