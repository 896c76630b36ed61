#!/usr/bin/env bash
# Programs of posteriordb as BridgeStan compiles them: EMASS_BRIDGESTAN is a folder with some of
# NAME_model.so, made from EMASS_DATA/posteriordb/NAME.stan (in a BridgeStan checkout: make NAME_model.so).
# They have the means of the interpreted program, the same bytes on any ranks and when they were killed.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/../run/lib.sh"
base=${EMASS_DATA:-}/posteriordb
if [ -z "${EMASS_BRIDGESTAN:-}" ] || [ ! -d "$base" ] || ! find_stanli; then
    skip 'compiled programs of posteriordb' 'no EMASS_BRIDGESTAN, no EMASS_DATA, or no libstanli.so'
    finish
fi
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0
cat >run.yaml <<'YAML'
model: {name: stan, library: "${LIBRARY}", data: "${POSTERIOR}.json"}
run: {chains: 4, draws: 500}
output: {flush_every: 20, checkpoint_every: 0.05}
YAML
# shellcheck disable=SC2016 # emass reads these
sed 's/library: "${LIBRARY}"/program: "${POSTERIOR}.stan"/' run.yaml >interpreted.yaml

sample() { # RANKS OUT ARGUMENT...
    limited mpirun -n "$1" "$emass" run run.yaml --output "$2" --quiet "${@:3}"
}

same_on_any_ranks() {
    local ranks
    rm -f ./*.h5*
    sample 1 1.h5 || return 1
    for ranks in 2 3 4; do
        sample "$ranks" "$ranks.h5" && cmp 1.h5 "$ranks.h5" || return 1
    done
}

# Stopped at every adaptation update and resumed; of what was done, no number is another.
piecemeal() {
    local status=75 times=0
    while [ "$status" = 75 ] && [ "$times" -lt 40 ]; do
        status=0
        sample "$((1 + times % 3))" cut.h5 --resume --max-time 0 2>/dev/null || status=$?
        times=$((times + 1))
    done
    sample 2 cut.h5 --resume --max-time 1h && h5diff 1.h5 cut.h5 /posterior /posterior
}

# The largest distance of two means of one name, in standard errors of both.
apart() {
    "$emass" summary 1.h5 --csv >compiled.csv && "$emass" summary interpreted.h5 --csv >interpreted.csv
    awk -F, 'function abs(x) { return x < 0 ? -x : x }
        FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        NR == FNR { mean[$1] = $at["mean"]; se[$1] = $at["mcse_mean"]; next }
        $1 in mean && se[$1] > 0 { z = abs($at["mean"] - mean[$1]) / sqrt(se[$1] ^ 2 + $at["mcse_mean"] ^ 2)
            worst = z > worst ? z : worst; n++ }
        END { print n " means, the farthest " worst " standard errors apart"; exit !(n > 0 && worst < 5) }' \
        compiled.csv interpreted.csv
}
as_interpreted() {
    limited "$emass" run interpreted.yaml --output interpreted.h5 --overwrite --quiet && apart
}

for library in "$EMASS_BRIDGESTAN"/*_model.so; do
    name=$(basename "$library" _model.so)
    [ -e "$base/$name.stan" ] || continue
    export LIBRARY=$library POSTERIOR=$base/$name
    check "$name: its gradient" limited "$emass" check run.yaml
    check "$name: the same bytes on 1, 2, 3 and 4 ranks" same_on_any_ranks
    check "$name: the means of the interpreted program" as_interpreted
    check "$name: stopped and gone on with" piecemeal
done
finish
