#!/usr/bin/env bash
# Every option changed on resume, one at a time, as `emass list` has them: what may change lets the run end,
# what may not is an error that names it, with every file as it was. And draws of other runs.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
python=$(cd "$(dirname "$0")/../.." && pwd)/analysis/venv/bin/python
mkdir "$scratch/work" && cd "$scratch/work" || exit 1
export SOURCE_DATE_EPOCH=0

awk -v OFS=, 'BEGIN { srand(1); for (i = 0; i < 100; i++) print rand(), rand(), i % 2 }' >data.csv
cp data.csv other
cat >run.yaml <<'YAML'
model: {name: logistic, data: data.csv}
sampler: {name: hmc, leapfrog_steps: 3}
run: {chains: 3, warmup: 40, draws: 60}
output: {keep_checkpoint: true}
YAML

# "section.option value may|not" of what a list says, with a value that is not the default.
options() { # SECTION LIST...
    "$emass" list "${@:2}" | awk -v section="$1" '
    function between(text, low, high) {
        low = 0; high = 1e9
        if (match(text, /of at least [-0-9.e+]+/)) low = substr(text, RSTART + 12, RLENGTH - 12) + 0
        if (match(text, /from [-0-9.e+]+ to [-0-9.e+]+/)) {
            split(substr(text, RSTART, RLENGTH), word, " ")
            low = word[2] + 0; high = word[4] + 0
        }
        return low "|" high
    }
    /; (default|must be given)/ {
        expected = $0; sub(/^ +[^ ]+ +/, "", expected); sub(/;.*/, "", expected)
        default_value = $0; sub(/.*; default:? */, "", default_value); sub(/;.*/, "", default_value)
        split(between(expected), bound, "|")
        if (expected ~ /^an integer/) value = bound[1] + 1 == default_value ? bound[1] + 2 : bound[1] + 1
        else if (expected ~ /^a number/) value = bound[1] + 0.37 * ((bound[2] < bound[1] + 1 ? bound[2] : bound[1] + 1) - bound[1])
        else if (expected ~ /^true or false/) value = default_value == "true" ? "false" : "true"
        else if (expected ~ /^one of/) {
            n = split(substr(expected, 8), choice, ", ")
            value = choice[n] == default_value ? choice[1] : choice[n]
        }
        else if (expected ~ /^a duration/) value = "7m"
        else if (expected ~ /^a list of numbers/) value = "[1, 2]"
        else if (expected ~ /^a list of texts/) value = "[beta]"
        else value = expected ~ /^a path/ ? "other" : "other.h5"
        print section "." $1 "|" value "|" ($0 ~ /may change on --resume/ ? "may" : "not")
    }'
}

all_options() {
    options model models logistic
    options sampler samplers hmc
    for section in mass run stop output; do options $section $section; done | # these are of draws: auto: until_done.sh
        grep -v 'stop.max_draws\|stop.max_gradients\|stop.end_after'
}

state() {
    md5sum o.h5*
}

begin() { # STATE: a run that was stopped, or one that is complete
    rm -f o.h5* other.h5*
    cp "$1".h5 o.h5 && cp "$1".h5.checkpoint o.h5.checkpoint
}

changed() { # STATE KEY VALUE may|not
    local status=0 before
    begin "$1" && before=$(state) || return 1
    limited "$emass" run run.yaml --output o.h5 --quiet --resume --set "$2=$3" >out 2>err || status=$?
    echo "--set $2=$3, status $status: $(cat err)"
    if [ "$4" = may ]; then
        [ "$2" != output.file ] || mv other.h5 o.h5 || return 1
        [ "$status" = 0 ] && "$emass" summary o.h5 >out && ! grep -q Incomplete out
    else # that shards do not divide the ranks is said first
        [ "$status" = 2 ] && [ "$(grep -vc warning err)" = 1 ] && grep -q "${2#run.}" err && [ "$(state)" = "$before" ]
    fi
}

drawn_from() { # KEY=VALUE: draws of another run beside our checkpoint
    local status=0 before name
    for name in o.h5 o.h5.draws; do
        status=0
        begin stopped
        rm o.h5
        limited "$emass" run run.yaml --output another.h5 --quiet --overwrite --set "$1" --max-time 0s 2>err
        mv another.h5 "$name" && rm another.h5.checkpoint*
        before=$(state)
        limited "$emass" run run.yaml --output o.h5 --quiet --resume 2>err || status=$?
        cat err
        [ "$status" = 2 ] && grep -q "$name has another config: ${1%=*} differ" err && [ "$(state)" = "$before" ] || return 1
    done
}

drawn_from_other_data() { # beside a checkpoint of the same config
    local status=0 before
    begin stopped
    cp data.csv kept
    sed -i '1s/.*/9,9,1/' data.csv
    limited "$emass" run run.yaml --output another.h5 --quiet --overwrite --max-time 0s 2>err
    mv kept data.csv
    mv another.h5 o.h5 && rm another.h5.checkpoint*
    before=$(state)
    limited "$emass" run run.yaml --output o.h5 --quiet --resume 2>err || status=$?
    cat err
    [ "$status" = 2 ] && grep -q 'o.h5 has other data: their hash was' err && [ "$(state)" = "$before" ]
}

another_rule() { # a run that the stop rule ended goes on under another rule
    local rule=(--set stop.r_hat=100 --set stop.ess=1 --set stop.check_every=20 --set stop.consecutive=1)
    rm -f o.h5*
    limited "$emass" run run.yaml --output o.h5 --quiet "${rule[@]}" || return 1
    ! cmp -s whole.h5 o.h5 || return 1
    limited "$emass" run run.yaml --output o.h5 --quiet --resume "${rule[@]}" 2>&1 | grep -q 'nothing to do' || return 1
    limited "$emass" run run.yaml --output o.h5 --quiet --resume && cmp whole.h5 o.h5
}

older_config() { # of before an option was there, which had its default then
    begin stopped
    "$python" - <<'PYTHON' || return 1
import h5py
with h5py.File("o.h5", "r+") as file:
    text = file.attrs["config"]
    text = text if isinstance(text, str) else text.decode()
    kept = [line for line in text.splitlines() if "init_radius" not in line]
    file.attrs.create("config", ("\n".join(kept) + "\n").encode(), dtype="S%d" % len(text))
PYTHON
    limited "$emass" run run.yaml --output o.h5 --quiet --resume && cmp whole.h5 o.h5
}

check 'an undisturbed run' limited "$emass" run run.yaml --quiet --output whole.h5
limited "$emass" run run.yaml --quiet --output stopped.h5 --max-time 0s 2>/dev/null
check 'one that is stopped' test -s stopped.h5.checkpoint
all_options >options
check 'the options are listed' test "$(wc -l <options)" -gt 40
while IFS='|' read -r key value may; do
    check "$key: $value, $may" changed stopped "$key" "$value" "$may"
    [ "$may" = may ] || check "$key: $value, of a complete run" changed whole "$key" "$value" "$may"
done <options
check 'another model' changed stopped model.name linear not
check 'another sampler' changed stopped sampler.name nphmc not
check 'draws of another seed' drawn_from run.seed=2
check 'draws of other variables' drawn_from 'output.variables=[beta]'
check 'draws of other data' drawn_from_other_data
check 'another rule to stop by' another_rule
if "$python" -c 'import h5py' 2>/dev/null; then
    check 'a config of before an option' older_config
else
    skip 'a config of before an option' 'no analysis/venv: make analysis/venv/ready'
fi
finish
