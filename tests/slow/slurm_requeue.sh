#!/bin/bash
# Jobs on a real Slurm of 4 nodes that are interrupted in every way Slurm has, and still end with the
# bytes of an undisturbed run: time limits, requeueing, a dead node, preemption.
# shellcheck source=tests/run/lib.sh disable=SC2317
. tests/run/lib.sh
# shellcheck source=tests/jobs.sh
. tests/jobs.sh
export EMASS_CLUSTER_MISSED=30

script=(--nodes=4 --ntasks-per-node=2 jobs/slurm/emass.sbatch "$scratch/run.yaml" --progress none)

# How many seconds a job takes that starts, adapts, and draws next to nothing, on this machine now.
job_takes() {
    local job
    job=$(submit "${script[@]}" --output first.h5 --set run.draws=1) && done_well "$job" >&2 &&
        scontrol --oneliner show job "$job" | sed -E 's/.* RunTime=([0-9]+):([0-9]+):([0-9]+) .*/\1 \2 \3/' |
        awk '{ print 3600 * $1 + 60 * $2 + $3 }'
}

# The least whole minutes in which such a job gets something done: Slurm looks for signals to send twice
# a minute, and sends what is due within the next half minute, here 40 s before the end at the earliest;
# those that meet every start of the job just after it leave nothing done. 25 s before the end the run
# stops by itself, so that four times as many draws as fit until then take four more starts.
choose_limit() {
    local takes
    takes=$(on_cluster job_takes) && minutes=$(((40 + 2 * takes + 59) / 60)) &&
        long=run.draws=$(draws_in $((4 * (60 * minutes - 25)))) &&
        echo "# a job takes $takes s; a limit of $minutes min, $long"
}
short_limit() {
    local job
    job=$(submit --time="$minutes" --signal=USR1@10 "${script[@]}" --output limit.h5 --set "$long") &&
        patience=$((600 * minutes)) done_well "$job" && restarts "$job" && [ "$(restarts "$job")" -ge 4 ]
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

# The script of jobs/README.md, by srun. With PMIx a few starts of many fail here (tests/cluster): those of no use are
# repeated.
own_script() {
    local job
    sed -n '/^#!\/bin\/bash -u$/,/^```$/p' jobs/README.md | sed "\$d; s,emass run CONFIG.yaml,$emass run $scratch/run.yaml --set $brief,
        s,run.h5,own.h5," >"$scratch/own.sbatch"
    grep -q 'scontrol requeue' "$scratch/own.sbatch" || return 1
    for _ in 1 2 3; do
        rm -f "$scratch"/slurm/own.h5*
        job=$(submit --nodes=4 --ntasks-per-node=2 "$scratch/own.sbatch") && checkpointed own.h5 && preempt 30 "$job" &&
            done_well "$job" && [ "$(restarts "$job")" -ge 1 ] && return
    done
    return 1
}

check "a model that takes its time" unhurried
check "a Slurm of 4 nodes starts" tests/cluster up 4
brief=run.draws=$(draws_in 20)
node=run.draws=$(draws_in 70) # Slurm needs half a minute to miss a node
echo "# $brief, $node"

choose_limit || not_ok "a job that shows how long it takes"
check "a time limit as short as can be, four times" on_cluster short_limit
check "the same run without Slurm" plain "$scratch/run.yaml" --output limit.h5 --set "$long"
check "both left the same bytes" same limit.h5

check "requeued from outside" on_cluster interrupted_by requeued.h5 "$brief" requeue
check "preempted" on_cluster interrupted_by preempted.h5 "$brief" preempt 0
check "preempted with notice" on_cluster interrupted_by noticed.h5 "$brief" preempt 30
check "preempted with notice, a script of one's own" on_cluster own_script
check "a node dies" on_cluster interrupted_by dead_node.h5 "$node" node_dies n3
check "the script's node dies" on_cluster interrupted_by dead_first_node.h5 "$node" node_dies n1
for name in requeued preempted noticed own; do
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
