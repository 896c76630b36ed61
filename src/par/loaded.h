/* Against a crash in MPI_Finalize. */
#ifndef EM_PAR_LOADED_H
#define EM_PAR_LOADED_H

/*
 * No shared object that is loaded now will be unloaded. Open MPI 4.1 unloads its components in
 * MPI_Finalize while two threads of its own still run, which on a busy machine crashes one process
 * in some thousands at its very end, its work done. To be called by a program just before. Local.
 */
void em_keep_loaded(void);

#endif
