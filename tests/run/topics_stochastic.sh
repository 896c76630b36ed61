#!/usr/bin/env bash
# Topic models moved by kernels of stochastic gradients: one file on any number of ranks and shards,
# stopped and resumed on others, topics that were put in are found, and what does not fit is refused.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# Documents of two of four topics, each of eight words of its own.
corpus() { # SEED DOCUMENTS
    awk -v seed="$1" -v documents="$2" '
        function below(n) { seed = (seed * 16807) % 2147483647; return int(seed / 8) % n }
        BEGIN {
            for (d = 0; d < documents; d++) {
                n = 10 + below(30); a = below(4); b = below(4); m = 0; line = ""
                split("", count)
                for (j = 0; j < n; j++) count[8 * (below(10) < 7 ? a : b) + below(8)]++
                for (w = 0; w < 32; w++) if (w in count) { m++; line = line " " w ":" count[w] }
                print m line
            }
        }'
}
corpus 7 90 >train.ldac
corpus 8 20 >test.ldac
awk 'BEGIN { for (v = 0; v < 32; v++) print "word" v }' >words
lda='name: lda, data: train.ldac, vocabulary: words, test: test.ldac, test_every: 50, topics: 4'
cat >mean.yaml <<YAML
model: {$lda, beta: 0.5, parameters: expanded_mean, store_phi: true}
sampler: {name: sgrld, metric: expanded_mean, minibatch: 20, step_size: 0.01, leapfrog_steps: 2}
mass: {estimator: none}
run: {chains: 2, warmup: 250, draws: 50}
output: {flush_every: 20}
YAML
cat >natural.yaml <<YAML
model: {$lda, parameters: expanded_natural, warm_start: true, local_discard: 1}
sampler: {name: msgnht, minibatch: 20, step_size: 0.1, leapfrog_steps: 3, diffusion: 5}
mass: {estimator: none}
run: {chains: 2, warmup: 200, draws: 50}
YAML

cat >pfa.yaml <<YAML
model: {name: pfa, data: train.ldac, vocabulary: words, test: test.ldac, test_every: 50, topics: 4,
  parameters: expanded_mean, beta: 0.5, local_discard: 3, local_sweeps: 2}
sampler:
  - {block: phi, name: sgrld, metric: expanded_mean, minibatch: 20, step_size: 0.01, leapfrog_steps: 2}
  - {block: E, name: sgrnphmc, minibatch: 20, step_size: 0.05, leapfrog_steps: 2, mass: {estimator: none}}
  - {block: T, name: sghmc, minibatch: 30, step_size: 0.02, leapfrog_steps: 2, friction: 5}
  - {block: hyper, name: sgnphmc, minibatch: 20, step_size: 0.02, leapfrog_steps: 2}
mass: {estimator: momentum, s_count: 40}
run: {chains: 2, warmup: 200, draws: 50}
YAML

cat >dpfa.yaml <<YAML
model: {name: dpfa, data: train.ldac, vocabulary: words, test: test.ldac, test_every: 50, topics: 4, hidden: [3, 2],
  parameters: expanded_mean, beta: 0.5, local_discard: 3, local_sweeps: 2, warm_start: true}
sampler:
  - {block: phi, name: sgrld, metric: expanded_mean, minibatch: 20, step_size: 0.01, leapfrog_steps: 2}
  - {block: r, name: sgnht, minibatch: 20, step_size: 0.02, leapfrog_steps: 2}
  - {block: network, name: msgnht, minibatch: 20, step_size: 0.02, leapfrog_steps: 2}
mass: {estimator: none}
run: {chains: 2, warmup: 200, draws: 50}
YAML

go() { # MODEL RANKS SHARDS FILE ARGUMENT...
    local model=$1 n=$2 shards=$3 file=$4
    shift 4
    limited mpirun -n "$n" "$emass" run "$model.yaml" --set run.shards="$shards" --quiet \
        --output "$file" --resume "$@"
}
same() { # MODEL RANKS SHARDS
    rm -f other.h5*
    go "$1" "$2" "$3" other.h5 && cmp "$1.h5" other.h5
}
in_parts() { # MODEL: half on some ranks, the rest on others
    rm -f parts.h5*
    go "$1" 3 3 parts.h5 --set run.draws=20 && go "$1" 2 1 parts.h5 && cmp "$1.h5" parts.h5
}
stopped_in_warmup() {
    local status=0
    rm -f parts.h5*
    go natural 2 2 parts.h5 --max-time 0 || status=$?
    [ "$status" = 75 ] && go natural 2 1 parts.h5 && cmp natural.h5 parts.h5
}
for model in mean natural pfa dpfa; do
    check "$model: a run on one rank" go $model 1 1 $model.h5
    check "$model: the same bytes on 2 groups of 2 shards" same $model 4 2
    check "$model: the same bytes on 3 shards" same $model 3 3
    check "$model: parts on other ranks and shards" in_parts $model
done
check 'stopped in warmup' stopped_in_warmup
check 'verified on other ranks' limited "$emass" verify mean.h5 --ranks 2
check 'checked' limited "$emass" check natural.yaml

# Perplexity: a topic has eight words, a document two topics; one topic of all words has 32.
learns() { # MODEL
    "$emass" summary "$1.h5" --csv --var perplexity | awk -F, 'END { exit !($2 > 8 && $2 < 16) }' &&
        "$emass" topics "$1.h5" --words 8 >topics.txt && ! grep ' - ' topics.txt &&
        awk '/ 2\/2 / { split("", n); n_topic++
            for (i = 5; i <= NF; i++) n[int(substr($i, 5) / 8)]++
            for (block in n) if (n[block] >= 7) pure++ }
            END { exit !(n_topic >= 3 && pure >= 3) }' topics.txt
}
check 'mean: the topics that were put in are found' learns mean
check 'natural: the topics that were put in are found' learns natural
check 'pfa: the topics that were put in are found' learns pfa
check 'dpfa: the topics that were put in are found' learns dpfa

# The tokens given for the test documents, here all of them; by EM and by Gibbs; over all chains too.
scored() {
    limited mpirun -n 2 "$emass" run natural.yaml --quiet --output scored.h5 --set run.draws=5 \
        --set model.test_scored=test.ldac --set model.fold_in=both --set model.test_every=5 &&
        "$emass" topics scored.h5 | tee scored.txt | grep -qE '^over all chains too: [0-9]' &&
        "$emass" summary scored.h5 --csv --var 'perplexity*' |
        awk -F, '/^perplexity(_gibbs)?,/ { n += $2 > 4 && $2 < 32 } END { exit n != 2 }'
}
check 'natural: given tokens are scored, by Gibbs too, over all chains' scored

priors_are_not_learned() { # they have the values from which lda_gibbs starts, and check says so
    local other
    for other in 'model.alpha=learned' 'model.alpha=0.1'; do
        limited mpirun -n 2 "$emass" run natural.yaml --quiet --output "prior.$other.h5" --set run.warmup=9 \
            --set run.draws=9 --set "$other" || return 1
    done
    h5dump -d /posterior/log_density prior.model.alpha=learned.h5 | tail -n +2 >learned.txt &&
        h5dump -d /posterior/log_density prior.model.alpha=0.1.h5 | tail -n +2 | cmp - learned.txt &&
        "$emass" check natural.yaml | grep -q '^# alpha 0.1: it is learned only with parameters: collapsed' &&
        "$emass" check mean.yaml --set model.beta=learned | grep -q '^# beta 0.01: it is learned only with' &&
        ! "$emass" check mean.yaml --set model.alpha=0.1 | grep -q 'it is learned only'
}
if command -v h5dump >/dev/null; then
    check 'priors are not learned by stochastic gradients' priors_are_not_learned
else
    skip 'priors are not learned by stochastic gradients' 'no h5dump'
fi

refuses() { # MODEL WHAT ARGUMENT...
    refused "$2" mpirun -n 2 "$emass" run "$1.yaml" --output bad.h5 "${@:3}"
}
sed 's/^sampler: .*/sampler: {name: hmc}/' natural.yaml >exact.yaml
sed 's/^sampler: .*/sampler: {name: lda_gibbs}/' natural.yaml >gibbs.yaml
check 'a sampler that leaves the simplex' refuses mean 'does not keep phi of model lda above zero' \
    --set sampler.metric=mass
check 'an exact sampler' refuses exact 'needs an exact density'
check 'a sampler by the model' refuses gibbs 'needs an update by the model'
check 'expanded mean for more than phi' refuses pfa 'but they may be negative' \
    --set 'sampler[1].name=sgrld' --set 'sampler[1].metric=expanded_mean'
sed 's/^sampler: .*/sampler: {name: sgrld, metric: expanded_mean, minibatch: 20, step_size: 0.01}/' natural.yaml >wrong.yaml
check 'expanded mean without its parameters' refuses wrong 'may be negative: expected model.parameters: expanded_mean'
check 'nor with pfa' refuses pfa 'may be negative: expected model.parameters: expanded_mean' \
    --set model.parameters=expanded_natural
check 'no metric' refuses dpfa 'model dpfa has no metric' --set 'sampler[1].name=sgrnphmc'
check 'what is scored, and no test' refuses mean 'model.test_scored: found no test' \
    --set model.test= --set model.test_scored=test.ldac
check 'a corpus that is not there' refuses mean missing: --set model.data=missing
finish
