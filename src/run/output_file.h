/* Private to the room: an output from inside, and what is written into it at the end. */
#ifndef EM_RUN_OUTPUT_FILE_H
#define EM_RUN_OUTPUT_FILE_H

#include "io/writer.h"
#include "run/output.h"

enum { EM_MOST_VARIABLES = 256 };

/* A group of draws that is being filled: posterior or sample_stats, of warmup or of sampling. */
typedef struct em_draw_group {
    int group; /* of the writer; -1: not stored */
    int64_t width;
    double *buffer; /* [n_local_chain][flush_every][width] */
} em_draw_group;

enum { EM_POSTERIOR, EM_STATS, EM_UNCONSTRAINED, EM_N_KIND };

extern const char *const em_sampling_group[EM_N_KIND]; /* their names in the file */
extern const char *const em_warmup_group[EM_N_KIND];

struct em_output {
    const em_config *config;
    const em_grid *grid;
    const em_model *model;
    em_plan plan;
    em_writer *writer;
    int64_t n_local_chain;
    double *constrained; /* [n_chain of the block = 1][all variables] */
    int64_t n_selected;  /* variables to store, and where they are in `constrained` */
    int64_t selected_first[EM_MOST_VARIABLES], selected_size[EM_MOST_VARIABLES];
    em_draw_group sampling[EM_N_KIND], warmup[EM_N_KIND];
    int64_t first, count; /* the buffer holds stored draws first .. first + count of its phase */
    bool in_warmup;       /* which phase that is */
};

/* Writes the M-steps, the final inverse mass and the step sizes: mass_adaptation. Collective.
 * Errors, agreed: EM_EIO, EM_EMEMORY. */
em_status em_output_put_learned(em_output *output, const em_adapt *adapt);

#endif
