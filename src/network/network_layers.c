#include "network/network_layers.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"
#include "base/text/nearest.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const em_activation_names[] = {"relu", "sigmoid", "tanh", NULL};

/* Wide enough for any network that fits into memory, and products of three of them do not overflow.
 */
static const int64_t most_units = 1000000, most_weights = INT64_C(1) << 31;

/* ---------------------------------------------------------------- what stands in the config */

/* The options of a layer, as they were given. */
typedef struct given {
    int64_t dense, convolution, pool, kernel; /* -1: not given */
    char padding[16], activation[16];         /* "": likewise */
} given;

typedef struct scan {
    const char *at;
    int layer;
} scan;

static const char *const keys[] = {"dense",   "convolution", "pool", "kernel",
                                   "padding", "activation",  NULL};

static bool take(scan *s, char c)
{
    s->at += strspn(s->at, " ");
    if (*s->at != c)
        return false;
    s->at++;
    return true;
}

static em_status bad(const scan *s, const char *found, const char *expected)
{
    return em_fail(EM_ECONFIG, "model.layers[%d]: found %s, expected %s", s->layer,
                   em_excerpt_of(found).text, expected);
}

static em_status unknown_key(const scan *s, const char *key)
{
    em_nearest nearest = em_nearest_start(key);

    for (int i = 0; keys[i]; i++)
        em_nearest_offer(&nearest, keys[i]);
    return em_fail(EM_ECONFIG,
                   "model.layers[%d]: unknown key %s, expected dense, convolution, pool, kernel, "
                   "padding or activation%s%s%s",
                   s->layer, em_excerpt_of(key).text, nearest.name ? "; did you mean " : "",
                   nearest.name ? nearest.name : "", nearest.name ? "?" : "");
}

static em_status read_count(scan *s, const char *key, int64_t *out)
{
    bool is_integer = false;
    char found[64];
    s->at += strspn(s->at, " ");
    const size_t length = em_json_number(s->at, &is_integer);

    *out = length > 0 && length < 18 && is_integer ? strtoll(s->at, NULL, 10) : 0;
    s->at += length;
    if (*out >= 1 && *out <= most_units)
        return EM_OK;
    snprintf(found, sizeof found, "%s: %.*s", key, length > 0 && length < 40 ? (int)length : 40,
             s->at - length);
    return bad(s, found, "an integer from 1 to 1000000");
}

static em_status read_word(scan *s, const char *key, char out[16])
{
    char *text = NULL;
    em_status status;

    s->at += strspn(s->at, " ");
    if (*s->at != '"')
        return bad(s, key, "a word for it");
    status = em_json_read_string(&s->at, &text);
    if (!status)
        snprintf(out, 16, "%s", text);
    em_release(&text);
    return status;
}

static em_status read_member(scan *s, const char *key, given *out)
{
    int64_t *const count[] = {&out->dense, &out->convolution, &out->pool, &out->kernel};

    for (int i = 0; i < 4; i++)
        if (strcmp(key, keys[i]) == 0)
            return read_count(s, key, count[i]);
    if (strcmp(key, "padding") == 0)
        return read_word(s, key, out->padding);
    if (strcmp(key, "activation") == 0)
        return read_word(s, key, out->activation);
    return unknown_key(s, key);
}

/* The mapping of one layer, of the JSON that a config is made into: {"dense": 100}. */
static em_status read_given(scan *s, given *out)
{
    em_status status = EM_OK;

    *out = (given){-1, -1, -1, -1, "", ""};
    if (!take(s, '{'))
        return bad(s, s->at, "a mapping: {dense: 100}, {convolution: 32, kernel: 5} or {pool: 2}");
    for (bool first = true; !status && !take(s, '}'); first = false) {
        char *key = NULL;
        if (!first && !take(s, ','))
            return bad(s, s->at, "a mapping");
        s->at += strspn(s->at, " ");
        if (*s->at != '"')
            return bad(s, s->at, "a key");
        status = em_json_read_string(&s->at, &key);
        if (!status && !take(s, ':'))
            status = bad(s, s->at, "a value");
        if (!status)
            status = read_member(s, key, out);
        em_release(&key);
    }
    return status;
}

/* ---------------------------------------------------------------- layers */

static em_status choose_activation(const scan *s, const char *name, em_activation *out)
{
    for (int i = 0; em_activation_names[i]; i++)
        if (strcmp(name, em_activation_names[i]) == 0) {
            *out = (em_activation)i;
            return EM_OK;
        }
    return bad(s, name, "activation relu, sigmoid or tanh");
}

static em_status set_dense(const scan *s, const given *g, em_layer *layer)
{
    layer->kind = EM_LAYER_DENSE;
    layer->out = (em_extent){1, 1, g->dense};
    layer->n_from = em_extent_size(&layer->in);
    layer->n_to = g->dense;
    if (g->kernel >= 0 || g->padding[0])
        return bad(s, g->kernel >= 0 ? "a kernel" : "padding", "it of a convolution alone");
    return EM_OK;
}

static em_status set_convolution(const scan *s, const given *g, em_layer *layer)
{
    const bool same = strcmp(g->padding, "same") == 0;
    char found[160];

    if (g->kernel < 0)
        return bad(s, "a convolution without kernel", "the side of its kernel");
    if (g->padding[0] && !same && strcmp(g->padding, "valid") != 0)
        return bad(s, g->padding, "padding valid or same");
    if (same && g->kernel % 2 == 0)
        return bad(s, "padding same of an even kernel", "an odd one");
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
    return bad(s, found, "no larger one than they are");
}

static em_status set_pool(const scan *s, const given *g, em_layer *layer)
{
    char found[160];

    if (g->kernel >= 0 || g->padding[0] || g->activation[0])
        return bad(s, "a pool with more", "its side alone");
    layer->kind = EM_LAYER_POOL;
    layer->activation = EM_ACTIVATION_NONE;
    layer->side = g->pool;
    layer->out =
        (em_extent){layer->in.height / g->pool, layer->in.width / g->pool, layer->in.channels};
    if (layer->in.height % g->pool == 0 && layer->in.width % g->pool == 0)
        return EM_OK;
    snprintf(found, sizeof found, "a pool of %" PRId64 " on %" PRId64 " x %" PRId64 " pixels",
             g->pool, layer->in.height, layer->in.width);
    return bad(s, found, "one that divides both");
}

static em_status set_layer(const scan *s, const given *g, em_layer *layer)
{
    const int n_kind = (g->dense >= 0) + (g->convolution >= 0) + (g->pool >= 0);
    em_status status = EM_OK;

    if (n_kind != 1)
        return bad(s, n_kind == 0 ? "none of them" : "several of them",
                   "one of dense, convolution and pool");
    if (g->activation[0])
        status = choose_activation(s, g->activation, &layer->activation);
    if (!status && g->dense < 0 && layer->in.channels > 1 &&
        em_extent_size(&layer->in) == layer->in.channels)
        status = bad(s, "numbers without rows and columns", "images, before any dense layer");
    if (status)
        return status;
    return g->dense >= 0         ? set_dense(s, g, layer)
           : g->convolution >= 0 ? set_convolution(s, g, layer)
                                 : set_pool(s, g, layer);
}

static bool is_small(const em_layer *layer, int64_t n_before)
{
    const double n = (double)layer->n_to * ((double)layer->n_from + 1);

    return n + (double)n_before <= (double)most_weights &&
           (double)layer->out.height * (double)layer->out.width * (double)layer->out.channels <=
               (double)most_weights;
}

/* Appends a layer. */
static em_status add(const scan *s, const given *g, const em_extent *input,
                     em_activation activation, em_layers *out)
{
    em_layer *layer = &out->layer[out->n];
    em_status status;

    *layer = (em_layer){.activation = activation,
                        .in = out->n > 0 ? out->layer[out->n - 1].out : *input,
                        .first = out->n_weight};
    snprintf(layer->name, sizeof layer->name, "layer%d", out->n + 1);
    status = set_layer(s, g, layer);
    if (status)
        return status;
    if (!is_small(layer, out->n_weight))
        return bad(s, "a network of more than 2^31 weights or units", "a smaller one");
    layer->n_weight = layer->n_from * layer->n_to + layer->n_to;
    out->n_weight += layer->n_weight;
    out->n++;
    return EM_OK;
}

em_status em_layers_read(const char *json, em_activation activation, const em_extent *input,
                         int64_t n_output, em_layers *out)
{
    const given output = {n_output, -1, -1, -1, "", ""};
    scan s = {.at = json};
    em_status status = EM_OK;

    *out = (em_layers){.n = 0};
    if (!take(&s, '['))
        return em_fail(EM_ECONFIG, "model.layers: found %s, expected a list of layers",
                       em_excerpt_of(json).text);
    for (; !status && !take(&s, ']'); s.layer++) {
        given g;
        if (s.layer > 0 && !take(&s, ','))
            return bad(&s, s.at, "a layer");
        if (s.layer == EM_MOST_LAYERS - 1)
            return bad(&s, "a layer", "no more than 63");
        status = read_given(&s, &g);
        if (!status)
            status = add(&s, &g, input, activation, out);
    }
    if (!status)
        status = add(&s, &output, input, EM_ACTIVATION_NONE, out);
    if (!status)
        snprintf(out->layer[out->n - 1].name, sizeof out->layer[0].name, "output");
    return status;
}
