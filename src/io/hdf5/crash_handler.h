/*
 * HDF5 1.10 does not check references of data of variable length (texts, lists of dimensions) into
 * the heap of their file, nor all of a file's first block. If they are damaged, HDF5 reads memory
 * that is not its own. In the program emass a crash between em_h5_crash_handler_begin and
 * em_h5_crash_handler_end ends the process with a message that names the file, and with exit status
 * 2. In other programs, whose signals are their own, the functions do nothing. All Local.
 */
#pragma once

/* To be called once by the program emass. */
void em_h5_crash_handler_enable(void);

/* The next calls of HDF5 open this file or read its data of variable length. Not nested. */
void em_h5_crash_handler_begin(const char *path);
void em_h5_crash_handler_end(void);
