/* A mass with W = diag(w). Every map is an elementwise product. */
#include "base/memory.h"
#include "mass/mass.h"

#include <math.h>
#include <string.h>

typedef struct diag_mass {
    em_mass base;
    double *inverse, *mass; /* w, 1 / w; [stride] each, like the others; padding 0 */
    double *root, *factor;  /* sqrt(w), 1 / sqrt(w) */
} diag_mass;

static int64_t size(const em_mass_form *form)
{
    return form->dim;
}

static int arrays(const em_mass_form *form, em_mass_array *out)
{
    out[0] = (em_mass_array){"inv_mass", 1, {form->dim}, 0};
    return 1;
}

static void spread(const em_mass_form *form, const double *diagonal, double *number)
{
    memcpy(number, diagonal, (size_t)form->dim * sizeof *number);
}

static em_status set_up(em_mass *base, const em_mass_form *form, const double *number)
{
    diag_mass *mass = (diag_mass *)base;
    const double **scale = base->scale;
    const em_status status = em_own_all(&base->memory, EM_ARRAY(mass->inverse, 4 * base->stride));

    if (status)
        return status;
    mass->mass = mass->inverse + base->stride;
    mass->root = mass->mass + base->stride;
    mass->factor = mass->root + base->stride;
    scale[EM_MAP_VELOCITY] = mass->inverse;
    scale[EM_MAP_SOLVE] = mass->mass;
    scale[EM_MAP_MOMENTUM] = mass->factor;
    scale[EM_MAP_WHITEN] = scale[EM_MAP_UNWHITEN] = mass->root;
    base->is_multiple = true;
    for (int64_t i = 0; i < form->dim; i++) {
        base->is_multiple &= number[i] == number[0];
        if (!(number[i] > 0) || !isfinite(number[i]))
            return EM_NONFINITE;
        mass->inverse[i] = number[i];
        mass->mass[i] = 1 / number[i];
        mass->root[i] = sqrt(number[i]);
        mass->factor[i] = 1 / mass->root[i];
    }
    return EM_OK;
}

static void write(const em_mass *base, const em_mass_form *form, double *number)
{
    memcpy(number, ((const diag_mass *)base)->inverse, (size_t)form->dim * sizeof *number);
}

static double log_det(const em_mass *base)
{
    const diag_mass *mass = (const diag_mass *)base;
    double sum = 0;

    for (int64_t i = 0; i < base->dim; i++)
        sum -= 2 * log(mass->factor[i]);
    return sum;
}

static em_status range(const em_mass *base, double *smallest, double *largest)
{
    const double *inverse = ((const diag_mass *)base)->inverse;

    *smallest = *largest = inverse[0];
    for (int64_t i = 1; i < base->dim; i++) {
        *smallest = fmin(*smallest, inverse[i]);
        *largest = fmax(*largest, inverse[i]);
    }
    return EM_OK;
}

const em_mass_ops em_mass_diag = {
    .struct_size = sizeof(diag_mass),
    .name = "diag",
    .doc = "a variance for each coordinate",
    .structure = EM_MASS_DIAG,
    .size = size,
    .arrays = arrays,
    .spread = spread,
    .set_up = set_up,
    .write = write,
    .log_det = log_det,
    .range = range,
};
