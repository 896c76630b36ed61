#!/usr/bin/env bash
# Everything under AddressSanitizer and UndefinedBehaviorSanitizer, for a moment each: the unit
# tests, leaks included, every sampler and model, ranks and shards, the other commands, bad input.
# Leaks of the whole program are for valgrind.sh.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$(dirname "$0")/../.." || exit 1
asan=$build/asan emass=$build/asan/emass
units=(tests/unit/*/test_*.c)
units=("${units[@]%.c}")

# All at once, as far as there are cores; what each says is looked at later. Laws of random numbers run
# through the same code a million times.
run_units() {
    # shellcheck disable=SC2016
    printf '%s\n' "${units[@]}" | CK_EXCLUDE_TAGS=law ASAN_OPTIONS=detect_leaks=1 xargs -P "$(nproc)" -I{} \
        sh -c 'says=$1/$(echo {} | tr / _); "$0/{}" >"$says.log" 2>&1; echo $? >"$says.status"' "$asan" "$scratch"
}

unit_passes() { # PROGRAM
    cat "$scratch/${1//\//_}.log"
    [ "$(cat "$scratch/${1//\//_}.status")" = 0 ]
}

# The command ends as it should, and no sanitizer has anything to say.
clean() { # STATUS COMMAND...
    local expected=$1 status=0
    shift
    limited "$@" >"$scratch/log" 2>&1 || status=$?
    cat "$scratch/log"
    echo "exit status $status, expected $expected"
    [ "$status" = "$expected" ] && ! grep -E 'Sanitizer|runtime error:' "$scratch/log"
}

names() { # WHAT: of the samplers, or of the models
    "$emass" list "$1" | sed -n 's/^  \([a-z_]*\) .*/\1/p'
}

# The shortest of runs.
config() { # MODEL SAMPLER
    printf 'model: {name: %s}\nsampler: {name: %s}\nrun: {chains: 3, warmup: 20, draws: 20}\n' \
        "$1" "$2"
}

# ---- the library ----
check "it compiles" sanitized emass "${units[@]}"
run_units
for unit in "${units[@]}"; do check "${unit#tests/}, and no leak" unit_passes "$unit"; done

# ---- the program ----
export ASAN_OPTIONS=detect_leaks=0
cd "$scratch" || exit 1
awk 'BEGIN { srand(1); for (i = 0; i < 60; i++) print rand(), rand(), i % 2 }' >table
printf '2 0:3 1:1\n2 1:2 2:4\n' >corpus.ldac
short=(--quiet --overwrite --output out.h5)
for sampler in $(names samplers); do
    case $sampler in
    *gibbs) config 'lda, topics: 2, data: corpus.ldac' "$sampler" ;; # by the model's own update
    *) config 'logistic, data: table' "$sampler" ;;
    esac >"$sampler.yaml"
    check "sampler $sampler" clean 0 "$emass" run "$sampler.yaml" "${short[@]}"
done
config 'lda, topics: 2, data: corpus.ldac, parameters: expanded_mean' \
    'sgrld, metric: expanded_mean' >mean.yaml
for model in $(names models); do
    expected=0
    case $model in
    linear | poisson | negative_binomial) config "$model, data: table" hmc ;;
    lda) config 'lda, topics: 2, data: corpus.ldac' lda_gibbs ;;
    network) config 'network, data: table, test: table, layers: [{dense: 3}]' hmc ;;
    pfa | dpfa) config "$model, topics: 2, data: corpus.ldac" msgnht ;;
    stan) config stan hmc && expected=2 ;; # it has no program
    process | umbridge) config "$model" slice && expected=2 ;; # no command, no address (run/simulators)
    *) config "$model" hmc ;;
    esac >model.yaml
    check "model $model" clean $expected "$emass" run model.yaml "${short[@]}"
done
printf 'model: {name: eight_schools}\nrun: {draws: 20}\n' >auto.yaml
check "warmup to its end, with a non-centred hierarchy" clean 0 "$emass" run auto.yaml "${short[@]}"
check "expanded parameters" clean 0 "$emass" run mean.yaml "${short[@]}"
check "two ranks, warmup saved" clean 0 mpirun -n 2 "$emass" run hmc.yaml "${short[@]}" \
    --set output.save_warmup=true --set output.save_unconstrained=true
check "two shards" clean 0 mpirun -n 2 "$emass" run sgld.yaml "${short[@]}" --set run.shards=2 \
    --set sampler.minibatch=10
check "stopped by the time limit" clean 75 mpirun -n 2 "$emass" run hmc.yaml --output long.h5 \
    --set run.draws=1e6 --max-time 1
check "resumed" clean 75 "$emass" run hmc.yaml --output long.h5 --resume --set run.draws=1e6 \
    --max-time 1
# Rounds long enough for dense masses and a wider reference; ranks without a ladder.
printf 'model: {name: gaussian, dim: 3}\ntemper: {}\nrun: {chains: 1, draws: 20}\n' >ladder.yaml
check "one ladder on four ranks" clean 0 mpirun -n 4 "$emass" run ladder.yaml "${short[@]}"
printf '%s\n' 'model: {name: eight_schools}' 'sampler:' '  - {block: hyper, name: nuts}' '  - {block: effects, name: slice}' \
    'temper: {}' 'run: {chains: 2, warmup: 120, draws: 20}' >blocks.yaml
check "ladders of two blocks" clean 0 mpirun -n 3 "$emass" run blocks.yaml "${short[@]}"
check "a ladder stopped" clean 75 mpirun -n 3 "$emass" run ladder.yaml --output ladder.h5 --set run.draws=1e6 --max-time 1
check "a ladder resumed" clean 75 mpirun -n 2 "$emass" run ladder.yaml --output ladder.h5 --resume \
    --set run.draws=1e6 --max-time 1
check "check" clean 0 mpirun -n 2 "$emass" check hmc.yaml
check "summary" clean 0 mpirun -n 2 "$emass" summary out.h5 --sort r_hat --csv
"$emass" run hmc.yaml "${short[@]}" --set model.standardise=true --output fitted.h5 >said 2>&1
check "predict" clean 0 mpirun -n 2 "$emass" predict fitted.h5 --data table --output new.h5
check "report" clean 0 "$emass" report fitted.h5
for seed in 1 2; do
    "$emass" run hmc.yaml "${short[@]}" --seed $seed --set output.prior_draws=5 --output $seed.h5
done >said 2>&1
check "merge" clean 0 mpirun -n 2 "$emass" merge merged.h5 1.h5 2.h5
check "summary of two files" clean 0 "$emass" summary 1.h5 2.h5
check "diff" clean 1 "$emass" diff 1.h5 2.h5
check "list" clean 0 "$emass" list

# ---- bad input ----
check "no such option" clean 2 "$emass" run hmc.yaml --set sampler.leapfrogs=3
check "not YAML" clean 2 "$emass" run table
printf '1,2,0\n3,1\n' >ragged
check "a ragged table" clean 2 mpirun -n 2 "$emass" run hmc.yaml --set model.data=ragged
check "not HDF5" clean 2 "$emass" summary table
head -c 5000 out.h5 >cut.h5
check "predictions of a ragged table" clean 2 "$emass" predict fitted.h5 --data ragged --output no.h5
check "a truncated file" clean 2 mpirun -n 2 "$emass" summary cut.h5
check "merged with one" clean 2 mpirun -n 2 "$emass" merge no.h5 1.h5 cut.h5
check "a truncated file, compared" clean 2 "$emass" diff 1.h5 cut.h5
finish
