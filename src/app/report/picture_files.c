#include "app/report/picture_files.h"

#ifdef EM_DUKTAPE
#include "base/memory.h"
#include "base/page.h"

#include <duktape.h>

em_status em_prepare_pictures(const char *folder)
{
    return em_page_make_folder(folder);
}

static em_status write_picture(const char *folder, const char *name, const char *svg)
{
    em_page page = {NULL};
    char *path = NULL;
    em_status status = em_format_text(&path, "%s/%s.svg", folder, name);

    if (!status) {
        status = em_page_open(path, &page);
        if (!status)
            fputs(svg, page.out);
        status = em_page_close(&page, status);
    }
    em_release(&path);
    return status;
}

/* The script leaves a function `files`, which makes of the data an array [name, svg, name, ...]. */
em_status em_write_pictures(const char *script, const char *json, const char *folder)
{
    duk_context *context = duk_create_heap_default();
    em_status status = EM_OK;

    if (!context)
        return em_fail(EM_EMEMORY, "out of memory");
    duk_push_string(context, json);
    duk_put_global_string(context, "json");
    if (duk_pcompile_string(context, 0, script) != 0 || duk_pcall(context, 0) != 0 ||
        duk_peval_string(context, "files(JSON.parse(json))") != 0)
        status =
            em_fail(EM_EMEMORY, "the figures cannot be drawn: %s", duk_safe_to_string(context, -1));
    for (duk_uarridx_t i = 0; !status && i < duk_get_length(context, -1); i += 2) {
        duk_get_prop_index(context, -1, i);
        duk_get_prop_index(context, -2, i + 1);
        status =
            write_picture(folder, duk_require_string(context, -2), duk_require_string(context, -1));
        duk_pop_2(context);
    }
    duk_destroy_heap(context);
    return status;
}
#else
em_status em_prepare_pictures(const char *folder)
{
    return em_fail(EM_EUSAGE,
                   "--figures %s: found a build of emass without Duktape (Debian's duktape-dev), "
                   "expected one with it; each figure of the page has a link that saves it as SVG",
                   folder);
}

em_status em_write_pictures(const char *script, const char *json, const char *folder)
{
    (void)script;
    (void)json;
    return em_prepare_pictures(folder);
}
#endif
