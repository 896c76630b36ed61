#include "support/model_tables.h"

char csv[64], libsvm[64], column[64], matrix[64];

double normal(int64_t i, int64_t j)
{
    const em_stream stream = {7, (uint64_t)i, 0, EM_RNG_TEST};
    double out[MAX_STRIDE] __attribute__((aligned(64)));

    em_normals(&stream, MAX_STRIDE, out);
    return out[j];
}

double feature(int64_t i, int64_t j)
{
    return round(100 * normal(i, j)) / 100;
}

bool is_there(int64_t i, int64_t j)
{
    return (i + 3 * j) % 10 == 0;
}

double label(int64_t i)
{
    return normal(i, N_FEATURE) > 0;
}

static void write_tables(void)
{
    FILE *dense = fopen(csv, "w"), *sparse = fopen(libsvm, "w"), *x = fopen(column, "w");

    for (int64_t i = 0; i < N_ROW; i++) {
        fprintf(sparse, "%g", label(i));
        for (int64_t j = 0; j < N_FEATURE; j++) {
            fprintf(dense, "%.2f,", feature(i, j));
            if (is_there(i, j))
                fprintf(sparse, " %d:%.2f", (int)j + 1, feature(i, j));
        }
        fprintf(dense, "%g\n", label(i));
        fprintf(sparse, "\n");
        fprintf(x, "%.2f\n", feature(i, 0));
    }
    fclose(dense);
    fclose(sparse);
    fclose(x);
}

void write_matrix(const char *text)
{
    FILE *file = fopen(matrix, "w");

    fputs(text, file);
    fclose(file);
}

static char folder[] = "/tmp/emass-models-XXXXXX";

void make_tables(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(csv, sizeof csv, "%s/csv", folder);
    snprintf(libsvm, sizeof libsvm, "%s/libsvm", folder);
    snprintf(column, sizeof column, "%s/column", folder);
    snprintf(matrix, sizeof matrix, "%s/matrix", folder);
    write_tables();
    write_matrix("1\n");
}

void remove_tables(void)
{
    unlink(csv);
    unlink(libsvm);
    unlink(column);
    unlink(matrix);
    rmdir(folder);
}

setup make(const model_case *m, int64_t shard, int64_t n_shard)
{
    setup s;

    ck_assert_msg(try_setup(m->name, m->settings, shard, n_shard, &s) == EM_OK, "%s",
                  em_error_text());
    ck_assert_int_le(s.model->dim, MAX_DIM);
    return s;
}

panel random_panel(int64_t n_chain, int64_t dim, int64_t stride, double radius)
{
    panel p = {n_chain, stride, {0}, {0}, {0}};

    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t i = 0; i < dim; i++)
            p.theta[c * stride + i] = radius * normal(1000 + c, i);
    return p;
}

static em_query query_of(panel *p, em_rows rows)
{
    static const int64_t chain[MAX_CHAIN] = {5, 3, 8}; /* which is of no meaning to these models */

    return (em_query){.n_chain = p->n_chain,
                      .stride = p->stride,
                      .chain = chain,
                      .theta = p->theta,
                      .log_density = p->log_density,
                      .gradient = p->gradient,
                      .rows = rows};
}

void add_prior(const setup *s, panel *p)
{
    const em_query query = query_of(p, (em_rows){.count = 0});

    ck_assert_int_eq(s->ops->add_prior(s->model, &query), EM_OK);
}

void add_likelihood(const setup *s, const em_rows *rows, panel *p)
{
    const em_query query = query_of(p, rows ? *rows : all_rows(s->model));

    if (s->ops->add_likelihood)
        ck_assert_int_eq(s->ops->add_likelihood(s->model, &query), EM_OK);
}

void evaluate(const setup *s, panel *p)
{
    memset(p->log_density, 0, sizeof p->log_density);
    memset(p->gradient, 0, sizeof p->gradient);
    add_prior(s, p);
    add_likelihood(s, NULL, p);
}

const em_draw first_draw = {.seed = 1};
