#!/usr/bin/env bash
# Ranks that wait for one another beside busy processes do not wait for the turns of the scheduler,
# too: barriers of a program with emass's sched_yield and of one without, in the same circumstances.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$PWD
cd "$scratch" || exit 1

cat >meet.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = -MPI_Wtime();
    for (int i = 0; i < 200; i++)
        MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    seconds += MPI_Wtime();
    if (rank == 0)
        printf("%.0f\n", 1e6 * seconds / 200);
    MPI_Finalize();
}
C
mpicc -O2 -D_GNU_SOURCE meet.c "$project/src/app/process/yield.c" -o naps -rdynamic || exit 1
mpicc -O2 meet.c -o yields || exit 1

# A busy process for each processor, for as long as this one is there.
for _ in $(seq "$(nproc)"); do
    sh -c 'while kill -0 $PPID; do for i in 1 2 3 4 5 6 7 8 9; do :; done; done' 2>/dev/null &
done
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$scratch"' EXIT

barrier() { # PROGRAM: microseconds
    OMPI_MCA_mpi_yield_when_idle=1 limited mpirun -n $(($(nproc) < 4 ? 4 : $(nproc))) env -u LD_PRELOAD "./$1"
}

# Once in three times is enough: one of the two may be unlucky in what else runs just then. Where
# yields return soon, on a kernel that has other turns, there is nothing to win.
is_short() {
    local naps yields
    for _ in 1 2 3; do
        naps=$(barrier naps) && yields=$(barrier yields) || return 1
        echo "# a barrier beside $(nproc) busy processes: $naps us, by yields alone $yields us" | tee -a said.waits
        [ "$naps" -gt $((yields / 2)) ] && [ "$naps" -gt 500 ] || return 0
    done
    return 1
}

check 'barriers beside busy processes' is_short
cat said.waits
check 'emass waits so' sh -c "nm -D --defined-only '$emass' | grep -w sched_yield"
# It is the program's own: a program that uses the library waits as it likes.
check 'the library does not' sh -c "nm -D --defined-only '$build/libemass.so.0' >names && ! grep -w sched_yield names"
finish
