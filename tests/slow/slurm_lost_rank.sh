#!/usr/bin/env bash
# A rank that is killed, as for want of memory, in jobs on a real Slurm of 3 nodes, whose ranks srun
# starts by the PMI of the MPI that is linked: the job ends by itself, says which one it was, and the
# next job goes on to the bytes of an undisturbed run.
# shellcheck source=tests/run/lib.sh disable=SC2317
. tests/run/lib.sh
# shellcheck source=tests/jobs.sh
. tests/jobs.sh
short=$(draws_in 15)
job=(--nodes=3 --ntasks-per-node=2 jobs/slurm/emass.sbatch "$scratch/run.yaml" --output lost.h5 --set "run.draws=$short")

# The cluster's own choice of mpirun does not count.
by_srun() { # COMMAND...
    (eval "$(tests/cluster env)" && unset EMASS_LAUNCHER && "$@")
}

# Some starts by PMIx crash where all nodes are one host (tests/cluster): another job is then made.
draws() { # sets number
    for _ in 1 2 3 4; do
        touch "$scratch/submitted"
        number=$(submit "${job[@]}") || return 1
        while [ -n "$(squeue --noheader --jobs="$number")" ]; do
            [ ! "$scratch/slurm/lost.h5.checkpoint" -nt "$scratch/submitted" ] || return 0
            sleep 0.2
        done
    done
    return 1
}

# Of the MPIs that do not tell the others, srun waits a minute for them.
is_lost() { # WHICH: of the ranks, in the order of their processes
    local number
    draws || return 1
    ranks_of lost.h5 | sed -n "$1p" | xargs kill -9 && ! done_well "$number" &&
        scontrol --oneliner show job "$number" | grep 'JobState=FAILED .*ExitCode=137:0 ' &&
        [ "$(restarts "$number")" = 0 ] && grep -E 'srun: error: n[123]: task [0-5]: Killed' "$scratch"/slurm/job-*.log
}

# By a srun that is told nothing: where it does not tell the others either, they see it.
by_hand() {
    local pid status=0
    (cd "$scratch/slurm" && limited srun --mpi=pmi2 --nodes=3 --ntasks-per-node=2 "$emass" run "$scratch/run.yaml" \
        --quiet --output hand.h5 --set "run.draws=$short") >"$scratch/log" 2>&1 &
    pid=$!
    wait_for "$scratch/slurm/hand.h5.checkpoint"
    ranks_of hand.h5 | sed -n 4p | xargs kill -9
    wait "$pid" || status=$?
    cat "$scratch/log"
    [ "$status" = 137 ] && grep -q '^emass: rank [0-5] was lost: ' "$scratch/log" && ! ranks_of hand.h5 | grep .
}

check "a model that takes its time" unhurried
check "a Slurm of 3 nodes starts" tests/cluster up 3
check "a job that loses a rank fails, and says so" by_srun is_lost 4
check "the next one, which loses its first, likewise" by_srun is_lost 1
check "the one after that is done" by_srun run_job "${job[@]}"
if "$emass" --version | grep -q 'mpi=pmi2'; then
    check "ranks that srun started by hand end when one is lost" by_srun by_hand
fi
check "the same run without Slurm" plain "$scratch/run.yaml" --output lost.h5 --set "run.draws=$short"
check "both left the same bytes" same lost.h5
finish
