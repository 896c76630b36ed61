/*
 * Speed of the math room, one JSON line per figure. `ratio` is how many times faster than the
 * baseline that the name states; each time is the median of REPETITIONS.
 */
#include "bench.h"

#include "base/memory.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "math/simd/panel.h"
#include "math/simd/vector.h"

#include <cblas.h>

enum { REPETITIONS = 15, N_VECTOR = 100000, DIM = 200, N_ROW = 32561, N_COLUMN = 124, CHAINS = 8 };

static const em_stream stream = {.seed = 1, .purpose = EM_RNG_TEST};

/* Median seconds of one call of `work`. */
static double seconds(void (*work)(void *), void *argument, int calls)
{
    double time[REPETITIONS];

    for (int r = 0; r < REPETITIONS; r++) {
        const double start = seconds_now();
        for (int k = 0; k < calls; k++)
            work(argument);
        time[r] = (seconds_now() - start) / calls;
    }
    return median_of(REPETITIONS, time);
}

static double *doubles(int64_t n)
{
    double *out;

    require(em_allocate_doubles(em_stride(n), &out));
    em_normals(&stream, n, out);
    return out;
}

/* ---- Vectors of N_VECTOR elements ---- */

typedef struct vectors {
    double *in, *out, *out2;
} vectors;

static void our_normals(void *argument)
{
    em_normals(&stream, N_VECTOR, ((vectors *)argument)->out);
}

static void plain_normals(void *argument)
{
    double *out = ((vectors *)argument)->out;

    for (uint64_t i = 0; i < N_VECTOR; i += 2) {
        const double radius = sqrt(-2 * log(em_uniform(&stream, i)));
        const double angle = 2 * M_PI * em_uniform(&stream, i + 1);
        out[i] = radius * cos(angle);
        out[i + 1] = radius * sin(angle);
    }
}

static void our_logistic(void *argument)
{
    const vectors *v = argument;
    em_logistic(N_VECTOR, v->in, v->out, v->out2);
}

static void plain_logistic(void *argument)
{
    const vectors *v = argument;

    for (int i = 0; i < N_VECTOR; i++) {
        const double e = exp(-fabs(v->in[i]));
        v->out[i] = fmax(v->in[i], 0) + log1p(e);
        v->out2[i] = (v->in[i] < 0 ? e : 1) / (1 + e);
    }
}

static void bench_vectors(void)
{
    vectors v = {doubles(N_VECTOR), doubles(N_VECTOR), doubles(N_VECTOR)};
    double ours = seconds(our_normals, &v, 5), plain = seconds(plain_normals, &v, 1);

    print_figure("normals (against libm)", N_VECTOR / ours, "1/s", plain / ours);
    ours = seconds(our_logistic, &v, 5);
    plain = seconds(plain_logistic, &v, 1);
    print_figure("logistic (against libm)", N_VECTOR / ours, "1/s", plain / ours);
    em_release(&v.in);
    em_release(&v.out);
    em_release(&v.out2);
}

/* ---- A panel of chains times a square matrix ---- */

typedef struct panel {
    int n_chain, dim, stride;
    double *A, *B, *C;
} panel;

static void our_product(void *argument)
{
    const panel *p = argument;
    em_panel_product(p->n_chain, p->dim, p->dim, p->A, p->stride, p->B, p->stride, p->C, p->stride);
}

static void blas_product(void *argument)
{
    const panel *p = argument;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p->n_chain, p->dim, p->dim, 1, p->A,
                p->stride, p->B, p->stride, 0, p->C, p->stride);
}

static void blas_vector_product(void *argument)
{
    const panel *p = argument;
    cblas_dgemv(CblasRowMajor, CblasTrans, p->dim, p->dim, 1, p->B, p->stride, p->A, 1, 0, p->C, 1);
}

static void bench_panel(int n_chain, int dim)
{
    const int stride = (int)em_stride(dim);
    panel p = {n_chain, dim, stride, .B = doubles((int64_t)dim * stride)};
    const int calls = 1 + 40000000 / (n_chain * dim * dim * 20);
    double ours, blas;
    char name[80];

    p.A = doubles((int64_t)n_chain * stride);
    p.C = doubles((int64_t)n_chain * stride);
    ours = seconds(our_product, &p, calls);
    blas = seconds(n_chain == 1 ? blas_vector_product : blas_product, &p, calls);
    snprintf(name, sizeof name, "panel product %d x %d (against %s)", n_chain, dim,
             n_chain == 1 ? "dgemv" : "dgemm");
    print_figure(name, 2e-9 * n_chain * dim * dim / ours, "GFLOP/s", blas / ours);
    em_release(&p.A);
    em_release(&p.B);
    em_release(&p.C);
}

/* ---- Both products of a logistic regression the size of Adult: X theta and X^T r ---- */

typedef struct regression {
    em_tiled x;
    int n_chain;
    double *theta, *eta, *partial, *gradient;
} regression;

static void our_regression(void *argument)
{
    const regression *g = argument;

    for (int64_t t = 0; t < g->x.n_tile; t++) {
        em_tile_predict(&g->x, t, g->n_chain, N_COLUMN, g->theta, g->eta);
        em_tile_accumulate(&g->x, t, g->n_chain, g->eta, g->partial);
    }
    em_tile_finish(g->n_chain, N_COLUMN, g->partial, em_stride(N_COLUMN), g->gradient);
}

/* The same numbers through BLAS, the design matrix stored by rows. */
static void blas_regression(void *argument)
{
    const regression *g = argument;
    const int n = (int)g->x.n_tile * EM_TILE_ROWS, m = g->n_chain;

    if (m == 1) {
        cblas_dgemv(CblasRowMajor, CblasNoTrans, n, N_COLUMN, 1, g->x.tile, N_COLUMN, g->theta, 1,
                    0, g->eta, 1);
        cblas_dgemv(CblasRowMajor, CblasTrans, n, N_COLUMN, 1, g->x.tile, N_COLUMN, g->eta, 1, 0,
                    g->gradient, 1);
    } else {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, N_COLUMN, 1, g->theta, N_COLUMN,
                    g->x.tile, N_COLUMN, 0, g->eta, n);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, N_COLUMN, n, 1, g->eta, n,
                    g->x.tile, N_COLUMN, 0, g->gradient, N_COLUMN);
    }
}

static void bench_regression(void)
{
    const int64_t n_tile = (N_ROW + EM_TILE_ROWS - 1) / EM_TILE_ROWS;
    regression g = {.x = {N_ROW, N_COLUMN, n_tile, doubles(n_tile * N_COLUMN * EM_TILE_ROWS)},
                    .theta = doubles(CHAINS * N_COLUMN),
                    .eta = doubles(CHAINS * n_tile * EM_TILE_ROWS),
                    .partial = doubles(CHAINS * N_COLUMN * EM_LANES),
                    .gradient = doubles(CHAINS * em_stride(N_COLUMN))};
    const double flops = 4.0 * N_ROW * N_COLUMN, bytes = 8.0 * N_ROW * N_COLUMN;
    double one, eight;

    g.n_chain = 1;
    one = seconds(our_regression, &g, 3);
    print_figure("regression, 1 chain (against dgemv)", flops / one * 1e-9, "GFLOP/s",
                 seconds(blas_regression, &g, 1) / one);
    print_figure("regression, 1 chain: design matrix read", bytes / one * 1e-9, "GB/s", NAN);
    g.n_chain = CHAINS;
    eight = seconds(our_regression, &g, 3);
    print_figure("regression, 8 chains (against dgemm)", CHAINS * flops / eight * 1e-9, "GFLOP/s",
                 seconds(blas_regression, &g, 1) / eight);
    print_figure("regression, 8 chains: time of a chain (against 1 chain)", eight / CHAINS * 1e3,
                 "ms", CHAINS * one / eight);
    em_release(&g.x.tile);
    em_release(&g.theta);
    em_release(&g.eta);
    em_release(&g.partial);
    em_release(&g.gradient);
}

int main(void)
{
    em_linalg_use_threads(1);
    bench_vectors();
    bench_panel(1, 10);
    bench_panel(1, DIM);
    bench_panel(CHAINS, DIM);
    bench_regression();
    return 0;
}
