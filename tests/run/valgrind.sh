#!/usr/bin/env bash
# run, summary, predict, report, check and list under valgrind: no read or write that is invalid or
# of undefined values, and no block of ours lost.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
unset HWLOC_SYNTHETIC # what hwloc makes of it is not all freed

if ! command -v valgrind >/dev/null; then
    skip "commands under valgrind" "valgrind is not installed"
    finish
fi

# What MPI loses between its start and its end is its own.
cat >mpi.supp <<'SUPP'
{
   MPI starts
   Memcheck:Leak
   ...
   fun:PMPI_Init*
}
{
   ROMIO opens a file
   Memcheck:Leak
   ...
   obj:*mca_io_romio321.so
}
{
   MPI ends
   Memcheck:Leak
   ...
   fun:*mpi_finalize
}
{
   the loader notes that an object stays
   Memcheck:Leak
   ...
   fun:resize_scopes
   ...
   fun:em_keep_loaded
}
SUPP
suppressions=(--suppressions=mpi.supp)
[ ! -r /usr/share/openmpi/openmpi-valgrind.supp ] ||
    suppressions+=(--suppressions=/usr/share/openmpi/openmpi-valgrind.supp)

# The reports, which blank lines separate, that have a frame in the program: the others are of
# threads and modules of MPI.
ours() {
    awk 'BEGIN { RS = "==[0-9]+== *\n" } /\(in [^)]*\/emass\)/ { print; found = 1 }
         END { exit !found }' report
}

sound() { # ARGUMENT...: of emass
    limited valgrind -q --leak-check=full --show-leak-kinds=definite,indirect \
        "${suppressions[@]}" --log-file=report "$emass" "$@" && ! ours
}

awk 'BEGIN { srand(1); for (i = 0; i < 40; i++) print rand(), rand(), i % 2 }' >table
cat >run.yaml <<'YAML'
model: {name: logistic, data: table}
sampler: {name: hmc, leapfrog_steps: 3}
run: {chains: 2, warmup: 15, draws: 10}
YAML
check "run" sound run run.yaml --quiet
check "run, with minibatches" sound run run.yaml --quiet --output sgld.h5 \
    --set sampler='{name: sgld, minibatch: 10}' --set mass.estimator=none
check "summary" sound summary run.h5
check "predict" sound predict run.h5 --data table
check "report" sound report run.h5
check "check" sound check run.yaml
check "list" sound list
finish
