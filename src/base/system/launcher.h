/* What the environment says of who started this process. All Local. */
#ifndef EM_BASE_SYSTEM_LAUNCHER_H
#define EM_BASE_SYSTEM_LAUNCHER_H

#include <stdbool.h>

/* The number of ranks that a launcher (mpirun, a PMI launcher, srun) says it started; 0: none did.
 */
int em_launched_ranks(void);

/* Whether a launcher started this process, maybe beside others: also one that does not say how
 * many there are. */
bool em_is_launched(void);

#endif
