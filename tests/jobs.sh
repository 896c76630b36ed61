# Sourced, after tests/run/lib.sh, by the tests of jobs/slurm: a Slurm of 4 nodes that lasts as long
# as the test, jobs on it, and the same runs without it. Jobs run in $scratch/slurm.
# shellcheck shell=bash disable=SC2154 # of lib.sh
project=$PWD
export EMASS_CLUSTER=$scratch/cluster EMASS=$emass SOURCE_DATE_EPOCH=0
unset HWLOC_SYNTHETIC # nodes look for themselves
mkdir "$scratch/slurm" "$scratch/plain"
trap '"$project/tests/cluster" down; rm -rf "$scratch"' EXIT

if [ "$(id -u)" != 0 ] || ! have slurmctld slurmd sbatch munged; then
    skip "jobs on Slurm" "needs root, slurmctld, slurmd, slurm-client and munge"
    finish
fi

# In a shell of its own, so that only the jobs see the cluster's MPI settings.
on_cluster() { # COMMAND...
    (eval "$(tests/cluster env)" && "$@")
}

submit() { # [option of sbatch]... SCRIPT [argument]...: prints the job's number
    sbatch --parsable --chdir="$scratch/slurm" --output=job-%x-%a.log "$@"
}

# Waits for a job, or a whole array, to be done. One that was requeued has to wait two minutes in the
# queue, but not here; only not less than a second, for Slurm's credentials are told apart by that, and
# not before its steps are gone: a node that has one still refuses the job, and Slurm drains it.
done_well() { # JOB
    local states
    for _ in $(seq "${patience:-600}"); do
        states=$(squeue --noheader --jobs="$1" --format=%T)
        [ -n "$states" ] || break
        sleep 1.5
        [[ $states != *PENDING* ]] || pgrep -f "^slurmstepd: \\[$1\\." >/dev/null ||
            scontrol update "job=$1" StartTime=now 2>/dev/null
    done
    tail -n 15 "$scratch"/slurm/job-*.log
    ! scontrol --oneliner show job "$1" | grep -v 'JobState=COMPLETED'
}

run_job() { # [option of sbatch]... SCRIPT [argument]...
    local job
    job=$(submit "$@") && done_well "$job"
}

restarts() { # JOB
    scontrol --oneliner show job "$1" | sed -E 's/.* Restarts=([0-9]+) .*/\1/'
}

# Waits until the run that writes FILE has left a checkpoint.
checkpointed() { # FILE
    wait_for "$scratch/slurm/$1.checkpoint"
}

# The same run without Slurm, under the same name, as the file holds its config.
plain() { # [argument of emass run]...
    (cd "$scratch/plain" && limited mpirun -n 2 "$emass" run "$@" --progress none)
}

same() { # FILE
    cmp "$scratch/slurm/$1" "$scratch/plain/$1"
}

# Makes $scratch/run.yaml: a density that takes a while in a job, of the clock and not of a processor,
# so that a job lasts as long on a quiet machine as on a busy one; the same run outside is done in a moment.
unhurried() {
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
    cc -shared -fPIC -Iinclude "$scratch/unhurried.c" -o "$scratch/unhurried.so"
}

# So many draws that a job needs SECONDS at least: five gradients each, of ten milliseconds and a bit.
draws_in() { # SECONDS
    echo $(($1 * 1000 / 50))
}
