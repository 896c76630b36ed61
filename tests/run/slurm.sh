#!/bin/bash
# The scheduler scripts of jobs/slurm on a real Slurm of 4 nodes (timeout: 300).
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

if [ "$(id -u)" != 0 ] || ! command -v slurmctld slurmd sbatch munged >/dev/null; then
    skip "scheduler scripts" "needs root, slurmctld, slurmd, slurm-client and munge"
    finish
fi
project=$PWD
short=("$project/jobs/eight_schools.yaml" --set run.warmup=50 --set run.draws=50 --progress none)
export EMASS_CLUSTER=$scratch/cluster EMASS=$emass SOURCE_DATE_EPOCH=0
mkdir "$scratch/slurm" "$scratch/plain"
trap 'tests/cluster down; rm -rf "$scratch"' EXIT

submit() { # [option of sbatch]... SCRIPT [argument]...: waits for the job, or the whole array
    local job
    job=$(sbatch --parsable --chdir="$scratch/slurm" --output=job-%x-%a.log "$@") || return
    for _ in $(seq 240); do
        [ -n "$(squeue --noheader --jobs="$job")" ] || break
        sleep 0.5
    done
    tail -n 20 "$scratch"/slurm/job-*.log
    scontrol show job "$job"
    ! scontrol --oneliner show job "$job" | grep -v 'JobState=COMPLETED'
}

# In a shell of its own, so that only the jobs see the cluster's MPI settings.
on_cluster() {
    (eval "$(tests/cluster env)" && "$@")
}

# The same run without Slurm, under the same name, as the file holds its config.
plain() { # [option of emass run]...
    (cd "$scratch/plain" && timeout 60 mpirun -n 2 "$emass" run "${short[@]}" "$@")
}

same() { # FILE
    cmp "$scratch/slurm/$1" "$scratch/plain/$1"
}

# Stops after its first start, as if at a time limit, and is done after the second.
cat >"$scratch/stops-once" <<'END'
#!/bin/sh
[ -e started ] && echo "start ${SLURM_RESTART_COUNT} with $*" >finished && exit 0
touch started
exit 75
END
chmod +x "$scratch/stops-once"

requeues() {
    local job
    job=$(EMASS=$scratch/stops-once EMASS_LAUNCHER=env sbatch --parsable --chdir="$scratch/slurm" \
        --ntasks-per-node=1 jobs/slurm/emass.sbatch config.yaml) || return
    for _ in $(seq 120); do
        [ ! -e "$scratch/slurm/finished" ] || break
        # A job that queues itself again has to wait two minutes, but not here.
        [ ! -e "$scratch/slurm/started" ] || scontrol update "job=$job" StartTime=now 2>/dev/null
        sleep 0.5
    done
    cat "$scratch/slurm/finished" &&
        grep -q "start 1 with run config.yaml --resume" "$scratch/slurm/finished"
}

check "a Slurm of 4 nodes starts" tests/cluster up 4
check "one job on 4 nodes of 2 ranks" on_cluster submit --nodes=4 --ntasks-per-node=2 \
    jobs/slurm/emass.sbatch "${short[@]}" --output one.h5
check "the same run on 2 ranks without Slurm" plain --output one.h5
check "both left the same bytes" same one.h5
check "an array job over two seeds" on_cluster submit --array=1-2 --nodes=2 --ntasks-per-node=1 \
    jobs/slurm/array.sbatch "${short[@]}"
for seed in 1 2; do
    check "seed $seed without Slurm" plain --seed $seed --output eight_schools.seed$seed.h5
    check "seed $seed has its own file" same eight_schools.seed$seed.h5
done
check "status 75 queues the job again, to resume" on_cluster requeues
finish
