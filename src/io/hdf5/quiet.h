/* What HDF5 prints of its own: ours is in our messages, a host's is the host's. */
#ifndef EM_IO_HDF5_QUIET_H
#define EM_IO_HDF5_QUIET_H

/* How HDF5 prints its error stacks. */
typedef struct em_h5_printing {
    void *function, *to;
} em_h5_printing;

/* From here to em_h5_restore it prints none. Local. */
em_h5_printing em_h5_silence(void);
void em_h5_restore(em_h5_printing before);

#endif
