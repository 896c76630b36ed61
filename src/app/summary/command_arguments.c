#include "app/summary/command_arguments.h"

#include "base/memory.h"
#include "base/text.h"
#include "par/world.h"

#include <stdlib.h>
#include <string.h>

em_status em_arguments_check(poptContext context, const char *command, int option)
{
    if (option >= -1)
        return EM_OK;
    return em_fail(EM_EUSAGE, "%s: %s: %s (see emass %s --help)", command,
                   poptBadOption(context, POPT_BADOPTION_NOALIAS), poptStrerror(option), command);
}

em_status em_command_line_read(int argc, const char **argv, const struct poptOption *option,
                               const char *what, int64_t least, int64_t most, em_command_line *out)
{
    *out =
        (em_command_line){.popt = poptGetContext(argv[0], argc, argv, option, 0), .option = option};
    em_status status = em_arguments_check(out->popt, argv[0], poptGetNextOpt(out->popt));

    out->argument = status ? NULL : poptGetArgs(out->popt);
    while (out->argument && out->argument[out->n])
        out->n++;
    if (!status && (out->n < least || out->n > most))
        status =
            em_fail(EM_EUSAGE, "%s: expected %s (see emass %s --help)", argv[0], what, argv[0]);
    return em_agree(status);
}

em_status em_command_choice(const char *command, const char *option, const char *text,
                            const char *const *choices, int *out)
{
    char known[128] = "";

    *out = text ? em_text_find(text, choices) : 0;
    if (*out >= 0)
        return EM_OK;
    for (int i = 0; choices[i]; i++)
        em_append(sizeof known, known, "%s%s",
                  i == 0           ? ""
                  : choices[i + 1] ? ", "
                                   : " or ",
                  choices[i]);
    return em_fail(EM_EUSAGE, "%s: found --%s=%s, expected %s (see emass %s --help)", command,
                   option, em_excerpt_of(text).text, known, command);
}

void em_command_line_end(em_command_line *line)
{
    for (const struct poptOption *o = line->option; o->longName; o++) {
        const unsigned kind = o->argInfo & POPT_ARG_MASK;
        if (kind == POPT_ARG_STRING)
            free(*(char **)o->arg);
        for (char **text = kind == POPT_ARG_ARGV ? *(char ***)o->arg : NULL; text && *text; text++)
            free(*text);
        if (kind == POPT_ARG_ARGV)
            free(*(char ***)o->arg);
    }
    poptFreeContext(line->popt);
}

em_status em_replace_h5(const char *path, const char *ending, char **out)
{
    const size_t length = strlen(path);
    const bool ends = em_text_ends_with(path, ".h5");

    return em_format_text(out, "%.*s%s", (int)(length - (ends ? 3 : 0)), path, ending);
}
