#include "network/network_layers.h"

#include "base/text.h"
#include "base/text/json.h"
#include "base/text/nearest.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *const em_activation_names[] = {"relu", "sigmoid", "tanh", NULL};

/* Limits that any network that fits into memory meets. Products of three such numbers do not
 * overflow. */
static const int64_t most_units = 1000000, most_weights = INT64_C(1) << 31;

/* ---------------------------------------------------------------- what stands in the config */

/* The options of a layer as numbers. */
typedef struct given {
    int64_t dense, convolution, pool, kernel; /* -1: not given */
    char padding[16], activation[16];         /* "": likewise */
} given;

static const char *const keys[] = {"dense",   "convolution", "pool", "kernel",
                                   "padding", "activation",  NULL};

static em_status bad(int number, const char *found, const char *expected)
{
    return em_fail(EM_ECONFIG, "model.layers[%d]: found %s, expected %s", number,
                   em_excerpt_of(found).text, expected);
}

static em_status unknown_key(int number, const char *key)
{
    em_nearest nearest = em_nearest_start(key);

    for (int i = 0; keys[i]; i++)
        em_nearest_offer(&nearest, keys[i]);
    return em_fail(EM_ECONFIG,
                   "model.layers[%d]: unknown key %s, expected dense, convolution, pool, kernel, "
                   "padding or activation%s%s%s",
                   number, em_excerpt_of(key).text, nearest.name ? "; did you mean " : "",
                   nearest.name ? nearest.name : "", nearest.name ? "?" : "");
}

static em_status read_member(int number, const char *key, const json_t *value, given *out)
{
    int64_t *const count[] = {&out->dense, &out->convolution, &out->pool, &out->kernel};
    char found[160];

    for (int i = 0; i < 4; i++)
        if (strcmp(key, keys[i]) == 0) {
            *count[i] = json_integer_value(value);
            snprintf(found, sizeof found, "%s: %s", key, em_json_excerpt(value).text);
            return *count[i] >= 1 && *count[i] <= most_units
                       ? EM_OK
                       : bad(number, found, "an integer from 1 to 1000000");
        }
    const bool is_padding = strcmp(key, "padding") == 0;
    if (!is_padding && strcmp(key, "activation") != 0)
        return unknown_key(number, key);
    if (!json_is_string(value))
        return bad(number, key, "a word for it");
    snprintf(is_padding ? out->padding : out->activation, sizeof out->padding, "%s",
             json_string_value(value));
    return EM_OK;
}

/* The mapping of one layer: {"dense": 100}. */
static em_status read_given(int number, json_t *layer, given *out)
{
    em_status status = EM_OK;
    const char *key;
    json_t *value;

    *out = (given){-1, -1, -1, -1, "", ""};
    if (!json_is_object(layer))
        return bad(number, em_json_excerpt(layer).text,
                   "a mapping: {dense: 100}, {convolution: 32, kernel: 5} or {pool: 2}");
    json_object_foreach(layer, key, value)
    {
        status = status ? status : read_member(number, key, value, out);
    }
    return status;
}

/* ---------------------------------------------------------------- layers */

static em_status choose_activation(int number, const char *name, em_activation *out)
{
    char expected[160] = "activation ";

    for (int i = 0; em_activation_names[i]; i++) {
        if (strcmp(name, em_activation_names[i]) == 0) {
            *out = (em_activation)i;
            return EM_OK;
        }
        em_append(sizeof expected, expected, "%s%s", em_activation_names[i],
                  !em_activation_names[i + 1]  ? ""
                  : em_activation_names[i + 2] ? ", "
                                               : " or ");
    }
    return bad(number, name, expected);
}

static em_status set_dense(int number, const given *g, em_layer *layer)
{
    layer->kind = EM_LAYER_DENSE;
    layer->out = (em_extent){1, 1, g->dense};
    layer->n_from = em_extent_size(&layer->in);
    layer->n_to = g->dense;
    if (g->kernel >= 0 || g->padding[0])
        return bad(number, g->kernel >= 0 ? "a kernel" : "padding", "it only for a convolution");
    return EM_OK;
}

static em_status set_convolution(int number, const given *g, em_layer *layer)
{
    const bool same = strcmp(g->padding, "same") == 0;
    char found[160];

    if (g->kernel < 0)
        return bad(number, "a convolution without kernel",
                   "kernel, the side of its kernel in pixels");
    if (g->padding[0] && !same && strcmp(g->padding, "valid") != 0)
        return bad(number, g->padding, "padding valid or same");
    if (same && g->kernel % 2 == 0)
        return bad(number, "padding same with an even kernel", "an odd kernel");
    layer->kind = EM_LAYER_CONVOLUTION;
    layer->side = g->kernel;
    layer->pad = same ? g->kernel / 2 : 0;
    layer->out = (em_extent){layer->in.height + 2 * layer->pad - g->kernel + 1,
                             layer->in.width + 2 * layer->pad - g->kernel + 1, g->convolution};
    layer->n_from = g->kernel * g->kernel * layer->in.channels;
    layer->n_to = g->convolution;
    if (layer->out.height >= 1 && layer->out.width >= 1)
        return EM_OK;
    snprintf(found, sizeof found, "a kernel of %" PRId64 " on %" PRId64 " x %" PRId64 " pixels",
             g->kernel, layer->in.height, layer->in.width);
    return bad(number, found, "no larger one than they are");
}

static em_status set_pool(int number, const given *g, em_layer *layer)
{
    char found[160];

    if (g->kernel >= 0 || g->padding[0] || g->activation[0])
        return bad(number, "a pool with more", "its side alone");
    layer->kind = EM_LAYER_POOL;
    layer->activation = EM_ACTIVATION_NONE;
    layer->side = g->pool;
    layer->out =
        (em_extent){layer->in.height / g->pool, layer->in.width / g->pool, layer->in.channels};
    if (layer->in.height % g->pool == 0 && layer->in.width % g->pool == 0)
        return EM_OK;
    snprintf(found, sizeof found, "a pool of %" PRId64 " on %" PRId64 " x %" PRId64 " pixels",
             g->pool, layer->in.height, layer->in.width);
    return bad(number, found, "one that divides both");
}

static em_status set_layer(int number, const given *g, em_layer *layer)
{
    const int n_kind = (g->dense >= 0) + (g->convolution >= 0) + (g->pool >= 0);
    em_status status = EM_OK;

    if (n_kind != 1)
        return bad(number, n_kind == 0 ? "none of them" : "several of them",
                   "one of dense, convolution and pool");
    if (g->activation[0])
        status = choose_activation(number, g->activation, &layer->activation);
    if (!status && g->dense < 0 && layer->in.channels > 1 &&
        em_extent_size(&layer->in) == layer->in.channels)
        status = bad(number, "numbers without rows and columns", "images, before any dense layer");
    if (status)
        return status;
    return g->dense >= 0         ? set_dense(number, g, layer)
           : g->convolution >= 0 ? set_convolution(number, g, layer)
                                 : set_pool(number, g, layer);
}

static bool is_small(const em_layer *layer, int64_t n_before)
{
    const double n = (double)layer->n_to * ((double)layer->n_from + 1);

    return n + (double)n_before <= (double)most_weights &&
           (double)layer->out.height * (double)layer->out.width * (double)layer->out.channels <=
               (double)most_weights;
}

/* Appends a layer. */
static em_status add(int number, const given *g, const em_extent *input, em_activation activation,
                     em_layers *out)
{
    em_layer *layer = &out->layer[out->n];

    *layer = (em_layer){.activation = activation,
                        .in = out->n > 0 ? out->layer[out->n - 1].out : *input,
                        .first = out->n_weight};
    snprintf(layer->name, sizeof layer->name, "layer%d", out->n + 1);
    em_status status = set_layer(number, g, layer);
    if (status)
        return status;
    if (!is_small(layer, out->n_weight))
        return bad(number, "a network of more than 2^31 weights or units", "a smaller one");
    layer->n_weight = layer->n_from * layer->n_to + layer->n_to;
    out->n_weight += layer->n_weight;
    out->n++;
    return EM_OK;
}

em_status em_layers_read(const char *json, em_activation activation, const em_extent *input,
                         int64_t n_output, em_layers *out)
{
    const given output = {n_output, -1, -1, -1, "", ""};
    em_status status = EM_OK;
    em_excerpt why;
    json_auto_t *all = em_json_load(json, &why);
    const int n = (int)json_array_size(all);

    *out = (em_layers){.n = 0};
    if (!json_is_array(all))
        status = em_fail(EM_ECONFIG, "model.layers: found %s, expected a list of layers",
                         all ? em_json_excerpt(all).text : why.text);
    for (int i = 0; !status && i < n; i++) {
        given g;
        status = i == EM_MOST_LAYERS - 1 ? bad(i, "a layer", "no more than 63")
                                         : read_given(i, json_array_get(all, (size_t)i), &g);
        status = status ? status : add(i, &g, input, activation, out);
    }
    status = status ? status : add(n, &output, input, EM_ACTIVATION_NONE, out);
    if (!status)
        snprintf(out->layer[out->n - 1].name, sizeof out->layer[0].name, "output");
    return status;
}
