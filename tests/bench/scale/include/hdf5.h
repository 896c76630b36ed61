/*
 * Serial HDF5, with what emass calls of the parallel one, which Debian links with an MPI of its
 * own: they fail, and a run without a file calls none.
 */
#ifndef TESTS_BENCH_SCALE_HDF5_H
#define TESTS_BENCH_SCALE_HDF5_H

#include_next <hdf5.h>
#include <mpi.h>

static inline herr_t H5Pset_fapl_mpio(hid_t list, MPI_Comm ranks, MPI_Info info)
{
    return (void)list, (void)ranks, (void)info, -1;
}

static inline herr_t H5Pset_dxpl_mpio(hid_t list, H5FD_mpio_xfer_t mode)
{
    return (void)list, (void)mode, -1;
}

static inline herr_t H5Pset_dxpl_mpio_chunk_opt(hid_t list, H5FD_mpio_chunk_opt_t mode)
{
    return (void)list, (void)mode, -1;
}

static inline herr_t H5Pset_dxpl_mpio_collective_opt(hid_t list, H5FD_mpio_collective_opt_t mode)
{
    return (void)list, (void)mode, -1;
}

static inline herr_t H5Pset_coll_metadata_write(hid_t list, hbool_t collective)
{
    return (void)list, (void)collective, -1;
}

#endif
