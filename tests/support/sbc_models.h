/* Models for simulation-based calibration: theta drawn from the prior, and data drawn at theta. The
 * priors and likelihoods are written down here a second time. */
#ifndef TESTS_SUPPORT_SBC_MODELS_H
#define TESTS_SUPPORT_SBC_MODELS_H

#include "model/regression/variate.h"
#include "support/model_setup.h"

enum { SBC_MOST_DIM = 16, N_SBC_MODEL = 19, N_SBC_STAN = 4 };

/* A model, where theta and the data come from, and the step size of the chains. */
typedef struct calibrated {
    const char *name;
    void (*simulate)(double *theta); /* NULL: of a Gaussian, whose precision the model says */
    setting settings[6];
    double step_size, shift; /* the twin's theta is moved by so much, near a standard deviation */
    bool reported;           /* theta are coefficients as they are reported, and log shapes */
} calibrated;

extern const calibrated sbc_models[N_SBC_MODEL]; /* the Stan programs are the last */

/* The folder of the data files. */
bool sbc_open(void);
void sbc_close(void);

/* Draws theta [SBC_MOST_DIM] and data, and makes the model of these data. */
setup sbc_draw(const calibrated *m, em_variate *variate, double *theta);

#endif
