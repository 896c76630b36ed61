#include "adaptation/noncentring/term_selection.h"

#include "math/linalg.h"

#include <math.h>
#include <string.h>

/* The least gain in log likelihood of a derivative by one term, beyond what chance adds. */
static const double least = 0.02;

/* A parent with this gain is chosen without a comparison with other terms. */
static const double certain = 5;

/* The largest unexplained share of a derivative that counts as explained. Rounding and the limited
 * precision of the degree leave about that much. */
static const double explained = 1e-6;

enum { CONSTANT = 0, PRECISION = 1, FIRST = 2 };

static int64_t plain(int64_t p)
{
    return FIRST + p;
}

static int64_t scaled(const em_selection *s, int64_t p)
{
    return FIRST + s->dim + p;
}

void em_selection_prepare(em_selection *s, const double *x, const double *factor, const double *sd)
{
    const int64_t n = s->n;

    for (int64_t r = 0; r < n; r++) {
        const double root = 1 / sqrt((factor[r] + 1) * (double)n);
        s->panel[CONSTANT * n + r] = root;
        s->panel[PRECISION * n + r] = root * factor[r];
        for (int64_t p = 0; p < s->dim; p++) {
            const double value = sd[p] > 0 ? root * x[p * n + r] : 0;
            s->panel[plain(p) * n + r] = value;
            s->panel[scaled(s, p) * n + r] = value * factor[r];
        }
    }
    em_gram(s->width, n, s->panel, s->gram);
}

/* ---------------------------------------------------------------- a basis in the Gram matrix */

/* A regressor, or a difference of two: regressor `of`, less regressor `less` if that is not -1. */
typedef struct combination {
    int64_t of, less;
} combination;

static double entry(const double *row, combination v)
{
    return row[v.of] - (v.less >= 0 ? row[v.less] : 0);
}

/* The squared norm of a combination after its projection on the basis has been subtracted. *before:
 * its squared norm without the subtraction. */
static double square_of(const em_selection *s, int n, combination v, double *before)
{
    const double *g = s->gram + v.of * s->width;

    *before = g[v.of];
    if (v.less >= 0)
        *before += s->gram[v.less * s->width + v.less] - 2 * g[v.less];
    double left = *before;
    for (int q = 0; q < n; q++) {
        const double along = entry(s->basis + q * (s->width + 1), v);
        left -= along * along;
    }
    return left;
}

/* The same of the derivative. */
static double square_of_y(const em_selection *s, int n)
{
    double left = s->of_y[s->width];

    for (int q = 0; q < n; q++)
        left -= pow(s->basis[q * (s->width + 1) + s->width], 2);
    return left;
}

/* Adds a combination to a basis of n: row q of s->basis holds the products of unit vector q with
 * all regressors and the derivative. Returns the new size, which is n if the combination is
 * linearly dependent. */
static int add(em_selection *s, int n, combination v)
{
    double before;
    const double square = square_of(s, n, v, &before);
    double *row = s->basis + n * (s->width + 1);

    if (!(square > 1e-9 * before))
        return n;
    for (int64_t j = 0; j < s->width; j++)
        row[j] = s->gram[v.of * s->width + j] - (v.less >= 0 ? s->gram[v.less * s->width + j] : 0);
    row[s->width] = entry(s->of_y, v);
    for (int q = 0; q < n; q++) {
        const double *other = s->basis + q * (s->width + 1), along = entry(other, v);
        for (int64_t j = 0; j <= s->width; j++)
            row[j] -= along * other[j];
    }
    for (int64_t j = 0; j <= s->width; j++)
        row[j] /= sqrt(square);
    return n + 1;
}

/* The gain in log likelihood of the derivative from a combination; negative: only with a negative
 * coefficient. */
static double gain(const em_selection *s, int n, combination v, bool negative)
{
    double before, xy = entry(s->of_y, v);
    const double square = square_of(s, n, v, &before), left = square_of_y(s, n);

    for (int q = 0; q < n; q++) {
        const double *row = s->basis + q * (s->width + 1);
        xy -= row[s->width] * entry(row, v);
    }
    if (!(square > 1e-8 * before) || !(left > 0) || (negative && !(xy < 0)))
        return 0;
    return -0.5 * log(fmax(1 - xy * xy / (square * left), 1e-12));
}

/* ---------------------------------------------------------------- selection */

static combination prior_term(const em_selection *s, int64_t i, const em_terms *terms)
{
    return (combination){scaled(s, i), terms->has_parent ? scaled(s, terms->location[0]) : -1};
}

/* Builds the basis of all terms except the last one, which is prior_term. */
static int build(em_selection *s, int64_t i, const em_terms *terms)
{
    int n = add(s, 0, (combination){CONSTANT, -1});

    n = add(s, n, (combination){plain(i), -1});
    n = add(s, n, (combination){PRECISION, -1});
    for (int j = 0; j < terms->n_plain; j++)
        n = add(s, n, (combination){plain(terms->plain[j]), -1});
    for (int j = terms->has_parent; j < terms->n; j++)
        n = add(s, n, (combination){scaled(s, terms->location[j]), -1});
    return n;
}

static bool is_in(int n, const int64_t *list, int64_t p)
{
    for (int k = 0; k < n; k++)
        if (list[k] == p)
            return true;
    return false;
}

typedef enum term_kind { NONE, PARENT, LOCATION, PLAIN } term_kind;

static void consider(double gained, term_kind of, int64_t p, double *most, term_kind *best,
                     int64_t *which)
{
    if (gained <= *most)
        return;
    *most = gained;
    *best = of;
    *which = p;
}

/* Adds the term that gains most, if that is enough. */
static bool add_term(em_selection *s, int64_t i, const bool *candidate, em_terms *terms)
{
    int n = build(s, i, terms);
    const double now = gain(s, n, prior_term(s, i, terms), true);
    double most = least + EM_GAIN_BY_CHANCE / (double)s->n;
    int64_t which = -1;
    term_kind best = NONE;

    for (int64_t p = 0; p < s->dim && terms->n == 0; p++)
        if (candidate[p])
            consider(gain(s, n, (combination){scaled(s, i), scaled(s, p)}, true) - now, PARENT, p,
                     &most, &best, &which);
    if (best == PARENT && most > certain) {
        terms->location[terms->n++] = which;
        return terms->has_parent = true;
    }
    n = add(s, n, prior_term(s, i, terms));
    if (!(square_of_y(s, n) > explained * s->of_y[s->width]))
        return false;
    for (int64_t p = 0; p < s->dim; p++) {
        if (p != i && terms->n_plain < EM_MOST_PLAIN && !is_in(terms->n_plain, terms->plain, p))
            consider(gain(s, n, (combination){plain(p), -1}, false), PLAIN, p, &most, &best,
                     &which);
        if (candidate[p] && terms->n < EM_MOST_LOCATIONS && !is_in(terms->n, terms->location, p))
            consider(gain(s, n, (combination){scaled(s, p), -1}, false), LOCATION, p, &most, &best,
                     &which);
    }
    if (best == PLAIN)
        terms->plain[terms->n_plain++] = which;
    else if (best != NONE)
        terms->location[terms->n++] = which;
    terms->has_parent = terms->has_parent || best == PARENT;
    return best != NONE;
}

/* The square of the part of derivative i that the terms do not explain. */
static double left_of(em_selection *s, int64_t i, const em_terms *terms)
{
    const int n = add(s, build(s, i, terms), prior_term(s, i, terms));

    return fmax(square_of_y(s, n), 1e-12 * s->of_y[s->width]);
}

/* Drops the locations that are no longer needed because of terms chosen after them. */
static void drop_terms(em_selection *s, int64_t i, em_terms *terms)
{
    for (int j = terms->n - 1; j >= 0; j--) {
        em_terms without = *terms;
        without.n--;
        memmove(without.location + j, without.location + j + 1,
                (size_t)(without.n - j) * sizeof *without.location);
        if (j == 0)
            without.has_parent = false;
        if (0.5 * log(left_of(s, i, &without) / left_of(s, i, terms)) <
            least + EM_GAIN_BY_CHANCE / (double)s->n)
            *terms = without;
    }
}

void em_select_terms(em_selection *s, int64_t i, const double *g, const bool *candidate,
                     em_terms *out)
{
    double *weighted = s->panel + s->width * s->n;

    for (int64_t r = 0; r < s->n; r++) /* the first row holds the roots of weights */
        weighted[r] = s->panel[CONSTANT * s->n + r] * g[r];
    em_multiply_by_rows(1, s->n, s->width + 1, weighted, s->panel, s->of_y);
    *out = (em_terms){0};
    while (add_term(s, i, candidate, out))
        continue;
    drop_terms(s, i, out);
}
