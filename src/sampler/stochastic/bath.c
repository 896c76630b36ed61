#include "sampler/stochastic/bath.h"

#include "base/clones.h"
#include "base/memory.h"
#include "math/finite.h"
#include "math/linalg.h"
#include "math/simd/panel.h"

#include <math.h>
#include <string.h>

void em_spread(em_structure from, em_structure to, int64_t dim, const double *x, double *out)
{
    if (from == to) {
        memcpy(out, x, (size_t)em_mass_size(to, dim) * sizeof *out);
        return;
    }
    memset(out, 0, (size_t)(dim * dim) * sizeof *out);
    for (int64_t i = 0; i < dim; i++)
        out[i * dim + i] = x[i];
}

/* ---- the frame ---- */

/* With A = R R^T and R^-1 V R^-T = sum_k v_k e_k e_k^T: y_k = R e_k. `work` holds three matrices.
 */
static em_status bath_frame_dense(int64_t n, const double *A, const double *V, double *y,
                                  double *value, double *work)
{
    double *root = work, *inverse = root + n * n, *scratch = inverse + n * n;

    memcpy(root, A, (size_t)(n * n) * sizeof *root);
    memset(value, 0, (size_t)n * sizeof *value);
    em_status status = em_cholesky(n, root, n);
    if (status || !V) {
        em_transpose(n, root, y);
        return status;
    }
    memcpy(inverse, root, (size_t)(n * n) * sizeof *inverse);
    status = em_invert_lower(n, inverse, n);
    if (status)
        return status;
    em_multiply(n, inverse, V, n, y);
    em_transpose(n, inverse, scratch);
    em_multiply(n, y, scratch, n, inverse);
    status = em_all_finite(n * n, inverse)
                 ? em_eigen(n, inverse, n, value)
                 : em_fail(EM_ENUMERIC,
                           "the noise of minibatch gradients is not finite, because chains have "
                           "left the region of the posterior: lower sampler.step_size");
    if (status)
        return status;
    em_transpose(n, root, scratch);
    em_multiply(n, inverse, scratch, n, y);
    return status;
}

em_status em_frame(em_structure structure, int64_t dim, const double *A, const double *V, double *y,
                   double *value)
{
    EM_SCOPED double *work = NULL;

    if (structure == EM_MASS_DIAG) {
        for (int64_t i = 0; i < dim; i++) {
            y[i] = sqrt(A[i]);
            value[i] = V ? V[i] / A[i] : 0;
        }
        return em_all_positive(dim, A) ? EM_OK : EM_NONFINITE;
    }
    em_status status = em_allocate_doubles(3 * dim * dim, &work);
    return status ? status : bath_frame_dense(dim, A, V, y, value, work);
}

/* Copies an array to one with padded rows. */
static em_status bath_pad(em_structure structure, int64_t dim, const double *x, double **out)
{
    const int64_t stride = em_stride(dim), n_row = structure == EM_MASS_DENSE ? dim : 1;
    em_status status = em_allocate(n_row * stride, sizeof(double), out);

    for (int64_t i = 0; !status && i < n_row; i++)
        memcpy(*out + i * stride, x + i * dim, (size_t)dim * sizeof *x);
    return status;
}

static void bath_destroy(em_bath **bath)
{
    if (*bath)
        em_release_all(&(*bath)->basis, &(*bath)->value, &(*bath)->decay);
    em_release(bath);
}

em_status em_bath_create(em_structure structure, int64_t dim, const double *A, const double *V,
                         em_bath **out)
{
    const int64_t size = em_mass_size(structure, dim);
    EM_SCOPED double *y = NULL;
    em_status status = em_allocate(1, sizeof **out, out);
    em_bath *bath = *out;

    status = status ? status : em_allocate_doubles(size + dim, &y);
    status = status ? status : em_frame(structure, dim, A, V, y, y + size);
    status = status ? status : bath_pad(structure, dim, y, &bath->basis);
    if (!status && V)
        status = bath_pad(EM_MASS_DIAG, dim, y + size, &bath->value);
    if (status) {
        bath_destroy(out);
        return status;
    }
    bath->structure = structure;
    bath->dim = dim;
    bath->stride = em_stride(dim);
    for (int64_t k = 0; V && k < dim; k++)
        bath->share = fmax(bath->share, bath->value[k]);
    bath->same_basis = structure == EM_MASS_DIAG && em_all_equal(dim, bath->basis);
    bath->same_value = V && em_all_equal(dim, bath->value);
    return EM_OK;
}

em_status em_bath_of_mass(const em_mass *mass, const em_noise *noise, em_bath **out)
{
    const int64_t dim = mass->dim;
    const em_structure structure =
        noise && noise->structure == EM_MASS_DENSE ? EM_MASS_DENSE : mass->ops->structure;
    const int64_t size = em_mass_size(structure, dim);
    EM_SCOPED double *M = NULL;
    em_status status = em_allocate_doubles(2 * size, &M);

    *out = NULL;
    if (status)
        return status;
    double *V = M + size;
    status = em_mass_matrix(mass, EM_MAP_SOLVE, structure, M);
    if (noise)
        em_spread(noise->structure, structure, dim, noise->covariance, V);
    return status ? status : em_bath_create(structure, dim, M, noise ? V : NULL, out);
}

em_status em_bath_set_decay(em_bath *bath, em_structure structure, const double *decay)
{
    bath->decay_structure = structure;
    bath->same_decay = structure == EM_MASS_DIAG && em_all_equal(bath->dim, decay);
    return bath_pad(structure, bath->dim, decay, &bath->decay);
}

void em_bath_fix(em_bath *bath, double b)
{
    for (int64_t k = 0; bath->value && k < bath->dim; k++) {
        const double f = sqrt(fmax(0, 1 - b * bath->value[k]));
        if (bath->structure == EM_MASS_DIAG)
            bath->basis[k] *= f;
        else
            for (int64_t i = 0; i < bath->stride; i++)
                bath->basis[k * bath->stride + i] *= f;
    }
    bath->same_basis &= !bath->value || bath->same_value;
    em_release(&bath->value);
    bath->share *= b;
}

bool em_bath_is_diag(em_bath *const *bath, int64_t n_chain)
{
    for (int64_t c = 0; c < n_chain; c++)
        if (bath[c] && (bath[c]->structure != EM_MASS_DIAG ||
                        (bath[c]->decay && bath[c]->decay_structure != EM_MASS_DIAG)))
            return false;
    return true;
}

/* The bath of some coordinates, as em_mass_coordinates is the mass of some. */
em_bath em_bath_coordinates(const em_bath *bath, int64_t first, int64_t count)
{
    const bool is_last = first + count == bath->dim;
    em_bath coordinates = *bath;

    coordinates.dim = count;
    coordinates.stride = em_stride(count);
    coordinates.basis += bath->same_basis && !is_last ? 0 : first;
    if (bath->value)
        coordinates.value += bath->same_value && !is_last ? 0 : first;
    if (bath->decay)
        coordinates.decay += bath->same_decay && !is_last ? 0 : first;
    return coordinates;
}

/* out[c] = x[c] times a diagonal or a matrix. */
static void bath_apply(em_structure structure, int64_t dim, const double *matrix, int64_t n_chain,
                       const double *x, double *out)
{
    const int64_t stride = em_stride(dim);

    if (structure == EM_MASS_DENSE)
        em_panel_product(n_chain, dim, dim, x, stride, matrix, stride, out, stride);
    else
        em_scale_rows(n_chain, stride, matrix, x, out);
}

/* The end of the run of chains from `first` on that share a bath. */
static int64_t bath_run_end(em_bath *const *bath, int64_t n_chain, int64_t first)
{
    int64_t last = first + 1;

    while (last < n_chain && bath[last] == bath[first])
        last++;
    return last;
}

void em_bath_noise(em_bath *const *bath, int64_t n_chain, double b, const double *eps, double *z,
                   double *out)
{
    const int64_t stride = bath[0]->stride;

    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t k = 0; bath[c]->value && k < bath[c]->dim; k++)
            z[c * stride + k] *= sqrt(fmax(0, 1 - b * eps[c] * bath[c]->value[k]));
    for (int64_t first = 0, last; first < n_chain; first = last) {
        last = bath_run_end(bath, n_chain, first);
        bath_apply(bath[first]->structure, bath[first]->dim, bath[first]->basis, last - first,
                   z + first * stride, out + first * stride);
    }
}

double em_bath_share(em_bath *const *bath, int64_t n_chain, double b, const double *eps)
{
    double largest = 0;

    for (int64_t c = 0; c < n_chain && bath[c]; c++)
        largest = fmax(largest, bath[c]->value ? b * eps[c] * bath[c]->share : bath[c]->share);
    return largest;
}

void em_bath_decay(em_bath *const *bath, int64_t n_chain, double *x, double *work)
{
    const int64_t stride = bath[0]->stride;

    for (int64_t first = 0, last; first < n_chain; first = last) {
        const em_bath *b = bath[first];
        double *row = x + first * stride, *out = work + first * stride;
        last = bath_run_end(bath, n_chain, first);
        bath_apply(b->decay_structure, b->dim, b->decay, last - first, row, out);
        memcpy(row, out, (size_t)((last - first) * stride) * sizeof *row);
    }
}

/* x <- E x + h g + Y z, if E and Y are diagonal. */
EM_CLONES static void bath_kick_row(int64_t n, const double *restrict decay, double h,
                                    const double *restrict g, const double *restrict basis,
                                    const double *restrict z, double *restrict x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = decay[i] * x[i] + h * g[i] + basis[i] * z[i];
}

/* x <- x + h g + noise. The products E x and Y z were computed before. */
EM_CLONES static void bath_add_row(int64_t n, double h, const double *restrict g,
                                   const double *restrict noise, double *restrict x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] + h * g[i] + noise[i];
}

void em_bath_kick(em_bath *const *bath, int64_t n_chain, double fraction, const double *eps,
                  const double *g, double *z, double *work, double *x)
{
    const int64_t stride = bath[0]->stride;

    if (em_bath_is_diag(bath, n_chain)) {
        for (int64_t c = 0, row = 0; c < n_chain; c++, row += stride)
            bath_kick_row(stride, bath[c]->decay, fraction * eps[c], g + row, bath[c]->basis,
                          z + row, x + row);
        return;
    }
    em_bath_decay(bath, n_chain, x, work);
    em_bath_noise(bath, n_chain, 1, eps, z, work);
    for (int64_t c = 0, row = 0; c < n_chain; c++, row += stride)
        bath_add_row(stride, fraction * eps[c], g + row, work + row, x + row);
}

/* ---- the baths of a block ---- */

em_status em_baths_create(em_owner *owner, int64_t n_chain, em_baths *out)
{
    *out = (em_baths){.n_chain = n_chain};
    return em_own_all(owner, EM_ARRAY(out->bath, n_chain), EM_ARRAY(out->key, n_chain));
}

void em_baths_destroy(em_baths *baths)
{
    for (int64_t c = 0; baths->bath && c < baths->n_chain; c++) {
        if (c + 1 == baths->n_chain || baths->bath[c] != baths->bath[c + 1])
            bath_destroy(&baths->bath[c]);
        baths->bath[c] = NULL;
    }
}

static em_bath_key bath_key_of(const em_baths *baths, const em_step_context *context, int64_t c)
{
    const em_noise *noise = baths->corrects && context->noise ? context->noise[c] : NULL;

    return (em_bath_key){context->mass[c], noise, context->mass[c]->version,
                         noise ? noise->version : 0,
                         baths->of_any_step ? 0 : context->step_size[c]};
}

static bool bath_same_key(const em_bath_key *a, const em_bath_key *b)
{
    return a->mass_version == b->mass_version && !a->noise == !b->noise &&
           a->noise_version == b->noise_version && a->step_size == b->step_size;
}

static bool bath_up_to_date(const em_baths *baths, const em_step_context *context)
{
    for (int64_t c = 0; c < baths->n_chain; c++) {
        const em_bath_key key = bath_key_of(baths, context, c);
        if (!baths->bath[c] || !bath_same_key(&key, &baths->key[c]))
            return false;
    }
    return true;
}

em_status em_baths_update(em_baths *baths, const em_step_context *context, const void *self)
{
    em_status status = EM_OK;

    if (bath_up_to_date(baths, context))
        return EM_OK;
    em_baths_destroy(baths);
    for (int64_t c = 0; !status && c < baths->n_chain; c++) {
        baths->key[c] = bath_key_of(baths, context, c);
        if (c > 0 && bath_same_key(&baths->key[c], &baths->key[c - 1]))
            baths->bath[c] = baths->bath[c - 1];
        else
            status = baths->make(self, &baths->key[c], &baths->bath[c]);
    }
    if (status == EM_NONFINITE)
        return em_fail(EM_EMODEL, "the mass or friction of a chain is not positive definite");
    return status;
}
