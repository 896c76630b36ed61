#include "app/summary/command_arguments.h"

#include "base/memory.h"

em_status em_arguments_check(poptContext context, const char *command, int option)
{
    if (option >= -1)
        return EM_OK;
    return em_fail(EM_EUSAGE, "%s: %s: %s (see emass %s --help)", command,
                   poptBadOption(context, POPT_BADOPTION_NOALIAS), poptStrerror(option), command);
}

em_status em_arguments_only(poptContext context, const char *command, const char *what, char **out)
{
    const char *only = poptGetArg(context);

    if (!only || poptPeekArg(context))
        return em_fail(EM_EUSAGE, "%s: expected %s (see emass %s --help)", command, what, command);
    return em_copy_text(only, out);
}

em_status em_arguments_all(poptContext context, const char *command, const char *what,
                           int64_t least, int64_t *n, const char ***out)
{
    const char **all = poptGetArgs(context);
    em_status status;

    for (*n = 0; all && all[*n];)
        ++*n;
    if (*n < least)
        return em_fail(EM_EUSAGE, "%s: expected %s (see emass %s --help)", command, what, command);
    status = em_allocate(*n, sizeof **out, out);
    for (int64_t i = 0; !status && i < *n; i++)
        (*out)[i] = all[i];
    return status;
}
