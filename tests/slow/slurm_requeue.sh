#!/bin/bash
# Jobs on a real Slurm of 4 nodes that are interrupted in every way Slurm has, and still end with the
# bytes of an undisturbed run: time limits, requeueing, a dead node, preemption.
# shellcheck source=tests/run/lib.sh disable=SC2317
. tests/run/lib.sh
# shellcheck source=tests/jobs.sh
. tests/jobs.sh
export EMASS_CLUSTER_MISSED=30

# A density that takes a while in a job, of the clock and not of a processor, so that a job lasts as
# long on a quiet machine as on a busy one; the same run outside is done in a moment.
cat >"$scratch/unhurried.c" <<'C'
#define _POSIX_C_SOURCE 200809L
#include <emass/plugin.h>
#include <stdlib.h>
#include <time.h>
static em_status density(const void *options, const double *theta, double *log_p, double *gradient)
{
    static int job = -1;
    (void)options;
    if (job < 0)
        job = getenv("SLURM_JOB_ID") != NULL;
    if (job)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    for (int i = 0; i < 3; i++) {
        *log_p -= theta[i] * theta[i] / 2;
        gradient[i] -= theta[i];
    }
    return EM_OK;
}
EMASS_PLUGIN({.name = "unhurried", .doc = "a normal", .dim = 3, .log_density_gradient = density});
C
cat >"$scratch/run.yaml" <<YAML
model: {name: unhurried, library: $scratch/unhurried.so}
sampler: {name: hmc, leapfrog_steps: 5}
run: {chains: 8, warmup: 100, draws: 100000}
output: {file: run.h5, checkpoint_every: 1}
YAML
script=(--nodes=4 --ntasks-per-node=2 jobs/slurm/emass.sbatch "$scratch/run.yaml" --progress none)

# So many draws that a job needs SECONDS at least: five gradients each, of ten milliseconds and a bit.
draws_in() { # SECONDS
    echo $(($1 * 1000 / 50))
}

# Slurm looks for signals to send twice a minute, and sends what is due within the next half minute:
# here after 20 s at the earliest. After 35 s the run stops by itself, 25 s before the end. Earlier
# signals may meet every start of the job just after it, and nothing gets done.
short_limit() {
    local job
    job=$(submit --time=1 --signal=USR1@10 "${script[@]}" --output limit.h5 --set "$long") &&
        done_well "$job" && restarts "$job" && [ "$(restarts "$job")" -ge 4 ]
}

interrupted_by() { # FILE SETTING COMMAND...: which is told the job's number
    local job file=$1 setting=$2
    shift 2
    job=$(submit "${script[@]}" --output "$file" --set "$setting") && checkpointed "$file" &&
        "$@" "$job" && done_well "$job" && [ "$(restarts "$job")" -ge 1 ]
}

requeue() { # JOB
    scontrol requeue "$1"
}

# Its ranks live on, as on a node cut off from the network, until mpirun is gone.
node_dies() { # NODE JOB
    kill -KILL "$(cat "$EMASS_CLUSTER/slurmd.$1.pid")"
    for _ in $(seq 240); do
        sleep 0.5
        [ "$(restarts "$2")" = 0 ] || break
    done
    slurmd -N "$1"
}

preempt() { # SECONDS JOB: with a notice of that long
    scontrol update partition=debug GraceTime="$1"
    sbatch --wait --partition=urgent --nodes=4 --output=/dev/null --wrap='sleep 1'
}

check "a model that takes its time" cc -shared -fPIC -Iinclude "$scratch/unhurried.c" -o "$scratch/unhurried.so"
check "a Slurm of 4 nodes starts" tests/cluster up 4
long=run.draws=$(draws_in 140) brief=run.draws=$(draws_in 20)
node=run.draws=$(draws_in 70) # Slurm needs half a minute to miss a node
echo "# $long, $brief, $node"

check "a limit of one minute, four times" on_cluster short_limit
check "the same run without Slurm" plain "$scratch/run.yaml" --output limit.h5 --set "$long"
check "both left the same bytes" same limit.h5

check "requeued from outside" on_cluster interrupted_by requeued.h5 "$brief" requeue
check "preempted" on_cluster interrupted_by preempted.h5 "$brief" preempt 0
check "preempted with notice" on_cluster interrupted_by noticed.h5 "$brief" preempt 30
check "a node dies" on_cluster interrupted_by dead_node.h5 "$node" node_dies n3
check "the script's node dies" on_cluster interrupted_by dead_first_node.h5 "$node" node_dies n1
for name in requeued preempted noticed; do
    check "$name: the same run without Slurm" plain "$scratch/run.yaml" --output "$name.h5" \
        --set "$brief"
    check "$name: both left the same bytes" same "$name.h5"
done
for name in dead_node dead_first_node; do
    check "$name: the same run without Slurm" plain "$scratch/run.yaml" --output "$name.h5" \
        --set "$node"
    check "$name: both left the same bytes" same "$name.h5"
done
finish
