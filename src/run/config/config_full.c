/* The config with every default filled in, as YAML. */
#include "base/memory.h"
#include "base/options/field.h"
#include "base/text.h"
#include "run/config/config_parse.h"

#include <stdlib.h>
#include <string.h>

/* The key of a field, `kappa: k0:` on two lines where it is the first of its group. */
static void write_key(const char *indent, const em_field *field, const em_field *previous,
                      FILE *out)
{
    const char *dot = strchr(field->name, '.');
    const size_t group = dot ? (size_t)(dot + 1 - field->name) : 0;

    if (dot && (!previous || strncmp(previous->name, field->name, group) != 0))
        fprintf(out, "%s%.*s:\n", indent, (int)group - 1, field->name);
    fprintf(out, "%s%s%s: ", indent, dot ? "  " : "", field->name + group);
}

static bool is_listed(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

static const em_field block_field =
    EM_TEXT(em_kernel_options, block, .doc = "parameters of the model that the sampler moves");

/* A sampler of a list begins with its block. */
static void write_head(const em_parse *p, const em_config_section *section, FILE *out)
{
    const ptrdiff_t i = section - &p->section[EM_SECTION_SAMPLER];

    if (!em_is_element(p, section)) {
        fprintf(out, "%s:\n", section->name);
        if (section->chosen)
            fprintf(out, "  name: %s\n", section->chosen);
        return;
    }
    fprintf(out, "%s  - block: ", i == 0 ? "sampler:\n" : "");
    em_field_write(&block_field, &p->config->kernel[i], out);
    fprintf(out, "\n    name: %s\n", section->chosen);
}

static void write_section(const em_parse *p, const em_config_section *section,
                          const char *const *left_out, FILE *out)
{
    const em_field *previous = NULL;

    write_head(p, section, out);
    for (const em_field *field = section->fields; field && field->name; field++) {
        if (left_out && is_listed(left_out, field->name))
            continue;
        write_key(em_is_element(p, section) ? "    " : "  ", field, previous, out);
        em_field_write(field, section->options, out);
        fputc('\n', out);
        previous = field;
    }
}

/* What the mass of a sampler of a list has otherwise than the section `mass`. */
static void write_own_mass(const em_parse *p, int i, FILE *out)
{
    const em_config_section *section = &p->section[p->n_outer + i];
    const em_field *previous = NULL;

    for (const em_field *field = section->fields; field->name; field++) {
        if (!em_yaml_find(p->yaml, em_join_key(section->name, field->name).text))
            continue;
        if (!previous)
            fprintf(out, "    mass:\n");
        write_key("      ", field, previous, out);
        em_field_write(field, section->options, out);
        fputc('\n', out);
        previous = field;
    }
}

/* Paths stand in it as they were written, so that it does not depend on the machine. What is stored
 * depends neither on where the file is put, nor on the shards where the draws do not. */
em_status em_config_write(const em_parse *p, bool is_stored, char **full)
{
    static const char *const both[] = {"file", "shards", NULL};
    static const char *const file[] = {"file", NULL};
    const char *const *left_out = !is_stored                           ? NULL
                                  : em_config_shards_matter(p->config) ? file
                                                                       : both;
    size_t length;
    char *text = NULL;
    FILE *out = open_memstream(&text, &length);
    em_status status;

    if (!out)
        return em_fail(EM_EMEMORY, "out of memory while writing the config");
    for (int i = 0; i < p->n_outer; i++) {
        write_section(p, &p->section[i], left_out, out);
        if (em_is_element(p, &p->section[i]))
            write_own_mass(p, i - EM_SECTION_SAMPLER, out);
    }
    if (fclose(out) == 0)
        status = em_copy_text(text, full);
    else
        status = em_fail(EM_EMEMORY, "out of memory while writing the config");
    free(text);
    return status;
}
