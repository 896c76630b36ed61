/*
 * Capability `prediction`: predictions for new data from the draws of a finished run, for emass
 * predict.
 */
#ifndef EMASS_MODEL_PREDICTION_H
#define EMASS_MODEL_PREDICTION_H

#include "emass/model.h"

EM_BEGIN_C

/* What a finished run has left in its file. Both lend what they find until the model is destroyed;
 * where there is none of that name, *count is 0 and the array NULL. Local. Errors: EM_EDATA. */
typedef struct em_fitted {
    void *context;
    /* An array of constant_data, which the model of the run stored (em_model.datum). */
    em_status (*numbers)(void *context, const char *name, int64_t *count, const double **value);
    /* The labels of an axis of the posterior, or of an array of constant_data, as they may be
     * printed and cut to 255 bytes. */
    em_status (*labels)(void *context, const char *axis, int64_t *count, const char *const **label);
} em_fitted;

/*
 * The model is created from the options of the run, `data` replaced by the path of what is new,
 * with em_model_context.fitted: what it learned of the data of the run (means, levels) it takes
 * from there. Of its variables those of EM_POSTERIOR are what it wants of a draw, and those of
 * EM_PREDICTIONS what it makes of it. No density is asked for.
 */
typedef struct em_model_prediction {
    /* Is given the numbers of the first as the file has them, one variable after the other, and
     * writes those of the others, likewise. Counts random numbers by `draw`, and may fail, as
     * em_model_ops.report does. Local. */
    em_status (*predict)(em_model *model, const em_draw *draw, const double *posterior,
                         double *out);
} em_model_prediction;

EM_END_C

#endif
