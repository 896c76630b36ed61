#!/bin/bash
# Topics of a corpus by lda_gibbs on four nodes of a real Slurm, each with a shard of the documents: the
# bytes are those of two ranks without Slurm, signalled or not.
# shellcheck source=tests/run/lib.sh disable=SC2317
. tests/run/lib.sh
# shellcheck source=tests/jobs.sh
. tests/jobs.sh

# 4000 documents of two of eight topics, each of forty words of its own.
awk 'function below(n) { seed = (seed * 16807) % 2147483647; return int(seed / 8) % n }
    BEGIN {
        seed = 7
        for (d = 0; d < 4000; d++) {
            n = 40 + below(120); a = below(8); b = below(8); m = 0; line = ""
            split("", count)
            for (j = 0; j < n; j++) count[40 * (below(10) < 7 ? a : b) + below(40)]++
            for (w = 0; w < 320; w++) if (w in count) { m++; line = line " " w ":" count[w] }
            print m line
        }
    }' >"$scratch/train.ldac"
cat >"$scratch/topics.yaml" <<YAML
model: {name: lda, data: train.ldac, topics: 20, alpha: learned, beta: learned}
sampler: {name: lda_gibbs}
run: {chains: 2, shards: 4, warmup: 100, draws: 600}
output: {file: topics.h5, checkpoint_every: 0.2}
YAML
script=(--nodes=4 --ntasks-per-node=2 jobs/slurm/emass.sbatch "$scratch/topics.yaml" --progress none)

signalled() {
    local job
    job=$(submit "${script[@]}") && checkpointed topics.h5 && scancel --signal=USR1 "$job" &&
        done_well "$job" && [ "$(restarts "$job")" = 1 ]
}
undisturbed() {
    run_job "${script[@]}" --output short.h5 --set run.draws=50
}
alone() { # FILE DRAWS: on ranks that hold half of the corpus each
    plain "$scratch/topics.yaml" --output "$1" --set run.shards=2 --set run.draws="$2"
}

check 'a Slurm of 4 nodes starts' tests/cluster up 4
check 'two chains on 4 nodes, 4 shards each' on_cluster undisturbed
check 'on 2 ranks without Slurm, 2 shards' alone short.h5 50
check 'both left the same bytes' same short.h5
check 'signalled, it starts once more' on_cluster signalled
check 'on 2 ranks without Slurm, undisturbed' alone topics.h5 600
check 'both left the same bytes after a restart' same topics.h5
finish
