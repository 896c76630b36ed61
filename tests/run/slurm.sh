#!/bin/bash
# The scheduler scripts of jobs/slurm on a real Slurm of 4 nodes.
# shellcheck source=tests/run/lib.sh disable=SC2317
. tests/run/lib.sh
# shellcheck source=tests/jobs.sh
. tests/jobs.sh

short=("$project/jobs/eight_schools.yaml" --set run.warmup=50 --set run.draws=50 --progress none)
cat >"$scratch/longer.yaml" <<'YAML'
model: {name: logistic, n: 20000, intercept: false}
sampler: {name: hmc, leapfrog_steps: 5}
run: {chains: 8, warmup: 200, draws: 1000}
output: {file: longer.h5, checkpoint_every: 0.5}
YAML

signalled() {
    local job
    job=$(submit --nodes=4 --ntasks-per-node=2 jobs/slurm/emass.sbatch "$scratch/longer.yaml") &&
        checkpointed longer.h5 && scancel --signal=USR1 "$job" && done_well "$job" &&
        [ "$(restarts "$job")" = 1 ]
}

cancelled() {
    local job
    job=$(submit --ntasks-per-node=2 jobs/slurm/emass.sbatch "$scratch/longer.yaml" \
        --output cancelled.h5 --set run.draws=100000) &&
        checkpointed cancelled.h5 && scancel "$job" && ! done_well "$job" &&
        scontrol show job "$job" | grep 'JobState=CANCELLED'
}

# Notes each start in a file of the seed's. Seed 2 stops, as if at a time limit, on its first.
cat >"$scratch/stops-once" <<'END'
#!/bin/bash
echo "end in $((SLURM_JOB_END_TIME - $(date +%s))) s: $*" >>"starts.$SLURM_ARRAY_TASK_ID"
[ "$SLURM_ARRAY_TASK_ID" != 2 ] || [ "$SLURM_RESTART_COUNT" ] || exit 75
END
chmod +x "$scratch/stops-once"

# The last task of an array bears the number of the whole: it must not start the others again.
requeues_itself_only() {
    EMASS=$scratch/stops-once EMASS_LAUNCHER=env run_job --array=1-2 --time=10 \
        --ntasks-per-node=1 jobs/slurm/array.sbatch config.yaml
    cd "$scratch/slurm" && head starts.* &&
        [ "$(wc -l <starts.1)" = 1 ] && [ "$(wc -l <starts.2)" = 2 ] &&
        ! grep -vE '^end in (5[0-9]{2}|600) s: run config.yaml .* --resume$' starts.1 starts.2
}

finished_end_at_once() {
    seeds && grep -c 'nothing to do' "$scratch"/slurm/job-emass-seeds-[12].log
}

seeds() {
    run_job --array=1-2 --nodes=2 --ntasks-per-node=1 jobs/slurm/array.sbatch "${short[@]}"
}

check "a Slurm of 4 nodes starts" tests/cluster up 4
check "an array job over two seeds" on_cluster seeds
check "submitted again it has nothing to do" on_cluster finished_end_at_once
for seed in 1 2; do
    check "seed $seed without Slurm" plain "${short[@]}" --seed $seed \
        --output eight_schools.seed$seed.h5
    check "seed $seed has its own file" same eight_schools.seed$seed.h5
done
check "a task that stops queues itself again, and no other" on_cluster requeues_itself_only
check "a job on 4 nodes of 2 ranks, signalled, starts once more" on_cluster signalled
check "the same run on 2 ranks, undisturbed, without Slurm" plain "$scratch/longer.yaml"
check "both left the same bytes" same longer.h5
check "a cancelled job stays so" on_cluster cancelled
finish
