/*
 * What the tests of Poisson factor analysis, deep or not, have in common: a corpus of three words
 * in a folder of its own, derivatives of the marginal likelihood, against which estimates of
 * gradients are compared, and Geweke's joint test.
 */
#ifndef TESTS_SUPPORT_FACTORS_H
#define TESTS_SUPPORT_FACTORS_H

#include "math/rng.h"
#include "par/world.h"
#include "support/model_setup.h"
#include "support/tap.h"

#include <check.h>
#include <math.h>
#include <unistd.h>

enum { N_WORD = 3, N_TOPIC = 2, N_PHI = N_WORD * N_TOPIC, N_DOCUMENT = 4, MOST = 400 };
enum { MOST_DIM = 16, STRIDE = 16 };

/* Largest of some dozens of deviations in standard errors: beyond it by chance once in 1e4. */
#define BOUND 5.0

typedef struct documents {
    int n[N_DOCUMENT];
    int word[N_DOCUMENT][MOST];
} documents;

extern const documents some_words;

/* The folder of a program and its corpus; run_factors makes them. */
extern char corpus_folder[], corpus_path[64];
extern em_grid *grid;

/* Into `corpus_path`. */
void write_corpus(const documents *data);

/* ---------------------------------------------------------------- the model */

typedef struct target {
    bool natural;
    double a0, b0;
    const documents *data;
} target;

typedef struct factors {
    int dim;
    const double *somewhere;                                                     /* [dim] */
    void (*open)(bool natural, const char *discard, const char *keep, setup *s); /* a0 3, b0 4 */
    double (*log_posterior)(const target *t, const double *theta);   /* up to a constant */
    void (*draw_parameters)(const em_stream *stream, double *theta); /* from the prior */
    /* theta_kd of document d, where odds are p / (1 - p) */
    void (*draw_rates)(const em_stream *stream, const double *theta, double odds, uint64_t d,
                       double rate[N_TOPIC]);
} factors;

/* The laws of words that the parameters say, a topic each. */
void laws(const target *t, const double *theta, double phi[N_TOPIC][N_WORD]);

/* ---------------------------------------------------------------- gradients */

void exact_gradient(const factors *of, const target *t, const double *theta, double *gradient);

/* `twin`: with another prior of documents. */
void compare_gradients(const factors *of, bool natural, int n);

/* A block that moves alone is told of its own gradient as all of them together are. */
void compare_blocks(const factors *of, bool natural);

/* ---------------------------------------------------------------- the joint test */

double gamma_variate(const em_stream *stream, uint64_t index, double shape);

/* theta <- theta + eps g + N(0, 2 eps), for a time of 1 */
void move(const factors *of, const setup *s, const em_stream *stream, double *theta);

/* The largest deviation from zero of the mean change of a parameter or of its distance from the
 * prior's middle, in standard errors. */
double joint_z(const factors *of, double b0, int n, uint64_t seed);

/* ---------------------------------------------------------------- the program */

/* The main of a program of this kind. */
int run_factors(int *argc, char ***argv, Suite *(*suite)(void));

#endif
