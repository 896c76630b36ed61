#include "adaptation/prior_proofs/prior_form.h"

#include "math/linalg.h"

#include <math.h>

double em_form_factor(const em_normal_prior *form, double x)
{
    const double before = em_log_scale(form->form, x, NULL);
    const double after = em_log_scale(form->form, x + EM_DIFFERENCE_STEP, NULL);

    return 0.5 * (exp(-2 * form->degree * before) - exp(-2 * form->degree * after)) /
           EM_DIFFERENCE_STEP;
}

const em_normal_prior em_prior_form[EM_N_PRIOR_FORM] = {{.degree = 1},
                                                        {.degree = 1, .form = EM_SCALE_LOGISTIC},
                                                        {.degree = 1, .form = EM_SCALE_SOFTPLUS},
                                                        {.degree = -1},
                                                        {.degree = 0.5},
                                                        {.degree = -0.5}};

void em_form_positions(em_form_regression *f, const em_scale_test *t)
{
    for (int64_t i = 0; i < f->p; i++) {
        double *x = f->x + i * f->n;
        for (int64_t q = 0; q < f->n; q++)
            x[q] = em_scale_test_position(t, q)[t->involved[i]];
        f->norm[i] = sqrt(em_dot(f->n, x, x));
        for (int64_t q = 0; q < f->n; q++)
            x[q] /= f->norm[i];
    }
}

void em_form_products(em_form_regression *f, const em_scale_test *t, const em_normal_prior *form)
{
    for (int64_t q = 0; q < f->n; q++) {
        const double factor = 2 * em_form_factor(form, em_scale_test_position(t, q)[t->k]);
        for (int64_t i = 0; i < f->p; i++)
            f->y[i * f->n + q] = t->difference[q * t->dim + t->involved[i]] / factor;
    }
}
