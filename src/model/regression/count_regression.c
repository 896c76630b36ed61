#include "model/regression/count_regression.h"

#include "base/memory.h"
#include "data/table/table.h"
#include "par/message.h"

static em_status load(em_regression *self, const em_regression_options *options,
                      const em_model_context *context, const em_regression_plan *plan)
{
    em_table *table = NULL;
    em_status status = em_features_read(&options->table, context->fitted, &table, &self->features);

    if (!status)
        status = em_table_check_counts(table);
    if (!status)
        status = em_regression_create(self, table, options, context, plan);
    em_table_destroy(&table);
    return status;
}

em_status em_create_count_model(const em_regression_options *options,
                                const em_model_context *context, const em_regression_plan *plan,
                                em_model **out)
{
    em_regression *self;
    em_status status = em_agree_first(em_allocate(1, sizeof *self, &self), 0);

    *out = NULL;
    if (status) {
        em_release(&self);
        return status;
    }
    status = load(self, options, context, plan);
    if (status)
        em_regression_destroy(&self->model);
    else
        *out = &self->model;
    return status;
}

em_status em_draw_count(em_variate *v, double mean, double *y)
{
    if (!(mean < EM_MOST_COUNT))
        return em_fail(EM_NONFINITE, "a response of mean %g is too large to be drawn", mean);
    *y = em_variate_poisson(v, mean);
    return EM_OK;
}
