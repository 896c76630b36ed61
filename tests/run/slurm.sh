#!/bin/bash
# The scheduler scripts of jobs/slurm on a real Slurm of 4 nodes.
# shellcheck source=tests/run/lib.sh disable=SC2317,SC2016
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

# Over a finished file: the first start of the job replaces it, and the second goes on.
signalled() {
    local job
    rm -f "$scratch"/slurm/*.log
    (cd "$scratch/slurm" && limited mpirun -n 2 "$emass" run "$scratch/longer.yaml" --quiet --set run.warmup=10 --set run.draws=10) &&
        job=$(submit --nodes=4 --ntasks-per-node=2 jobs/slurm/emass.sbatch "$scratch/longer.yaml" --overwrite) &&
        checkpointed longer.h5 && scancel --signal=USR1 "$job" && done_well "$job" &&
        [ "$(restarts "$job")" = 1 ] && [ -z "$(find "$scratch/slurm" -name '.emass-*')" ]
}
# Neither mpirun nor srun calls the stop with a checkpoint a failure.
stops_quietly() {
    cat "$scratch"/slurm/job-emass-*.log
    grep -q 'stopped by a signal' "$scratch"/slurm/job-emass-*.log &&
        grep -q 'resuming longer.h5 at iteration' "$scratch"/slurm/job-emass-*.log &&
        ! grep -iE 'abort|non-zero|exit code' "$scratch"/slurm/job-emass-*.log
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
echo 0 >"$EMASS_STATUS"
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

# As installed, from a folder that knows nothing of the project.
mkdir -p "$scratch/share/emass" "$scratch/bin" && cp -r jobs "$scratch/share/emass/jobs" &&
    ln -s "$emass" "$scratch/bin/emass"
echo 'echo "set up" >>"$SLURM_SUBMIT_DIR/set-up"' >"$scratch/setup.sh"
seeds() {
    (cd "$scratch" && unset EMASS && export EMASS_SETUP=$scratch/setup.sh &&
        run_job --array=1-2 --nodes=2 --ntasks-per-node=1 "$scratch/share/emass/jobs/slurm/array.sbatch" "${short[@]}") &&
        grep -q 'set up' "$scratch/set-up"
}

# What an emass says starts it, if srun has its PMI. The cluster's own choice of mpirun does not count.
by_its_pmi() {
    mkdir -p "$scratch/fake"
    printf '#!/bin/sh\ncase $1 in --version) echo "started by: mpirun.other, srun --mpi=%s" ;; esac\n' "$1" >"$scratch/fake/emass"
    printf '#!/bin/sh\ncase $1 in --mpi=list) echo none pmi2 pmix ;; *) echo "by srun $*" ;; esac\n' >"$scratch/fake/srun"
    printf '#!/bin/sh\necho "by mpirun.other $*"\n' >"$scratch/fake/mpirun.other"
    printf '#!/bin/sh\n' | tee "$scratch/fake/squeue" >"$scratch/fake/scontrol"
    chmod +x "$scratch"/fake/*
    env -u EMASS_LAUNCHER -u EMASS PATH="$scratch/fake:$PATH" SLURM_JOB_ID=1 \
        bash jobs/slurm/emass.sbatch config.yaml | tee /dev/stderr | grep "^by $2"
}

# Where srun cannot start the ranks, the log says what to set; where they ended by themselves, it does not.
says_what_to_set() { # STATUS
    by_its_pmi pmix 'srun' >/dev/null # the stand-ins
    printf '#!/bin/sh\ncase $1 in --mpi=list) echo pmix pmi2 ;; *) exit %s ;; esac\n' "$1" >"$scratch/fake/srun"
    env -u EMASS_LAUNCHER -u EMASS PATH="$scratch/fake:$PATH" SLURM_JOB_ID=1 \
        bash jobs/slurm/emass.sbatch config.yaml 2>&1 | tee /dev/stderr | grep 'submit with EMASS_LAUNCHER=mpirun'
}
says_nothing() { ! says_what_to_set "$1"; }
# A srun that could not launch the ranks may end with 0: only a run that has finished says so in the file.
ends_with() { # STATUS COMMAND-OF-SRUN
    local status=0
    by_its_pmi pmix 'srun' >/dev/null # the stand-ins
    printf '#!/bin/sh\ncase $1 in --mpi=list) echo pmix pmi2 ;; *) %s ;; esac\n' "$2" >"$scratch/fake/srun"
    (cd "$scratch" && env -u EMASS_LAUNCHER -u EMASS PATH="$scratch/fake:$PATH" SLURM_JOB_ID=1 \
        bash "$project/jobs/slurm/emass.sbatch" config.yaml >"$scratch/printed" 2>&1) || status=$?
    cat "$scratch/printed" && [ "$status" = "$1" ] && [ ! -e "$scratch/.emass-1.status" ]
}
never_launched() { ends_with 1 true && grep 'ended with status 0 .*submit with EMASS_LAUNCHER=mpirun' "$scratch/printed"; }
finished() { ends_with 0 'echo 0 >"$EMASS_STATUS"' && [ ! -s "$scratch/printed" ]; }
ranks_cannot_start() {
    mkdir -p "$scratch/srun" && cp "$scratch/fake/srun" "$scratch/srun/"
    env -u EMASS_LAUNCHER PATH="$scratch/srun:$PATH" SLURM_JOB_ID=1 \
        "$emass" run --ranks 2 "${short[0]}" --output "$scratch/none.h5" 2>&1 | tee /dev/stderr | grep 'set EMASS_LAUNCHER=mpirun'
}
# The same without the scripts: a srun that starts nothing, and one that starts the ranks.
by_a_srun() { # STATUS COMMAND-OF-SRUN
    local status=0
    mkdir -p "$scratch/srun"
    printf '#!/bin/bash\ncase $1 in --mpi=list) echo pmix pmi2 ;; *) %s ;; esac\n' "$2" >"$scratch/srun/srun"
    chmod +x "$scratch/srun/srun"
    env -u EMASS_LAUNCHER PATH="$scratch/srun:$PATH" SLURM_JOB_ID=1 SLURMD_NODENAME=n1 TMPDIR="$scratch" \
        "$emass" check --ranks 2 "${short[0]}" >/dev/null 2>"$scratch/printed" || status=$?
    cat "$scratch/printed" && [ "$status" = "$1" ] && ! compgen -G "$scratch/emass-status-*"
}
ranks_never_began() {
    by_a_srun 1 true && [ "$(wc -l <"$scratch/printed")" = 1 ] && grep 'no rank began' "$scratch/printed"
}
ranks_began() { by_a_srun 0 'exec mpirun "${@:4}"' && [ ! -s "$scratch/printed" ]; }
# In the shell of `srun --pty`, which is a step itself, srun waits for ever unless steps may overlap.
ranks_in_a_step() {
    (cd "$scratch" && limited srun --nodes=1 --ntasks=1 --cpus-per-task=2 env -u EMASS_LAUNCHER \
        "$emass" run --ranks 2 "${short[@]}" --output step.h5 --quiet) && [ -s "$scratch/step.h5" ]
}
# Without PMI Open MPI takes the only process of a step for one of several that cannot find each other.
alone_in_a_step() {
    (cd "$scratch" && limited srun --mpi=none --nodes=1 --ntasks=1 env -u EMASS_LAUNCHER \
        "$emass" run "${short[@]}" --output alone.h5 --quiet) && [ -s "$scratch/alone.h5" ]
}
# A user who forgets the ranks, and one who asks for more of them than there are tasks.
unused_tasks() {
    (cd "$scratch" && export SLURM_NTASKS=4 && "$emass" run "${short[@]}" --output unused.h5 2>note >/dev/null &&
        "$emass" run "${short[@]}" --output unused.h5 --overwrite --quiet &&
        limited mpirun -n 1 "$emass" run "${short[@]}" --output unused.h5 --overwrite >/dev/null) >"$scratch/printed" 2>&1
    cat "$scratch/note" "$scratch/printed" && ! grep note: "$scratch/printed" &&
        grep 'note: this run has one rank on this machine, and the Slurm job has 4 tasks: --ranks 4 uses them' "$scratch/note"
}
few_tasks() {
    SLURM_NTASKS=1 by_a_srun 1 'exit 1' && grep -- '--ranks: found 2, expected at most 1, the tasks of the Slurm job' "$scratch/printed"
}

# The first start of a job overwrites, those after it go on.
starts_with() { # RESTARTS ARGUMENT OPTION...: the last argument of emass run
    by_its_pmi pmi7 'mpirun.other' >/dev/null # the stand-ins
    env -u EMASS_LAUNCHER -u EMASS PATH="$scratch/fake:$PATH" SLURM_JOB_ID=1 SLURM_RESTART_COUNT="$1" \
        bash jobs/slurm/emass.sbatch config.yaml "${@:3}" --seed 3 | tee /dev/stderr |
        grep -- "^by mpirun.other .* run config.yaml --seed 3 $2\$"
}

check "--overwrite at the first start" starts_with '' --overwrite --overwrite
check "--resume after it" starts_with 1 --resume --overwrite
check "--resume where nothing is said, or that" starts_with 0 --resume --resume
check "srun by PMI-2 where emass asks for it" by_its_pmi pmi2 'srun --mpi=pmi2 --wait='
check "srun by PMIx likewise" by_its_pmi pmix 'srun --mpi=pmix --wait='
check "else its own mpirun" by_its_pmi pmi7 'mpirun.other'
check "a srun that stops with a checkpoint is no failure" says_nothing 75
check "a srun that cannot launch: the job says what to set" says_what_to_set 137
check "and so does --ranks" ranks_cannot_start
check "--ranks fails if srun ends with 0 and started none" ranks_never_began
check "and does not where it started them" ranks_began
check "a run that leaves tasks of its job unused says so" unused_tasks
check "more ranks than tasks: one line says what to ask for" few_tasks
check "a srun that ends with 0 without a run: the job fails and says so" never_launched
check "a run that has finished is no failure" finished
check "a Slurm of 4 nodes starts" tests/cluster up 4
check "--ranks within a step" on_cluster ranks_in_a_step
check "one rank within a step, without PMI" on_cluster alone_in_a_step
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
check "its log calls the stop no failure" stops_quietly
check "a cancelled job stays so" on_cluster cancelled
finish
