#include "model/regression/count_regression.h"

#include "data/table/table.h"

em_status em_count_regression_set_up(em_model *model, const em_regression_options *options,
                                     const em_model_context *context,
                                     const em_regression_plan *plan)
{
    em_regression *self = (em_regression *)model;
    em_table *table = NULL;
    em_status status = em_features_read(&options->table, context->fitted, &table, &self->features);

    if (!status)
        status = em_table_check_counts(table);
    if (!status)
        status = em_regression_create(self, table, options, context, plan);
    em_table_destroy(&table);
    return status;
}

em_status em_draw_count(em_variate *v, double mean, double *y)
{
    if (!(mean < EM_MOST_COUNT))
        return em_fail(EM_NONFINITE, "a response of mean %g is too large to be drawn", mean);
    *y = em_variate_poisson(v, mean);
    return EM_OK;
}
