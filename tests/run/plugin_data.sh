#!/usr/bin/env bash
# A model in a shared object that reads a CSV by emass/data.h: the same draws as the built-in model of
# the same posterior, on any ranks and shards; a bad line is named.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >line.c <<'C'
#include <emass/data.h>
#include <emass/plugin.h>
#include <stdlib.h>
typedef struct { char *data; } options;
static const em_field fields[] = {EM_PATH(options, data, .doc = "table with the columns x and y"), {0}};
typedef struct { em_model model; em_data *data; int64_t x, y; em_variable variable; } line;
static void destroy(em_model *model)
{
    em_data_destroy(&((line *)model)->data);
    free(model);
}
static em_status create(const void *given, const em_model_context *context, em_model **out)
{
    em_data *data;
    em_status status = em_data_read(((const options *)given)->data, context, &data);
    line *self = status ? NULL : calloc(1, sizeof *self);
    if (status)
        return status;
    self->data = data;
    self->x = em_data_column(data, "x");
    self->y = em_data_column(data, "y");
    self->variable = (em_variable){.name = "beta", .n_axes = 1, .shape = {2}};
    self->model = (em_model){.ops = context->ops, .dim = 2, .rows = data->rows, .n_variable = 1,
                             .variable = &self->variable, .data_hash = data->hash};
    if (self->x >= 0 && self->y >= 0) {
        *out = &self->model;
        return EM_OK;
    }
    destroy(&self->model);
    return em_fail(EM_EDATA, "%s: found no columns x and y", ((const options *)given)->data);
}
static em_status add_prior(em_model *model, const em_query *query)
{
    (void)model;
    for (int64_t c = 0; c < query->n_chain; c++)
        for (int64_t j = 0; j < 2; j++) {
            const double beta = query->theta[c * query->stride + j];
            query->log_density[c] -= beta * beta / 20;
            query->gradient[c * query->stride + j] -= beta / 10;
        }
    return EM_OK;
}
static em_status add_likelihood(em_model *model, const em_query *query)
{
    const line *self = (const line *)model;
    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *beta = query->theta + c * query->stride;
        for (int64_t k = 0; k < query->rows.count; k++) {
            const int64_t i = query->rows.index ? query->rows.index[k] : query->rows.first + k;
            const double *row = self->data->value + i * self->data->n_column, x = row[self->x];
            const double z = row[self->y] - beta[0] - beta[1] * x;
            query->log_density[c] -= z * z / 2;
            query->gradient[c * query->stride] += z;
            query->gradient[c * query->stride + 1] += z * x;
        }
    }
    return EM_OK;
}
static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    (void)model, (void)draw;
    out[0] = theta[0];
    out[1] = theta[1];
    return EM_OK;
}
EMASS_PLUGIN({.name = "line", .options_size = sizeof(options), .fields = fields, .create = create,
              .destroy = destroy, .add_prior = add_prior, .add_likelihood = add_likelihood,
              .report = report});
C
check 'it compiles' cc -std=c17 -Wall -Wextra -Werror -shared -fPIC -I"$project/include" line.c -o line.so
awk 'BEGIN { print "y,x"; srand(4); for (i = 0; i < 700; i++) { x = rand(); print 1 + 2 * x + rand() - 0.5 "," x } }' >data.csv
awk -F, 'NR > 1 { print $2 "," $1 }' data.csv >swapped.csv

run() { # RANKS SHARDS MODEL OUTPUT
    cat >run.yaml <<YAML
model: {$3}
sampler: {name: hmc, step_size: 0.02, leapfrog_steps: 8}
mass: {estimator: none}
run: {chains: 4, shards: $2, warmup: 200, draws: 500}
YAML
    limited mpirun -n "$1" "$emass" run run.yaml --quiet --overwrite --output "$4"
}
plugin='name: line, library: ./line.so, data: data.csv'
bytes() {
    run 1 1 "$plugin" one.h5 || return 1
    for layout in '2 1' '3 3' '4 2'; do
        # shellcheck disable=SC2086 # words
        run $layout "$plugin" many.h5 && cmp one.h5 many.h5 || return 1
    done
}
check 'the same bytes on any ranks and shards' bytes
law() { # the mean of the built-in model, within Monte Carlo errors
    run 2 1 'name: linear, data: swapped.csv' linear.h5 || return 1
    paste -d, <("$emass" summary one.h5 --csv) <("$emass" summary linear.h5 --csv) | tee /dev/stderr |
        awk -F, 'NR > 1 { z = ($2 - $(NF / 2 + 2)) / sqrt($3 ^ 2 + $(NF / 2 + 3) ^ 2); if (z > 4.5 || z < -4.5) bad = 1 }
            END { exit NR != 3 || bad }'
}
check 'the law of the built-in model' law
named() {
    sed -i '600s/.*/1,old/' data.csv
    ! run 3 3 "$plugin" bad.h5 2>err.txt && cat err.txt &&
        grep -q "^emass: .*data.csv:600: found 'old' for column x, expected a number" err.txt
}
check 'a bad line is named' named
finish
