/* Private to the room: an output from inside, and what is written into it at the end. */
#ifndef EM_RUN_OUTPUT_FILE_H
#define EM_RUN_OUTPUT_FILE_H

#include "io/writer.h"
#include "run/output.h"

/* A group of draws that is being filled, of warmup or of sampling. */
typedef struct em_draw_group {
    int group; /* of the writer; -1: not stored */
    int64_t width;
    bool dealt;     /* each shard has the numbers of its own observations */
    double *buffer; /* [n_local_chain][flush_every][width] */
} em_draw_group;

/* The groups of draws: those that a model reports (em_report_group), and two of our own. */
enum { EM_STATS = EM_N_REPORT_GROUP, EM_UNCONSTRAINED, EM_N_KIND };

extern const char *const em_sampling_group[EM_N_KIND]; /* their names in the file */
extern const char *const em_warmup_group[EM_N_KIND];

/* A variable that is stored, and where it is among the numbers of a report. */
typedef struct em_stored {
    const em_variable *variable;
    int64_t first, size;
} em_stored;

struct em_output {
    const em_config *config;
    const em_grid *grid;
    em_model *model;
    em_plan plan;
    em_created created;
    em_writer *writer;
    int64_t n_local_chain;
    int64_t n_reported;
    double *reported; /* [n_reported] all variables of one draw */
    int64_t n_stored;
    em_stored *stored; /* [n_stored] */
    char failure[256]; /* why a report failed, the first on this rank; "": none did */
    em_draw_group sampling[EM_N_KIND], warmup[EM_N_KIND];
    int64_t first, count; /* the buffer holds stored draws first .. first + count of its phase */
    bool in_warmup;       /* which phase that is */
};

/* Whether an output has the groups of draws of a kind. Local. */
bool em_output_has(const em_config *config, const em_model *model, int kind);

/* Writes the M-steps, the final inverse mass and the step sizes: mass_adaptation. Collective.
 * Errors, agreed: EM_EIO, EM_EMEMORY. */
em_status em_output_put_learned(em_output *output, const em_adapt *adapt);

#endif
