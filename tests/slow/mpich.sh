#!/usr/bin/env bash
# Another MPI, and the HDF5 that goes with it (Debian: mpich, libhdf5-mpich-dev): emass builds with it,
# and all that starts ranks or the program is tested as with the first one, a job that loses a rank too.
# shellcheck source=tests/run/lib.sh disable=SC2317
. tests/run/lib.sh
other=$scratch/mpich

if ! have mpicc.mpich mpirun.mpich || ! pkg-config --exists hdf5-mpich; then
    skip 'emass with MPICH' 'mpich and libhdf5-mpich-dev are not installed'
    finish
fi

builds() {
    local test tests=()
    for test in tests/mpi/test_*.c; do
        test=${test%.c}
        tests+=("$other/$test")
    done
    make --silent -j"$(nproc)" MPICC=mpicc.mpich B="$other" CI=1 all "${tests[@]}"
}

check 'it builds' builds
check 'it says so' sh -c "'$other/emass' --version | grep -i 'MPI: MPICH'"
for part in mpi/ run/ slow/slurm_lost_rank; do
    check "tests of $part" tests/check "$other" "$part"
done
finish
