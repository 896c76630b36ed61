/* The help texts, and how they are shown. */
#ifndef EM_APP_COMMAND_HELP_H
#define EM_APP_COMMAND_HELP_H

#include "emass/status.h"

extern const char em_help[];      /* emass --help */
extern const char em_help_exit[]; /* the end of each: exit statuses */
extern const char em_help_run[], em_help_summary[], em_help_check[], em_help_list[],
    em_help_verify[], em_help_convert[], em_help_predict[], em_help_report[], em_help_merge[],
    em_help_diff[], em_help_loo[];

/* To standard output: as it is, or on a terminal in lines that fit it, of a hundred columns at
 * most. Local. Errors: EM_EMEMORY. */
em_status em_help_print(const char *text);

#endif
