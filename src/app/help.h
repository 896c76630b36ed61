/* The help texts. */
#ifndef EM_APP_HELP_H
#define EM_APP_HELP_H

extern const char em_help[]; /* emass --help */
extern const char em_help_run[], em_help_summary[], em_help_check[], em_help_list[],
    em_help_verify[], em_help_convert[], em_help_topics[], em_help_predict[];

#endif
