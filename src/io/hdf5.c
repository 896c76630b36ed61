#include "io/hdf5.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct message {
    char *text;
    size_t bytes;
} message;

void em_h5_quiet(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *data)
{
    const message *kept = data;

    if (n == 0)
        snprintf(kept->text, kept->bytes, "%s", error->desc ? error->desc : "");
    return 0;
}

void em_h5_message(char *text, size_t bytes)
{
    message kept = {text, bytes};

    text[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &kept);
}

em_status em_h5_check(int64_t result, hid_t location, const char *format, ...)
{
    char reason[512], what[512], file[1024] = "", object[256] = "";
    va_list arguments;

    if (result >= 0)
        return EM_OK;
    em_h5_message(reason, sizeof reason); /* first: the next call of HDF5 forgets it */
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    H5Fget_name(location, file, sizeof file);
    H5Iget_name(location, object, sizeof object);
    return em_fail(EM_EIO, "%s:%s: %s%s%s", file, object, what, *reason ? ": " : "", reason);
}

herr_t em_h5_close(hid_t *id)
{
    const hid_t closed = *id;

    *id = H5I_INVALID_HID;
    return closed > 0 ? (H5Idec_ref(closed) < 0 ? -1 : 0) : 0;
}
