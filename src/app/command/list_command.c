#include "app/command/command.h"

#include "adaptation/mass_window/mass_options.h"
#include "base/memory.h"
#include "base/options/field.h"
#include "base/system/terminal.h"
#include "base/text.h"
#include "base/text/nearest.h"
#include "model/plugin_file.h"
#include "par/world.h"
#include "run/config/config.h"
#include "run/config/model_catalogue.h"

#include <stdio.h>
#include <string.h>

/* A section of the config. */
typedef struct list_topic {
    const char *name;          /* on the command line */
    const char *title;         /* NULL: keys alone, of those before it */
    em_variant_list *variants; /* NULL: none to choose from */
    const em_field *fields;    /* options of the section itself; NULL: those of the variants */
} list_topic;

static const list_topic topics[] = {
    {"models", "model.name", em_model_variant, NULL},
    {"samplers", "sampler.name", em_sampler_variant, NULL},
    {"mass", "mass.estimator", em_estimator_variant, em_mass_fields},
    {"run", "run", NULL, em_run_fields},
    {"stop", "stop", NULL, em_stop_fields},
    {"output", "output", NULL, em_output_fields},
    {"temper", "temper", NULL, em_temper_fields},
    {"keys", NULL, NULL, NULL}, /* of all of them */
};

enum { N_TOPIC = sizeof topics / sizeof *topics };

static void print_default(const em_field *field, FILE *out)
{
    if (!field->fallback)
        fprintf(out, "; must be given");
    else if (!*field->fallback)
        fprintf(out, "; default: none");
    else
        fprintf(out, "; default %s", field->fallback);
    fprintf(out, "%s\n", field->may_change ? "; may change on --resume" : "");
}

static void print_fields(const em_field *table, FILE *out)
{
    for (const em_field *field = table; field && field->name; field++) {
        fprintf(out, "  %-18s ", field->name);
        em_field_write_expected(field, out);
        print_default(field, out);
        fprintf(out, "  %-18s %s\n", "", field->doc);
    }
}

static void print_overview(const list_topic *topic, FILE *out)
{
    em_variant variant;

    for (int i = 0; topic->variants && topic->variants(i, &variant); i++)
        fprintf(out, "  %-18s %s\n", variant.name, variant.doc);
}

static void print_topic(const list_topic *topic, FILE *out)
{
    fprintf(out, "%s:\n", topic->title);
    print_overview(topic, out);
    if (topic->variants && topic->fields)
        fprintf(out, "\noptions of %s:\n", topic->name);
    print_fields(topic->fields, out);
}

static void print_all(FILE *out)
{
    for (int i = 0; i < N_TOPIC; i++)
        if (topics[i].variants) {
            fprintf(out, "%s (emass list %s NAME for the options):\n", topics[i].title,
                    topics[i].name);
            print_overview(&topics[i], out);
            fprintf(out, "\n");
        }
    fprintf(out, "options of the other sections: emass list run, emass list stop, "
                 "emass list output, emass list temper\n");
}

/* Prints the options of variant n that no earlier variant has. */
static void print_own_keys(const list_topic *topic, const char *section, int n, FILE *out)
{
    em_variant own, other;

    if (!topic->variants(n, &own))
        return;
    for (const em_field *field = own.fields; field && field->name; field++) {
        bool known = em_field_find(topic->fields, field->name) != NULL;
        for (int i = 0; !known && i < n; i++)
            known = topic->variants(i, &other) && em_field_find(other.fields, field->name);
        if (!known)
            fprintf(out, "%s.%s\n", section, field->name);
    }
}

/* Prints the keys of --set: a line for each key, with the models and samplers that have it. */
static void print_keys(FILE *out)
{
    em_variant variant;

    for (int t = 0; t < N_TOPIC && topics[t].title; t++) {
        const int length = (int)strcspn(topics[t].title, ".");
        char section[16];

        snprintf(section, sizeof section, "%.*s", length, topics[t].title);
        if (!topics[t].fields)
            fprintf(out, "%s\n", topics[t].title);
        for (const em_field *field = topics[t].fields; field && field->name; field++)
            fprintf(out, "%s.%s\n", section, field->name);
        for (int i = 0; topics[t].variants && topics[t].variants(i, &variant); i++)
            print_own_keys(&topics[t], section, i, out);
    }
}

/* Prints one item of a topic, or all items of one or all topics, in lines that fit a terminal. */
static em_status print(const list_topic *topic, const em_variant *variant)
{
    enum { WIDEST = 120 };
    em_prose prose;
    em_status status = em_prose_begin(stdout, &prose);

    if (status)
        return status;
    if (variant) {
        fprintf(prose.words, "%s: %s\nsource: %s\n\noptions:\n", variant->name, variant->doc,
                variant->source);
        print_fields(variant->fields, prose.words);
    } else if (topic && !topic->title)
        print_keys(prose.words);
    else if (topic)
        print_topic(topic, prose.words);
    else
        print_all(prose.words);
    em_prose_end(&prose, WIDEST);
    return EM_OK;
}

static em_status unknown(const char *what, const em_nearest *nearest, const char *command)
{
    if (nearest->name)
        return em_fail(EM_EUSAGE, "unknown %s '%s'; did you mean %s?", what, nearest->wanted,
                       nearest->name);
    return em_fail(EM_EUSAGE, "unknown %s '%s' (see emass %s)", what, nearest->wanted, command);
}

static em_status find_topic(const char *name, const list_topic **out)
{
    em_nearest nearest = em_nearest_start(name);

    for (int i = 0; i < N_TOPIC; i++) {
        *out = &topics[i];
        if (strcmp(topics[i].name, name) == 0)
            return EM_OK;
        em_nearest_offer(&nearest, topics[i].name);
    }
    return unknown("list", &nearest, "list --help");
}

static em_status find_variant(const list_topic *topic, const char *name, em_variant *out)
{
    em_nearest nearest = em_nearest_start(name);
    char command[64];

    for (int i = 0; topic->variants && topic->variants(i, out); i++) {
        if (strcmp(out->name, name) == 0)
            return EM_OK;
        em_nearest_offer(&nearest, out->name);
    }
    snprintf(command, sizeof command, "list %s", topic->name);
    return unknown("name", &nearest, command);
}

/* Prints the model of a plug-in. */
static em_status list_plugin(const char *path)
{
    EM_SCOPED_BY(em_plugin_close) em_plugin *plugin = NULL;
    em_status status = em_plugin_open(path, &plugin);

    if (!status && em_world_rank() == 0) {
        const em_model_ops *ops = em_plugin_model(plugin);
        status = print(NULL, &(em_variant){ops->name, ops->doc ? ops->doc : "",
                                           ops->source ? ops->source : "", ops->options_size,
                                           ops->fields});
    }
    return status;
}

em_status em_list_command(int argc, const char **argv)
{
    const list_topic *topic = NULL;
    em_variant variant;
    em_status status = EM_OK;

    if (argc > 3)
        return em_fail(EM_EUSAGE,
                       "list: found '%s', expected nothing after a name (see emass list --help)",
                       argv[3]);
    if (argc > 1)
        status = find_topic(argv[1], &topic);
    if (!status && argc > 2 && topic->variants == em_model_variant &&
        (strchr(argv[2], '/') || em_text_ends_with(argv[2], ".so")))
        return list_plugin(argv[2]);
    if (!status && argc > 2)
        status = find_variant(topic, argv[2], &variant);
    if (status || em_world_rank() != 0)
        return status;
    return print(topic, argc > 2 ? &variant : NULL);
}
