#!/usr/bin/env bash
# How often ranks wait for one another, counted by MPI's interface for profilers: where they are more
# than there are processors, or share them, that is what a run of a small model takes its time for.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

cat >count.c <<'C'
#include <mpi.h>
#include <stdio.h>
static long n;
#define COUNT(name, parameters, arguments) int MPI_##name parameters { n++; return PMPI_##name arguments; }
COUNT(Allreduce, (const void *a, void *b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), (a, b, c, d, e, f))
COUNT(Bcast, (void *a, int b, MPI_Datatype c, int d, MPI_Comm e), (a, b, c, d, e))
COUNT(Barrier, (MPI_Comm a), (a))
COUNT(Allgatherv, (const void *a, int b, MPI_Datatype c, void *d, const int *e, const int *f, MPI_Datatype g, MPI_Comm h),
      (a, b, c, d, e, f, g, h))
COUNT(Alltoallv, (const void *a, const int *b, const int *c, MPI_Datatype d, void *e, const int *f, const int *g, MPI_Datatype h,
      MPI_Comm i), (a, b, c, d, e, f, g, h, i))
int MPI_Finalize(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "collectives: %ld\n", n);
    return PMPI_Finalize();
}
C
mpicc -shared -fPIC count.c -o count.so || exit 1
cat >run.yaml <<'YAML'
model: {name: eight_schools}
run: {chains: 8}
stop: {check_every: 100000}
YAML

count() { # ARGUMENT...: collectives of a run on 3 ranks
    limited mpirun -n 3 -x LD_PRELOAD="$PWD/count.so" "$emass" run run.yaml --overwrite --quiet "$@" 2>&1 |
        sed -n 's/^collectives: //p'
}

# An M-step takes a few, the tests of log scales at the end of a window too, an adaptation update at most two, and an
# iteration on its own none: 300 more of warmup are 100 updates, most of which do nothing else; when sampling, ranks
# communicate to write and to check.
short=$(count --set run.warmup=300 --set run.draws=1)
long=$(count --set run.warmup=600 --set run.draws=1)
echo "# warmup of 300 iterations: $short collectives in all, of 600: $long"
check 'warmup of 300 iterations' test "$short" -le 550
check '300 more' test $((long - short)) -le 200
drawn=$(count --set run.warmup=300 --set run.draws=1001)
echo "# 1000 draws more: $((drawn - short))"
check 'draws' test $((drawn - short)) -le 150
finish
