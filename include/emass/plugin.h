/*
 * A model in a shared object of its own, which a config names:
 *
 *     model: {name: lighthouse, library: ./lighthouse.so, red: [4.7, 0.4, -1.7]}
 *
 *     cc -shared -fPIC $(pkg-config --cflags emass) lighthouse.c -o lighthouse.so
 *
 * The source includes this header and has EMASS_PLUGIN({.name = "lighthouse", ...}); once, with
 * the members of em_model_ops (emass/model.h). Its options are parsed, listed (emass list models
 * ./lighthouse.so) and stored as those of built-in models. A crash in a plug-in ends the process.
 */
#pragma once

#include "emass/capabilities.h"
#include "emass/data.h"
#include "emass/model.h"
#include "emass/random.h"

EM_BEGIN_C

/* The version of these headers. A plug-in that was built with another version, or with tables of
 * another size, is refused. */
#define EMASS_PLUGIN_ABI 17

typedef struct em_plugin_table {
    int abi, ops_size, field_size;
    const em_model_ops *model;
} em_plugin_table;

/* Defines the symbol by which emass finds the model in a plug-in. */
#define EMASS_PLUGIN(...)                                                                          \
    static const em_model_ops emass_plugin_model = __VA_ARGS__;                                    \
    EM_API extern const em_plugin_table emass_plugin;                                              \
    const em_plugin_table emass_plugin = {EMASS_PLUGIN_ABI, sizeof(em_model_ops),                  \
                                          sizeof(em_field), &emass_plugin_model}

EM_END_C
