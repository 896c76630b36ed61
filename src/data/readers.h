/* One reader per kind of file. Each fills an empty table, except for the names it does not have. */
#ifndef EM_DATA_READERS_H
#define EM_DATA_READERS_H

#include "data/lines.h"
#include "data/table.h"

/* `line` is the first line, already read. Local. Errors: as em_table_read. */
em_status em_read_libsvm(em_lines *lines, char *line, int64_t columns, em_table *table);
em_status em_read_delimited(em_lines *lines, char *line, em_table_format format,
                            em_table_header header, em_table *table);

/* `colon` is where in `path` the colon between the file and the dataset stands. Local. Errors: as
 * em_table_read. */
em_status em_read_hdf5(const char *path, const char *colon, em_table *table);

#endif
