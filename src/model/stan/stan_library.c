#include "model/stan/stan_library.h"

#include "base/file.h"
#include "base/system/shared_object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAJOR = 2, STANLI_ABI = 2 };

#define AT(member) offsetof(em_stan_library, member)
static const struct {
    const char *name;
    size_t offset;
} functions[] = {{"bs_model_construct", AT(construct)},
                 {"bs_model_destruct", AT(destruct)},
                 {"bs_free_error_msg", AT(free_error)},
                 {"bs_param_names", AT(names)},
                 {"bs_param_unc_names", AT(unconstrained_names)},
                 {"bs_param_num", AT(count)},
                 {"bs_param_unc_num", AT(count_unconstrained)},
                 {"bs_log_density_gradient", AT(gradient)},
                 {"bs_param_constrain", AT(constrain)},
                 {"bs_param_unconstrain_json", AT(unconstrain)},
                 {"bs_rng_construct", AT(rng_construct)},
                 {"bs_rng_destruct", AT(rng_destruct)},
                 {"bs_set_print_callback", AT(set_print)},
                 {"stanli_stan_to_mir_with_opts", AT(translate)},
                 {"stanli_string_free", AT(free_text)}};
#undef AT
enum { N_FUNCTION = sizeof functions / sizeof *functions, N_COMMON = N_FUNCTION - 2 };

static em_status take_functions(const char *path, bool interpreter, em_stan_library *library)
{
    const int n = interpreter ? N_FUNCTION : N_COMMON;

    for (int i = 0; i < n; i++)
        if (!em_shared_object_find(library->handle, functions[i].name,
                                   (char *)library + functions[i].offset))
            return em_fail(EM_ECONFIG, "%s: no function %s in it, expected %s", path,
                           functions[i].name,
                           interpreter ? "libstanli.so" : "a Stan model compiled by BridgeStan 2");
    return EM_OK;
}

static em_status check_version(const char *path, em_stan_library *library)
{
    const int *major, *minor;

    if (!em_shared_object_find(library->handle, "bs_major_version", &major) ||
        !em_shared_object_find(library->handle, "bs_minor_version", &minor))
        return em_fail(EM_ECONFIG, "%s: no version of BridgeStan in it, expected %d", path, MAJOR);
    library->minor = *minor;
    if (*major == MAJOR)
        return EM_OK;
    return em_fail(EM_ECONFIG, "%s: found version %d.%d of BridgeStan, expected %d", path, *major,
                   *minor, MAJOR);
}

/* Identifies the interpreter by its version, because its own functions change with the version. */
static em_status identify_interpreter(const char *path, em_stan_library *library)
{
    int (*abi)(void);
    const char *(*build)(void);

    if (!em_shared_object_find(library->handle, "stanli_abi_version", &abi) ||
        !em_shared_object_find(library->handle, "stanli_build_id", &build))
        return em_fail(EM_ECONFIG, "%s: not a libstanli.so", path);
    if (abi() != STANLI_ABI)
        return em_fail(EM_ECONFIG, "%s: found version %d of stanli's interface, expected %d", path,
                       abi(), STANLI_ABI);
    snprintf(library->identity, sizeof library->identity, "%s", build());
    return EM_OK;
}

/* Identifies a compiled model by a hash of its bytes. */
static em_status identify_compiled(const char *path, em_stan_library *library)
{
    EM_SCOPED_BY(em_file_close) int file = -1;
    struct stat about;
    uint64_t hash;
    em_status status = em_file_open(path, O_RDONLY, &file);

    if (status)
        return status;
    status = fstat(file, &about) == 0
                 ? em_file_hash(file, path, (uint64_t)about.st_size, &hash)
                 : em_fail(EM_EIO, "%s: cannot be read: %s", path, strerror(errno));
    if (!status)
        snprintf(library->identity, sizeof library->identity, "xxh64:%016llx",
                 (unsigned long long)hash);
    return status;
}

em_status em_stan_library_open(const char *path, bool interpreter, em_stan_library *out)
{
    *out = (em_stan_library){.handle = NULL};
    em_status status = em_shared_object_load(path, &out->handle);
    status = status ? status : check_version(path, out);
    status = status ? status : take_functions(path, interpreter, out);
    if (status)
        return status;
    return interpreter ? identify_interpreter(path, out) : identify_compiled(path, out);
}

void em_stan_one_line(const char *from, char *to, size_t bytes)
{
    size_t length = 0;

    for (; *from && length < bytes - 1; from++)
        if ((unsigned char)*from >= 0x20 && *from != 0x7f)
            to[length++] = *from;
        else if (length > 0 && to[length - 1] != ' ')
            to[length++] = ' ';
    while (length > 0 && to[length - 1] == ' ')
        length--;
    to[length] = '\0';
}

em_status em_stan_library_fail(const em_stan_library *library, em_status status, const char *what,
                               char *error)
{
    char text[1024];

    em_stan_one_line(error ? error : "no reason given", text, sizeof text);
    if (error)
        library->free_error(error);
    return em_fail(status, "%s: %s", what, text);
}
