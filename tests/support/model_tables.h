/* The models of tables in tests: small tables, written into a folder of their own, and panels of
 * chains at which densities are evaluated. */
#ifndef TESTS_SUPPORT_MODEL_TABLES_H
#define TESTS_SUPPORT_MODEL_TABLES_H

#include "io/draws/dataset.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "support/model_setup.h"
#include "support/tap.h"

#include <check.h>
#include <math.h>
#include <unistd.h>

/* The paths of the tables: N_ROW rows of N_FEATURE features and a label, dense and sparse; one
 * feature; and what write_matrix wrote. */
extern char csv[64], libsvm[64], column[64], matrix[64];

enum { N_ROW = 150, N_FEATURE = 11, MAX_DIM = 32, MAX_STRIDE = 40, MAX_CHAIN = 19 };

/* What the tables hold: a standard normal number, feature j of row i, whether the sparse table has
 * it, and the label. */
double normal(int64_t i, int64_t j);
double feature(int64_t i, int64_t j);
bool is_there(int64_t i, int64_t j);
double label(int64_t i);

void write_matrix(const char *text);

typedef struct model_case {
    const char *name;
    setting settings[8];
    double radius; /* of the positions where it is tested */
} model_case;

/* The fixture: they make and remove the folder and its tables. */
void make_tables(void);
void remove_tables(void);

/* ---- densities of panels ---- */

setup make(const model_case *m, int64_t shard, int64_t n_shard);

typedef struct panel {
    int64_t n_chain, stride;
    double theta[MAX_CHAIN * MAX_STRIDE] __attribute__((aligned(64)));
    double gradient[MAX_CHAIN * MAX_STRIDE] __attribute__((aligned(64)));
    double log_density[MAX_CHAIN];
} panel;

panel random_panel(int64_t n_chain, int64_t dim, int64_t stride, double radius);
void add_prior(const setup *s, panel *p);

/* `rows` NULL: all. */
void add_likelihood(const setup *s, const em_rows *rows, panel *p);

void evaluate(const setup *s, panel *p);

extern const em_draw first_draw;

#endif
