#include "support/factors.h"

const documents some_words = {{5, 3, 0, 4}, {{0, 0, 1, 2, 0}, {1, 1, 2}, {0}, {2, 2, 2, 0}}};

char corpus_folder[] = "/tmp/emass-factors-XXXXXX";
char corpus_path[64];
em_grid *grid;

void write_corpus(const documents *data)
{
    FILE *file = fopen(corpus_path, "w");

    ck_assert_ptr_nonnull(file);
    for (int d = 0; d < N_DOCUMENT; d++) {
        int count[N_WORD] = {0}, n = 0;
        for (int j = 0; j < data->n[d]; j++)
            n += count[data->word[d][j]]++ == 0;
        fprintf(file, "%d", n);
        for (int v = 0; v < N_WORD; v++)
            if (count[v] > 0)
                fprintf(file, " %d:%d", v, count[v]);
        fprintf(file, "\n");
    }
    fclose(file);
}

void laws(const target *t, const double *theta, double phi[N_TOPIC][N_WORD])
{
    for (int k = 0; k < N_TOPIC; k++) {
        double sum = 0;
        for (int v = 0; v < N_WORD; v++) {
            const double x = theta[v * N_TOPIC + k];
            sum += phi[k][v] = t->natural ? exp(x) : x;
        }
        for (int v = 0; v < N_WORD; v++)
            phi[k][v] /= sum;
    }
}

void exact_gradient(const factors *of, const target *t, const double *theta, double *gradient)
{
    const double h = 1e-5;

    for (int i = 0; i < of->dim; i++) {
        double x[MOST_DIM];
        memcpy(x, theta, (size_t)of->dim * sizeof *x);
        x[i] = theta[i] + h;
        const double up = of->log_posterior(t, x);
        x[i] = theta[i] - h;
        gradient[i] = (up - of->log_posterior(t, x)) / (2 * h);
    }
}

static em_query query_at(const double *theta, double *density, double *gradient, int evaluation)
{
    static const int64_t chain = 0;

    return (em_query){.n_chain = 1,
                      .stride = STRIDE,
                      .chain = &chain,
                      .theta = theta,
                      .log_density = density,
                      .gradient = gradient,
                      .seed = 3,
                      .evaluation = evaluation};
}

/* The largest deviation of the mean of `n` estimates from `exact`, in standard errors; those that
 * are not estimates must be equal. */
static double worst_z(const factors *of, em_posterior *posterior, int64_t minibatch,
                      const double *exact, int n)
{
    const em_minibatch batch = {minibatch, false};
    _Alignas(64) double gradient[STRIDE], x[STRIDE] = {0};
    double density, mean[MOST_DIM] = {0}, square[MOST_DIM] = {0}, worst = 0;

    memcpy(x, of->somewhere, (size_t)of->dim * sizeof *x);
    for (int e = 0; e < n; e++) {
        const em_query query = query_at(x, &density, gradient, e);
        ck_assert_int_eq(em_posterior_estimate(posterior, &batch, &query), EM_OK);
        ck_assert(isfinite(density));
        for (int i = 0; i < of->dim; i++) {
            mean[i] += gradient[i] / n;
            square[i] += gradient[i] * gradient[i] / n;
        }
    }
    for (int i = 0; i < of->dim; i++) {
        const double error = sqrt(fmax(square[i] - mean[i] * mean[i], 0) / n);
        worst = fmax(worst, fabs(mean[i] - exact[i]) / (error + 1e-6));
    }
    return worst;
}

void compare_gradients(const factors *of, bool natural, int n)
{
    const target t = {natural, 3, 4, &some_words}, twin = {natural, 3, 2, &some_words};
    double exact[MOST_DIM], wrong[MOST_DIM];
    em_posterior *posterior = NULL;
    setup s;

    write_corpus(&some_words);
    of->open(natural, "15", "5", &s);
    exact_gradient(of, &t, of->somewhere, exact);
    exact_gradient(of, &twin, of->somewhere, wrong);
    ck_assert_int_eq(em_posterior_create(s.model, grid, 1, &posterior), EM_OK);
    ck_assert_double_le(worst_z(of, posterior, 4, exact, n), BOUND);
    ck_assert_double_le(worst_z(of, posterior, 2, exact, n), BOUND);
    ck_assert_double_gt(worst_z(of, posterior, 4, wrong, n), BOUND);
    em_posterior_destroy(&posterior);
    teardown(&s);
}

void compare_blocks(const factors *of, bool natural)
{
    _Alignas(64) double theta[STRIDE] = {0}, all[STRIDE], own[STRIDE], x[STRIDE];
    const em_minibatch batch = {3, false};
    em_posterior *whole = NULL, *part = NULL;
    double density;
    setup s;

    memcpy(theta, of->somewhere, (size_t)of->dim * sizeof *theta);
    write_corpus(&some_words);
    of->open(natural, "2", "2", &s);
    ck_assert_int_eq(em_posterior_create(s.model, grid, 1, &whole), EM_OK);
    em_query query = query_at(theta, &density, all, 9);
    ck_assert_int_eq(em_posterior_estimate(whole, &batch, &query), EM_OK);
    for (int64_t b = 0; b < s.model->n_block; b++) {
        const em_parameters *block = &s.model->block[b];
        ck_assert_int_eq(em_posterior_create_part(whole, block, 1, 0, theta, &part), EM_OK);
        memset(x, 0, sizeof x);
        memcpy(x, theta + block->first, (size_t)block->count * sizeof *x);
        query = query_at(x, &density, own, 9);
        query.stride = em_stride(block->count);
        ck_assert_int_eq(em_posterior_estimate(part, &batch, &query), EM_OK);
        for (int64_t i = 0; i < block->count; i++)
            ck_assert(own[i] == all[block->first + i]);
        em_posterior_destroy(&part);
    }
    em_posterior_destroy(&whole);
    teardown(&s);
}

double gamma_variate(const em_stream *stream, uint64_t index, double shape)
{
    _Alignas(64) double x[8] = {shape};

    em_gammas(stream, 8 * index, 1, x, x);
    return x[0];
}

/* x_vj ~ Poisson(sum_k phi_vk theta_kj): a Poisson process of words, one after the other. */
static void draw_documents(const factors *of, const em_stream *stream, const double *theta,
                           double a0, double b0, documents *data)
{
    const target t = {.natural = true};
    double phi[N_TOPIC][N_WORD];

    laws(&t, theta, phi);
    for (uint64_t d = 0; d < N_DOCUMENT; d++) {
        const double a = gamma_variate(stream, 2000 + 10 * d, a0);
        const double odds = a / gamma_variate(stream, 2001 + 10 * d, b0);
        double theta_of[N_TOPIC], time = 0;
        of->draw_rates(stream, theta, odds, d, theta_of);
        const double rate = theta_of[0] + theta_of[1];
        data->n[d] = 0;
        for (uint64_t j = 0; data->n[d] < MOST; j++) {
            const uint64_t at = 100000 + 10000 * d + 4 * j;
            double u = em_uniform(stream, at + 1) * rate;
            int k = 0, v = 0;
            time -= log(em_uniform(stream, at)) / rate;
            if (!(time < 1))
                break;
            k = u > theta_of[0];
            u = em_uniform(stream, at + 2);
            while (v < N_WORD - 1 && (u -= phi[k][v]) > 0)
                v++;
            data->word[d][data->n[d]++] = v;
        }
    }
}

void move(const factors *of, const setup *s, const em_stream *stream, double *theta)
{
    enum { STEPS = 50 };
    const double eps = 1.0 / STEPS;
    const em_minibatch batch = {N_DOCUMENT, false};
    em_posterior *posterior = NULL;
    _Alignas(64) double gradient[STRIDE], z[STRIDE];
    double density;

    ck_assert_int_eq(em_posterior_create(s->model, grid, 1, &posterior), EM_OK);
    for (int e = 0; e < STEPS; e++) {
        em_query query = query_at(theta, &density, gradient, e);
        em_stream noise = *stream;
        query.seed = stream->iteration;
        noise.purpose = EM_RNG_NOISE;
        noise.chain = 1 + (uint64_t)e;
        ck_assert_int_eq(em_posterior_estimate(posterior, &batch, &query), EM_OK);
        em_normals(&noise, STRIDE, z);
        for (int i = 0; i < of->dim; i++)
            theta[i] += eps * gradient[i] + sqrt(2 * eps) * z[i];
    }
    em_posterior_destroy(&posterior);
}

static bool has_words(const documents *data)
{
    int n = 0;

    for (int d = 0; d < N_DOCUMENT; d++)
        n += data->n[d];
    return n > 0;
}

double joint_z(const factors *of, double b0, int n, uint64_t seed)
{
    double mean[2 * MOST_DIM] = {0}, square[2 * MOST_DIM] = {0}, worst = 0;
    documents *data = calloc(1, sizeof *data);

    for (int i = 0; i < n; i++) {
        const em_stream stream = {.seed = seed, .iteration = (uint64_t)i, .purpose = EM_RNG_TEST};
        _Alignas(64) double theta[STRIDE] = {0}, before[STRIDE];
        setup s;
        of->draw_parameters(&stream, theta);
        draw_documents(of, &stream, theta, 3, b0, data);
        if (!has_words(data))
            continue; /* no corpus: what is left has the law of the prior given that there are */
        write_corpus(data);
        of->open(true, "3", "4", &s);
        memcpy(before, theta, sizeof before);
        move(of, &s, &stream, theta);
        teardown(&s);
        for (int k = 0; k < of->dim; k++) {
            const double change[2] = {theta[k] - before[k], fabs(theta[k]) - fabs(before[k])};
            for (int f = 0; f < 2; f++) {
                mean[2 * k + f] += change[f] / n;
                square[2 * k + f] += change[f] * change[f] / n;
            }
        }
    }
    free(data);
    for (int k = 0; k < 2 * of->dim; k++)
        worst = fmax(worst, fabs(mean[k]) / sqrt((square[k] - mean[k] * mean[k]) / n));
    return worst;
}

static bool write_words(void)
{
    char name[64];
    FILE *file = NULL;

    if (mkdtemp(corpus_folder)) {
        snprintf(corpus_path, sizeof corpus_path, "%s/train.ldac", corpus_folder);
        snprintf(name, sizeof name, "%s/words", corpus_folder);
        file = fopen(name, "w");
    }
    return file && fputs("a\nb\nc\n", file) >= 0 && fclose(file) == 0;
}

static void clean_up(void)
{
    char name[64];

    snprintf(name, sizeof name, "%s/words", corpus_folder);
    unlink(name);
    unlink(corpus_path);
    rmdir(corpus_folder);
}

int run_factors(int *argc, char ***argv, Suite *(*suite)(void))
{
    if (em_world_start(argc, argv) || em_grid_create(1, 1, &grid) || !write_words())
        return EXIT_FAILURE;
    const int status = run_suite(suite(), CK_NOFORK);
    clean_up();
    em_grid_destroy(&grid);
    em_world_stop();
    return status;
}
