/*
 * Networks: gradients against central differences, both precisions, layers that fit and layers that
 * do not, and a chain's numbers alone. (tests/run/network.py has a reference
 * in numpy.)
 */
#include "base/memory.h"
#include "emass/model/minibatch.h"
#include "emass/model/ranges.h"
#include "math/rng.h"
#include "network/network.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/model_setup.h"
#include "support/tap.h"

enum { N = 301, SIDE = 6, N_CLASS = 3 };
static char folder[32], train[64], labels[64], dark[64], dark_labels[64], table[64];

static void write_idx(const char *path, const uint8_t *head, size_t n_head, const uint8_t *body,
                      size_t n_body)
{
    FILE *file = fopen(path, "wb");

    ck_assert_ptr_nonnull(file);
    fwrite(head, 1, n_head, file);
    fwrite(body, 1, n_body, file);
    fclose(file);
}

/* Images whose rows are brighter where the label says; the same with one pixel in four; a sine. */
static void set_up(void)
{
    static const uint8_t of_images[] = {0, 0, 8, 3,    0, 0, N >> 8, N & 255,
                                        0, 0, 0, SIDE, 0, 0, 0,      SIDE};
    static const uint8_t of_labels[] = {0, 0, 8, 1, 0, 0, N >> 8, N & 255};
    static uint8_t image[N * SIDE * SIDE], label[N], few[N * SIDE * SIDE];
    const em_stream stream = {1, 0, 0, EM_RNG_TEST};
    FILE *file;

    strcpy(folder, "/tmp/emass-network-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(train, sizeof train, "%s/a-images-idx3-ubyte", folder);
    snprintf(labels, sizeof labels, "%s/a-labels-idx1-ubyte", folder);
    snprintf(dark, sizeof dark, "%s/b-images-idx3-ubyte", folder);
    snprintf(dark_labels, sizeof dark_labels, "%s/b-labels-idx1-ubyte", folder);
    snprintf(table, sizeof table, "%s/table.csv", folder);
    for (int i = 0; i < N; i++) {
        label[i] = (uint8_t)em_uniform_below(&stream, (uint64_t)i, N_CLASS);
        for (int k = 0; k < SIDE * SIDE; k++)
            image[i * SIDE * SIDE + k] =
                (uint8_t)(em_uniform_below(&stream, (uint64_t)(N + i * SIDE * SIDE + k), 100) +
                          (k / (2 * SIDE) == label[i] ? 120 : 0));
    }
    write_idx(train, of_images, sizeof of_images, image, sizeof image);
    write_idx(labels, of_labels, sizeof of_labels, label, sizeof label);
    for (int k = 0; k < N * SIDE * SIDE; k++)
        few[k] = image[k] % 4 == 0 ? image[k] : 0;
    write_idx(dark, of_images, sizeof of_images, few, sizeof few);
    write_idx(dark_labels, of_labels, sizeof of_labels, label, sizeof label);
    file = fopen(table, "w");
    fputs("x,z,y\n", file);
    for (int i = 0; i < N; i++)
        fprintf(file, "%g,%d,%g\n", -2 + 4. * i / N, i % 7, sin(8. * i / N));
    fclose(file);
}

static void tear_down(void)
{
    unlink(train);
    unlink(labels);
    unlink(dark);
    unlink(dark_labels);
    unlink(table);
    rmdir(folder);
}

/* A panel of chains that begin where the model has them. */
typedef struct panel {
    int64_t n, stride;
    int64_t chain[4];
    double *theta, *gradient, value[4];
} panel;

static panel make_panel(const setup *s, int64_t n)
{
    panel p = {.n = n, .stride = em_stride(s->model->dim)};

    ck_assert_int_eq(em_allocate(n * p.stride, sizeof(double), &p.theta), EM_OK);
    ck_assert_int_eq(em_allocate(n * p.stride, sizeof(double), &p.gradient), EM_OK);
    for (int64_t c = 0; c < n; c++) {
        const em_draw draw = {1, 7 - c, 0, EM_DRAW_START};
        p.chain[c] = 0;
        ck_assert_int_eq(s->ops->start(s->model, &draw, p.theta + c * p.stride), EM_OK);
        for (int64_t i = s->model->dim - 8 < 0 ? 0 : s->model->dim - 8; i < s->model->dim; i++)
            p.theta[c * p.stride + i] += 0.1; /* biases and scales that are not 0 */
    }
    return p;
}

static void free_panel(panel *p)
{
    em_release(&p->theta);
    em_release(&p->gradient);
}

static void evaluate(const setup *s, panel *p, em_wanted wanted, em_rows rows)
{
    const em_query query = {.n_chain = p->n,
                            .stride = p->stride,
                            .chain = p->chain,
                            .theta = p->theta,
                            .log_density = p->value,
                            .gradient = p->gradient,
                            .wanted = wanted,
                            .rows = rows};

    memset(p->value, 0, sizeof p->value);
    memset(p->gradient, 0, (size_t)(p->n * p->stride) * sizeof(double));
    ck_assert_int_eq(s->ops->add_prior(s->model, &query), EM_OK);
    ck_assert_int_eq(s->ops->add_likelihood(s->model, &query), EM_OK);
}

static const struct {
    const char *layers, *activation, *output, *prior;
} nets[] = {
    {"[]", "relu", "softmax", "1"},
    {"[{\"dense\": 5}]", "sigmoid", "softmax", "0.5"},
    {"[{\"dense\": 7}, {\"dense\": 4, \"activation\": \"tanh\"}]", "sigmoid", "normal", "1"},
    {"[{\"dense\": 7}, {\"dense\": 6}]", "relu", "softmax", "{\"gamma\": [2, 3]}"},
    {"[{\"convolution\": 4, \"kernel\": 3}, {\"pool\": 2}, {\"dense\": 5}]", "relu", "softmax",
     "1"},
    {"[{\"convolution\": 2, \"kernel\": 3, \"padding\": \"same\"}, {\"pool\": 3}, "
     "{\"convolution\": 3, "
     "\"kernel\": 2, \"padding\": \"valid\"}]",
     "tanh", "normal", "{\"gamma\": [1, 1]}"},
    {"[{\"pool\": 2}, {\"convolution\": 3, \"kernel\": 3, \"padding\": \"same\"}, "
     "{\"convolution\": 2, "
     "\"kernel\": 1}]",
     "sigmoid", "softmax", "1"},
    {"[{\"convolution\": 1, \"kernel\": 3, \"padding\": \"same\"}, {\"pool\": 2}, {\"dense\": 5}]",
     "tanh", "softmax", "1"},
    {"[{\"dense\": 16}, {\"dense\": 16}, {\"dense\": 9}, {\"dense\": 1}]", "tanh", "softmax", "1"},
};

static void make_at(int i, const char *precision, const char *temperature, setup *s)
{
    const setting settings[] = {{"data", train},
                                {"test", train},
                                {"layers", nets[i].layers},
                                {"activation", nets[i].activation},
                                {"output", nets[i].output},
                                {"prior_scale", nets[i].prior},
                                {"precision", precision},
                                {"temperature", temperature},
                                {NULL, NULL}};

    ck_assert_msg(try_setup("network", settings, 0, 1, s) == EM_OK, "%s", em_error_text());
}

static void make(int i, const char *precision, setup *s)
{
    make_at(i, precision, "1", s);
}

START_TEST(gradients_are_those_of_the_density)
{
    const double h = 1e-6;
    setup s;

    make(_i, "double", &s);
    panel p = make_panel(&s, 1), moved = make_panel(&s, 1);
    const em_rows rows = all_rows(s.model);
    evaluate(&s, &p, EM_WANT_BOTH, rows);
    for (int64_t i = 0; i < s.model->dim; i++) {
        double up, down;
        memcpy(moved.theta, p.theta, (size_t)p.stride * sizeof(double));
        moved.theta[i] = p.theta[i] + h;
        evaluate(&s, &moved, EM_WANT_LOG_DENSITY, rows);
        up = moved.value[0];
        moved.theta[i] = p.theta[i] - h;
        evaluate(&s, &moved, EM_WANT_LOG_DENSITY, rows);
        down = moved.value[0];
        const double numeric = (up - down) / (2 * h);
        /* A ReLU that turns within h, one of N observations, errs by a share of h. */
        ck_assert_msg(fabs(numeric - p.gradient[i]) < 2e-5 * (1 + fabs(numeric)),
                      "net %d, %s, parameter %ld: %g, expected %g", _i, nets[_i].layers, (long)i,
                      p.gradient[i], numeric);
    }
    free_panel(&p);
    free_panel(&moved);
    teardown(&s);
}
END_TEST

/* |a - b| / |a| */
static double distance(int64_t n, const double *a, const double *b)
{
    double error = 0, size = 0;

    for (int64_t i = 0; i < n; i++) {
        error += (a[i] - b[i]) * (a[i] - b[i]);
        size += a[i] * a[i];
    }
    return sqrt(error / size);
}

START_TEST(single_precision_is_near)
{
    setup wide, narrow;

    make(_i, "double", &wide);
    make(_i, "single", &narrow);
    panel p = make_panel(&wide, 1), q = make_panel(&narrow, 1);
    evaluate(&wide, &p, EM_WANT_BOTH, all_rows(wide.model));
    evaluate(&narrow, &q, EM_WANT_BOTH, all_rows(narrow.model));
    const double error = distance(wide.model->dim, p.gradient, q.gradient);
    ck_assert_double_lt(error, 1e-4);
    ck_assert_double_gt(error, 0); /* it is another one */
    ck_assert_double_lt(fabs(p.value[0] - q.value[0]), 1e-5 * fabs(p.value[0]));
    free_panel(&p);
    free_panel(&q);
    teardown(&wide);
    teardown(&narrow);
}
END_TEST

/* Products that leave out the pixels that are 0 against those of all: of one line of columns, of
 * several, and of more than are taken at a time, for all observations and for few. */
START_TEST(pixels_that_are_0_are_left_out)
{
    static const char *const layers[] = {"[]", "[{\"dense\": 45}, {\"dense\": 6}]",
                                         "[{\"dense\": 131}]"};
    static const int64_t index[] = {5, 250, 17, 17, 299, 0, 64, 8, 9};
    const em_rows listed = {.count = sizeof index / sizeof *index, .index = index};
    const bool single = _i % 2;
    const setting settings[] = {{"data", dark},
                                {"layers", layers[_i / 2]},
                                {"precision", single ? "single" : "double"},
                                {NULL, NULL}};
    setup s;

    ck_assert_msg(try_setup("network", settings, 0, 1, &s) == EM_OK, "%s", em_error_text());
    em_network *network = (em_network *)s.model;
    panel p = make_panel(&s, 1), q = make_panel(&s, 1);
    for (int few = 0; few < 2; few++) {
        const em_rows rows = few ? listed : all_rows(s.model);
        network->train_inputs.sparse = true;
        evaluate(&s, &p, EM_WANT_BOTH, rows);
        network->train_inputs.sparse = false;
        evaluate(&s, &q, EM_WANT_BOTH, rows);
        ck_assert_double_lt(distance(s.model->dim, p.gradient, q.gradient), single ? 2e-6 : 1e-13);
        ck_assert_double_lt(fabs(p.value[0] - q.value[0]),
                            (single ? 1e-6 : 1e-13) * fabs(q.value[0]));
    }
    free_panel(&p);
    free_panel(&q);
    teardown(&s);
}
END_TEST

/* As the data are. */
START_TEST(few_pixels_are_noticed)
{
    const setting settings[] = {{"data", dark}, {"test", train}, {"layers", "[]"}, {NULL, NULL}};
    setup s;

    ck_assert_msg(try_setup("network", settings, 0, 1, &s) == EM_OK, "%s", em_error_text());
    const em_network *network = (const em_network *)s.model;
    ck_assert(network->train_inputs.sparse);
    ck_assert(!network->test_inputs.sparse);
    teardown(&s);
}
END_TEST

/* Nor on the rows that come before. */
START_TEST(a_chain_does_not_depend_on_its_companions)
{
    static const int64_t index[] = {5, 250, 17, 17, 299, 0, 64};
    const em_rows listed = {.count = sizeof index / sizeof *index, .index = index};
    setup s;

    make(_i, "single", &s);
    panel all = make_panel(&s, 4), one = make_panel(&s, 1);
    evaluate(&s, &all, EM_WANT_BOTH, all_rows(s.model));
    evaluate(&s, &all, EM_WANT_BOTH, listed);
    for (int64_t c = 0; c < all.n; c++) {
        memcpy(one.theta, all.theta + c * all.stride, (size_t)all.stride * sizeof(double));
        evaluate(&s, &one, EM_WANT_BOTH, listed);
        ck_assert_double_eq(one.value[0], all.value[c]);
        ck_assert_mem_eq(one.gradient, all.gradient + c * all.stride,
                         (size_t)s.model->dim * sizeof(double));
    }
    free_panel(&all);
    free_panel(&one);
    teardown(&s);
}
END_TEST

/* Prior and likelihood of a chain, or what a minibatch tells of them, in theta. */
static void take_parts(const setup *s, panel *p, double value[2], double *prior, double *likelihood)
{
    const em_query query = {.n_chain = 1,
                            .stride = p->stride,
                            .chain = p->chain,
                            .theta = p->theta,
                            .log_density = &value[0],
                            .gradient = prior,
                            .wanted = EM_WANT_BOTH,
                            .rows = all_rows(s->model)};
    em_query of_data = query;

    of_data.log_density = &value[1];
    of_data.gradient = likelihood;
    value[0] = value[1] = 0;
    memset(prior, 0, (size_t)p->stride * sizeof(double));
    memset(likelihood, 0, (size_t)p->stride * sizeof(double));
    ck_assert_int_eq(s->ops->add_prior(s->model, &query), EM_OK);
    ck_assert_int_eq(s->ops->add_likelihood(s->model, &of_data), EM_OK);
}

/* By a power of 2 not a bit is lost. What is predicted stays. */
START_TEST(a_cold_likelihood_counts_for_more)
{
    double warm[2], cold[2], estimate = 0;
    double *gradient[4];
    setup one, quarter;

    make(_i, "double", &one);
    make_at(_i, "double", "0.25", &quarter);
    panel p = make_panel(&one, 1);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(em_allocate(p.stride, sizeof(double), &gradient[i]), EM_OK);
    take_parts(&one, &p, warm, gradient[0], gradient[1]);
    take_parts(&quarter, &p, cold, gradient[2], gradient[3]);
    ck_assert_double_eq(cold[0], warm[0]);
    ck_assert_double_eq(cold[1], 4 * warm[1]);
    for (int64_t i = 0; i < one.model->dim; i++) {
        ck_assert_double_eq(gradient[2][i], gradient[0][i]);
        ck_assert_double_eq(gradient[3][i], 4 * gradient[1][i]);
    }
    const em_query query = {.n_chain = 1,
                            .stride = p.stride,
                            .chain = p.chain,
                            .theta = p.theta,
                            .log_density = &estimate,
                            .gradient = p.gradient,
                            .wanted = EM_WANT_BOTH,
                            .rows = all_rows(quarter.model)};
    ck_assert_int_eq(quarter.ops->minibatch->estimate(quarter.model, &query, 1, true), EM_OK);
    ck_assert_double_eq_tol(estimate, cold[0] + cold[1], 1e-12 * fabs(estimate));
    for (int64_t i = 0; i < one.model->dim; i++)
        gradient[0][i] += gradient[3][i];
    ck_assert_double_lt(distance(one.model->dim, gradient[0], p.gradient), 1e-12);
    for (int i = 0; i < 4; i++)
        em_release(&gradient[i]);
    free_panel(&p);
    teardown(&one);
    teardown(&quarter);
}
END_TEST

/* Of three shards the first has the prior and some rows, the second none, the third the rest. */
START_TEST(shards_share_an_estimate)
{
    static const int64_t index[] = {5, 250, 17, 17, 299, 0, 64};
    enum { ROWS = sizeof index / sizeof *index, HERE = 3 };
    const em_rows rows[] = {{.count = ROWS, .index = index},
                            {.count = HERE, .index = index},
                            {.count = 0, .index = index},
                            {.count = ROWS - HERE, .index = index + HERE}};
    double value[4], *gradient[4];
    setup s;

    make(_i, "double", &s);
    panel p = make_panel(&s, 1);
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(em_allocate(p.stride, sizeof(double), &gradient[k]), EM_OK);
        const em_query query = {.n_chain = 1,
                                .stride = p.stride,
                                .chain = p.chain,
                                .theta = p.theta,
                                .log_density = &value[k],
                                .gradient = gradient[k],
                                .wanted = EM_WANT_BOTH,
                                .rows = rows[k]};
        ck_assert_int_eq(s.ops->minibatch->estimate(s.model, &query, 10, k <= 1), EM_OK);
    }
    ck_assert_double_eq(value[2], 0);
    ck_assert_double_eq_tol(value[0], value[1] + value[3], 1e-12 * fabs(value[0]));
    for (int64_t i = 0; i < p.stride; i++) {
        ck_assert_double_eq(gradient[2][i], 0);
        gradient[1][i] += gradient[3][i];
    }
    ck_assert_double_lt(distance(s.model->dim, gradient[0], gradient[1]), 1e-12);
    for (int k = 0; k < 4; k++)
        em_release(&gradient[k]);
    free_panel(&p);
    teardown(&s);
}
END_TEST

/* The gradient of an estimate by ranges of 1, 2, 4 ... parameters; after each range the parameters
 * of the next estimate are published. */
static void make_ranges(const setup *s, const em_query *query, bool published, const double *next,
                        double *gradient)
{
    const em_model_ranges *ranges = s->ops->ranges;
    int64_t n;

    ck_assert_int_eq(ranges->estimate(s->model, query, 10, published), EM_OK);
    for (int64_t first = 0, most = 1; first < s->model->dim; first += n, most *= 2) {
        n = s->model->dim - first < most ? s->model->dim - first : most;
        ranges->gradient(s->model, first, n, query->theta + first, gradient + first);
        ranges->publish(s->model, first, n, next + first);
    }
}

static void check_ranges(const char *precision, int net)
{
    static const int64_t index[] = {5, 250, 17, 17, 299, 0, 64};
    const em_rows rows = {.count = sizeof index / sizeof *index, .index = index};
    setup s;

    make(net, precision, &s);
    panel whole = make_panel(&s, 2), made = make_panel(&s, 2);
    const int64_t dim = s.model->dim, stride = whole.stride;
    double *there = whole.theta + stride;
    em_query query = {.n_chain = 1, .stride = stride, .chain = whole.chain, .rows = rows};

    for (int c = 0; c < 2; c++) {
        query.theta = whole.theta + c * stride;
        query.log_density = &whole.value[c];
        query.gradient = whole.gradient + c * stride;
        ck_assert_int_eq(s.ops->minibatch->estimate(s.model, &query, 10, true), EM_OK);
    }
    query.log_density = made.value;
    query.gradient = made.gradient; /* where an estimate writes what is no weight */
    query.theta = whole.theta;
    make_ranges(&s, &query, false, there, made.gradient);
    ck_assert_mem_eq(made.gradient, whole.gradient, (size_t)dim * sizeof(double));
    ck_assert_double_eq(made.value[0], whole.value[0]);
    query.theta = there;
    query.wanted = EM_WANT_GRADIENT;
    make_ranges(&s, &query, true, whole.theta, made.gradient);
    ck_assert_mem_eq(made.gradient, whole.gradient + stride, (size_t)dim * sizeof(double));
    make_ranges(&s, &query, true, there,
                made.gradient); /* published was the first place, not this one */
    ck_assert_mem_ne(made.gradient, whole.gradient + stride, (size_t)dim * sizeof(double));
    free_panel(&whole);
    free_panel(&made);
    teardown(&s);
}

START_TEST(slopes_are_the_gradient)
{
    check_ranges("double", _i);
    check_ranges("single", _i);
}
END_TEST

/* Rows of two shards, and of the second none: each shard leaves its part, and the gradient by
 * ranges is the sum of what their own would be. The parameters of the next estimate are published.
 */
static void check_parts(setup *s, panel *p, int64_t n_second, const double *theta, bool published,
                        const double *next, const em_range_parts *memory)
{
    static const int64_t index[] = {5, 250, 17, 17, 299, 0, 64};
    const em_model_ranges *ranges = s->ops->ranges;
    const int64_t dim = s->model->dim;
    em_query query = {.n_chain = 1, .stride = p->stride, .chain = p->chain, .theta = theta};
    double value[2];

    for (int shard = 0; shard < 2; shard++) {
        em_range_parts parts = *memory;
        parts.shard = shard;
        query.rows = (em_rows){.count = shard ? n_second : 4, .index = index + (shard ? 4 : 0)};
        query.log_density = &p->value[shard];
        query.gradient = p->gradient + shard * p->stride;
        ck_assert_int_eq(s->ops->minibatch->estimate(s->model, &query, 10, shard == 0), EM_OK);
        query.log_density = &value[shard];
        query.gradient = parts.part + shard * parts.room;
        ck_assert_int_eq(ranges->estimate_part(s->model, &query, 10, published, &parts), EM_OK);
        ck_assert_double_eq(value[shard], p->value[shard]);
    }
    for (int64_t first = 0, n = 1; first < dim; first += n, n *= 2) {
        double found[256];
        n = dim - first < n ? dim - first : n;
        n = n < 256 ? n : 256;
        ranges->gradient_of_parts(s->model, first, n, theta + first, memory, found);
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_eq(found[i],
                                p->gradient[first + i] + p->gradient[p->stride + first + i]);
        ranges->publish_part(s->model, first, n, next + first, memory);
    }
}

START_TEST(parts_of_shards_are_the_gradient)
{
    setup s;

    make(_i, "single", &s);
    panel p = make_panel(&s, 2);
    const double *there = p.theta + p.stride;
    em_range_parts memory = {.n_shard = 2, .room = p.stride + 8};
    ck_assert_int_eq(em_allocate_doubles(2 * memory.room, &memory.part), EM_OK);
    ck_assert_int_eq(em_allocate(memory.room + 16, sizeof(float), &memory.published), EM_OK);
    check_parts(&s, &p, 3, p.theta, false, there, &memory);
    check_parts(&s, &p, 3, there, true, p.theta, &memory);
    check_parts(&s, &p, 0, p.theta, true, there, &memory); /* a shard without a row */
    em_release_all(&memory.part, &memory.published);
    free_panel(&p);
    teardown(&s);
}
END_TEST

static const struct {
    const char *layers, *why;
} unfit[] = {
    {"[{\"dense\": 0}]", "model.layers[0]: found dense: 0, "},
    {"[{\"dense\": 1.5}]", "an integer"},
    {"[{\"dense\": 5}, {\"pool\": 2}]", "model.layers[1]: found numbers without rows"},
    {"[{\"convolution\": 4, \"kernel\": 3}, {\"pool\": 3}]",
     "model.layers[1]: found a pool of 3 on 4 x 4 pixels"},
    {"[{\"convolution\": 4, \"kernel\": 7}]", "found a kernel of 7 on 6 x 6 pixels"},
    {"[{\"convolution\": 4}]", "a convolution without kernel"},
    {"[{\"convolution\": 4, \"kernel\": 4, \"padding\": \"same\"}]", "even kernel"},
    {"[{\"convolution\": 4, \"kernel\": 3, \"padding\": \"full\"}]", "padding valid or same"},
    {"[{\"dense\": 4, \"kernel\": 3}]", "only for a convolution"},
    {"[{\"dense\": 4, \"pool\": 3}]", "several of them"},
    {"[{}]", "none of them"},
    {"[{\"dens\": 4}]", "did you mean dense?"},
    {"[{\"dense\": 4, \"activation\": \"selu\"}]", "activation relu, sigmoid or tanh"},
    {"[{\"dense\": 4, \"dense\": 5}]", "found duplicate object key"},
    {"[4]", "a mapping"},
    {"{\"dense\": 4}", "a list of layers"},
    {"[{\"dense\": 1000000}, {\"dense\": 1000000}]", "more than 2^31"},
};

START_TEST(layers_that_do_not_fit)
{
    const setting settings[] = {{"data", train}, {"layers", unfit[_i].layers}, {NULL, NULL}};
    setup s;

    ck_assert_int_eq(try_setup("network", settings, 0, 1, &s), EM_ECONFIG);
    ck_assert_msg(strstr(em_error_text(), unfit[_i].why), "%s", em_error_text());
    teardown(&s);
}
END_TEST

START_TEST(tables_are_read_too)
{
    const setting settings[] = {{"data", table},
                                {"test", table},
                                {"output", "normal"},
                                {"layers", "[{\"dense\": 3}]"},
                                {"standardise", "true"},
                                {"response", "z"},
                                {NULL, NULL}};
    setup s;

    ck_assert_msg(try_setup("network", settings, 0, 1, &s) == EM_OK, "%s", em_error_text());
    const em_network *net = (const em_network *)s.model;
    ck_assert_int_eq(net->train->n_input, 2);
    ck_assert_int_eq(s.model->dim, 2 * 3 + 3 + 3 + 1 + 1);
    ck_assert_double_eq(em_examples_response(net->train, 8), 1);
    ck_assert_double_eq_tol(net->centre[0], -2 + 4. * (N - 1) / 2 / N, 1e-5);
    teardown(&s);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("network");
    const int n_net = (int)(sizeof nets / sizeof *nets);

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, gradients_are_those_of_the_density, 0, n_net);
    tcase_add_loop_test(tests, single_precision_is_near, 0, n_net);
    tcase_add_loop_test(tests, pixels_that_are_0_are_left_out, 0, 6);
    tcase_add_test(tests, few_pixels_are_noticed);
    tcase_add_loop_test(tests, a_chain_does_not_depend_on_its_companions, 0, n_net);
    tcase_add_loop_test(tests, a_cold_likelihood_counts_for_more, 0, n_net);
    tcase_add_loop_test(tests, shards_share_an_estimate, 0, n_net);
    tcase_add_loop_test(tests, slopes_are_the_gradient, 0, n_net);
    tcase_add_loop_test(tests, parts_of_shards_are_the_gradient, 0, n_net);
    tcase_add_loop_test(tests, layers_that_do_not_fit, 0, (int)(sizeof unfit / sizeof *unfit));
    tcase_add_test(tests, tables_are_read_too);
    return run_case(tests, CK_FORK);
}
