/* A mass whose W is block diagonal. Each block is a mass, diagonal or dense. */
#include "base/memory.h"
#include "mass/mass.h"

#include <math.h>
#include <string.h>

/* The number of chains whose columns of a block are copied at a time to aligned memory. */
enum { CHAINS = 8 };

typedef struct block_mass {
    em_mass base;
    int64_t n_part;
    em_part *part;
    em_mass **own;    /* [n_part] */
    double *in, *out; /* [CHAINS][stride] */
} block_mass;

em_status em_mass_parts(int64_t dim, int64_t n_block, const double *size, int64_t *n_part,
                        em_part **part)
{
    int64_t first = 0;
    em_status status = em_allocate(n_block + 1, sizeof **part, part);

    *n_part = n_block;
    for (int64_t i = 0; !status && i < n_block; i++) {
        if (!(size[i] >= 1 && size[i] <= (double)(dim - first) && size[i] == floor(size[i])))
            return EM_EDATA;
        const int64_t count = (int64_t)size[i];
        (*part)[i] = (em_part){first, count, count > 1 ? EM_MASS_DENSE : EM_MASS_DIAG};
        first += count;
    }
    if (!status && first < dim)
        (*part)[(*n_part)++] = (em_part){first, dim - first, EM_MASS_DIAG};
    return !status && n_block == 0 ? EM_EDATA : status;
}

static int64_t size(const em_mass_form *form)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < form->n_part; i++)
        sum += em_mass_size(form->part[i].structure, form->part[i].count);
    return sum;
}

static int arrays(const em_mass_form *form, em_mass_array *out)
{
    out[0] = (em_mass_array){"inv_mass_blocks", 1, {size(form)}, 0};
    return 1;
}

static em_mass_form form_of(const em_part *part)
{
    return em_mass_plain_form(part->structure, part->count);
}

static void spread(const em_mass_form *form, const double *diagonal, double *number)
{
    for (int64_t i = 0; i < form->n_part; i++) {
        const em_mass_form own = form_of(&form->part[i]);
        own.ops->spread(&own, diagonal + form->part[i].first, number);
        number += own.ops->size(&own);
    }
}

static void release(em_mass *base)
{
    block_mass *mass = (block_mass *)base;

    for (int64_t i = 0; mass->own && i < mass->n_part; i++)
        em_mass_destroy(&mass->own[i]);
}

static em_status set_up(em_mass *base, const em_mass_form *form, const double *number)
{
    block_mass *mass = (block_mass *)base;
    const int64_t n = form->n_part, panel = CHAINS * base->stride;
    em_status status = em_own_all(&base->memory, EM_ARRAY(mass->part, n), EM_ARRAY(mass->own, n),
                                  EM_ARRAY(mass->in, panel), EM_ARRAY(mass->out, panel));

    if (status)
        return status;
    mass->n_part = n;
    memcpy(mass->part, form->part, (size_t)n * sizeof *mass->part);
    for (int64_t i = 0; !status && i < n; i++) {
        const em_mass_form own = form_of(&form->part[i]);
        status = em_mass_of(&own, number, &mass->own[i]);
        number += own.ops->size(&own);
    }
    return status;
}

static void write(const em_mass *base, const em_mass_form *form, double *number)
{
    const block_mass *mass = (const block_mass *)base;

    for (int64_t i = 0; i < form->n_part; i++) {
        const em_mass_form own = form_of(&form->part[i]);
        own.ops->write(mass->own[i], &own, number);
        number += own.ops->size(&own);
    }
}

/* Copies n rows of a panel to the first columns of another panel. */
static void copy_rows(int64_t n, int64_t count, const double *from, int64_t from_stride, double *to,
                      int64_t to_stride)
{
    for (int64_t c = 0; c < n; c++)
        memcpy(to + c * to_stride, from + c * from_stride, (size_t)count * sizeof *to);
}

static void map(const em_mass *base, em_map map, int64_t n_chain, const double *x, double *out)
{
    const block_mass *mass = (const block_mass *)base;
    const int64_t stride = base->stride;

    for (int64_t c = 0; c < n_chain; c += CHAINS)
        for (int64_t i = 0; i < mass->n_part; i++) {
            const int64_t n = n_chain - c < CHAINS ? n_chain - c : CHAINS;
            const em_part *part = &mass->part[i];
            const em_mass *own[CHAINS];
            const int64_t at = c * stride + part->first, own_stride = mass->own[i]->stride;
            for (int64_t k = 0; k < n; k++)
                own[k] = mass->own[i];
            memset(mass->in, 0, (size_t)(n * own_stride) * sizeof *mass->in);
            copy_rows(n, part->count, x + at, stride, mass->in, own_stride);
            em_mass_apply(own, map, n, mass->in, mass->out);
            copy_rows(n, part->count, mass->out, own_stride, out + at, stride);
        }
    for (int64_t c = 0; c < n_chain; c++)
        memset(out + c * stride + base->dim, 0, (size_t)(stride - base->dim) * sizeof *out);
}

static em_status matrix(const em_mass *base, em_map map, double *out)
{
    const block_mass *mass = (const block_mass *)base;
    const int64_t n = base->dim;
    em_status status = EM_OK;

    memset(out, 0, (size_t)(n * n) * sizeof *out);
    for (int64_t i = 0; !status && i < mass->n_part; i++) {
        const em_part *part = &mass->part[i];
        EM_SCOPED double *own = NULL;
        status = em_allocate_doubles(part->count * part->count, &own);
        status = status ? status : em_mass_matrix(mass->own[i], map, EM_MASS_DENSE, own);
        if (!status)
            copy_rows(part->count, part->count, own, part->count, out + part->first * (n + 1), n);
    }
    return status;
}

static double log_det(const em_mass *base)
{
    const block_mass *mass = (const block_mass *)base;
    double sum = 0;

    for (int64_t i = 0; i < mass->n_part; i++)
        sum += mass->own[i]->ops->log_det(mass->own[i]);
    return sum;
}

static em_status range(const em_mass *base, double *smallest, double *largest)
{
    const block_mass *mass = (const block_mass *)base;
    em_status status = EM_OK;

    *smallest = INFINITY;
    *largest = 0;
    for (int64_t i = 0; !status && i < mass->n_part; i++) {
        double low, high;
        status = mass->own[i]->ops->range(mass->own[i], &low, &high);
        *smallest = fmin(*smallest, low);
        *largest = fmax(*largest, high);
    }
    return status;
}

const em_mass_ops em_mass_block_diagonal = {
    .struct_size = sizeof(block_mass),
    .name = "block_diagonal",
    .doc = "the covariances within each block of the parameters",
    .structure = EM_MASS_DENSE,
    .size = size,
    .arrays = arrays,
    .spread = spread,
    .set_up = set_up,
    .release = release,
    .write = write,
    .map = map,
    .matrix = matrix,
    .log_det = log_det,
    .range = range,
};
