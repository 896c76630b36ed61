#include "model/external/parameters.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static em_status fail(const char *name, const char *found, const char *expected)
{
    return em_fail(EM_ECONFIG, "model.parameters%s%s: found %s, expected %s", *name ? "." : "",
                   name, em_excerpt_of(found).text, expected);
}

/* ---------------------------------------------------------------- one parameter */

/* Reads the numbers of a distribution, which may be one number or a list. */
static em_status read_numbers(const char *name, const char *key, const json_t *value, size_t n,
                              double *out)
{
    const size_t found = json_is_array(value) ? json_array_size(value) : 1;
    char expected[160];
    bool good = found == n;

    for (size_t i = 0; good && i < n; i++)
        good = em_json_finite(json_is_array(value) ? json_array_get(value, i) : value, &out[i]);
    snprintf(expected, sizeof expected, "%s: %s%zu finite number%s%s", key, n > 1 ? "[" : "", n,
             n > 1 ? "s" : "", n > 1 ? "]" : "");
    return good ? EM_OK : fail(name, key, expected);
}

static em_status read_prior(const char *name, const char *key, const json_t *value, em_input *out)
{
    const em_prior_law *law = NULL;
    char expected[256] = "a distribution (";
    double x[3] = {0};

    for (int kind = EM_PRIOR_DEFAULT + 1; kind < EM_N_PRIOR; kind++) {
        em_append(sizeof expected, expected, "%s, ", em_prior_laws[kind].name);
        if (strcmp(em_prior_laws[kind].name, key) == 0) {
            law = &em_prior_laws[kind];
            out->prior = (em_prior){.kind = (em_prior_kind)kind, .df = 1};
        }
    }
    em_append(sizeof expected, expected, "uniform), lower, upper or size");
    if (!law)
        return fail(name, key, expected);
    em_status status = read_numbers(name, key, value, strlen(law->numbers), x);
    for (size_t i = 0; !status && law->numbers[i]; i++) {
        const char letter = law->numbers[i];
        if (letter != 'l' && !(x[i] >= 1e-300 && x[i] <= 1e300))
            return fail(name, key, "a scale, rate or shape above 0");
        *em_prior_number(&out->prior, letter) = x[i];
    }
    if (!status && law->positive)
        out->bounds = (em_bounds)EM_ABOVE(0);
    return status;
}

static em_status read_uniform(const char *name, const json_t *value, em_input *out)
{
    double x[2];
    const em_status status = read_numbers(name, "uniform", value, 2, x);

    if (status)
        return status;
    if (!(x[0] < x[1]))
        return fail(name, "uniform", "its lower end below its upper one");
    out->uniform = true;
    out->bounds = (em_bounds)EM_WITHIN(x[0], x[1]);
    return EM_OK;
}

static em_status read_bound(const char *name, const char *key, const json_t *value, em_bounds *out)
{
    const bool lower = strcmp(key, "lower") == 0;
    const em_status status = read_numbers(name, key, value, 1, lower ? &out->lower : &out->upper);

    out->constraint = out->constraint == EM_FREE ? (lower ? EM_LOWER : EM_UPPER) : EM_BETWEEN;
    return status;
}

static em_status read_size(const char *name, const json_t *value, em_input *out)
{
    double size = 0;

    if (!em_json_finite(value, &size) || size != floor(size) || size < 1 || size > 1e6)
        return fail(name, "size", "a whole number from 1 to 1000000");
    out->size = (int64_t)size;
    out->scalar = false;
    return EM_OK;
}

static em_status read_input(const char *name, json_t *options, em_input *out)
{
    const char *key;
    json_t *value;
    int n_law = 0, n_bound = 0;
    em_status status = em_copy_text(name, &out->name);

    out->size = 1;
    out->scalar = true;
    if (!status && !json_is_object(options))
        return fail(name, "no mapping", "one, as {normal: [0, 1]}, or {} for a flat prior");
    json_object_foreach(options, key, value)
    {
        const bool bound = strcmp(key, "lower") == 0 || strcmp(key, "upper") == 0;
        const bool size = strcmp(key, "size") == 0;
        n_bound += bound;
        n_law += !bound && !size;
        if (status)
            break;
        status = size                          ? read_size(name, value, out)
                 : bound                       ? read_bound(name, key, value, &out->bounds)
                 : strcmp(key, "uniform") == 0 ? read_uniform(name, value, out)
                                               : read_prior(name, key, value, out);
    }
    if (!status && (n_law > 1 || (n_law && n_bound)))
        return fail(name, "a prior and more", "one distribution, or bounds of a flat prior");
    if (!status && out->bounds.constraint == EM_BETWEEN && !(out->bounds.lower < out->bounds.upper))
        return fail(name, "upper", "an upper bound above the lower one");
    return status;
}

/* ---------------------------------------------------------------- all parameters */

em_status em_inputs_read(const char *json, int64_t *n, em_input **out)
{
    em_excerpt why;
    json_auto_t *all = em_json_load(json, &why);
    const char *name;
    json_t *options;
    em_status status = EM_OK;

    *n = 0;
    *out = NULL;
    if (!json_is_object(all) || json_object_size(all) == 0)
        status = fail("", all ? json : why.text,
                      "a mapping of names, as {alpha: {normal: [0, 1]}, beta: {}}");
    else
        status = em_allocate((int64_t)json_object_size(all), sizeof **out, out);
    if (!status)
        json_object_foreach(all, name, options)
        {
            status = status ? status : read_input(name, options, &(*out)[(*n)++]);
        }
    return status;
}

em_status em_inputs_of_sizes(int64_t n, const int64_t *size, em_input **out)
{
    em_status status = em_allocate(n, sizeof **out, out);

    for (int64_t i = 0; !status && i < n; i++) {
        (*out)[i] = (em_input){.size = size[i]};
        status = n == 1 ? em_copy_text("theta", &(*out)[i].name)
                        : em_format_text(&(*out)[i].name, "theta_%lld", (long long)i + 1);
    }
    return status;
}

void em_inputs_release(int64_t n, em_input **input)
{
    for (int64_t i = 0; *input && i < n; i++)
        em_release(&(*input)[i].name);
    em_release(input);
}

/* ---------------------------------------------------------------- priors */

static bool is_positive(const em_input *input)
{
    return em_prior_law_of(&input->prior)->positive;
}

double em_input_log_prior(const em_input *input, double x, double *slope)
{
    const em_prior *prior = &input->prior;

    *slope = 0;
    if (prior->kind == EM_PRIOR_DEFAULT)
        return 0;
    const double at = is_positive(input) ? x : (x - prior->location) / prior->scale;
    const double value = em_prior_law_of(prior)->log_density(prior, at, slope);
    *slope /= is_positive(input) ? x : prior->scale;
    return value;
}

double em_input_log_constant(const em_input *input)
{
    if (input->uniform)
        return -log(input->bounds.upper - input->bounds.lower);
    if (input->prior.kind == EM_PRIOR_DEFAULT)
        return 0;
    return em_prior_law_of(&input->prior)->constant(&input->prior) -
           (is_positive(input) ? 0 : log(input->prior.scale));
}

double em_input_draw(const em_input *input, em_variate *v)
{
    const em_bounds *bounds = &input->bounds;

    if (input->uniform)
        return bounds->lower + (bounds->upper - bounds->lower) * em_variate_uniform(v);
    const double x = em_prior_law_of(&input->prior)->draw(&input->prior, v);
    return is_positive(input) ? x : input->prior.location + input->prior.scale * x;
}

void em_input_print(const em_input *input, char out[EM_PRIOR_BYTES])
{
    if (input->uniform)
        snprintf(out, EM_PRIOR_BYTES, "uniform(%.4g, %.4g)", input->bounds.lower,
                 input->bounds.upper);
    else if (input->prior.kind != EM_PRIOR_DEFAULT)
        em_prior_print(&input->prior, out);
    else
        snprintf(out, EM_PRIOR_BYTES, "flat%s",
                 input->bounds.constraint == EM_FREE ? "" : ", within its bounds");
}
