#include "support/twin_mass.h"

#include "support/array_mass.h"

static void twin_map(const em_mass *base, em_map map, int64_t n_chain, const double *x, double *out)
{
    const twin_mass *twin = (const twin_mass *)base;
    const em_mass *const *from = map == EM_MAP_MOMENTUM ? &twin->other : &twin->good;

    for (int64_t c = 0; c < n_chain; c++)
        em_mass_apply(from, map, 1, x + c * base->stride, out + c * base->stride);
}

void twin_of(const em_mass *good, const em_mass *other, twin_mass *twin)
{
    static const em_mass_ops ops = {.name = "twin", .map = twin_map};

    *twin = (twin_mass){*good, good, other};
    if (good->scale[EM_MAP_MOMENTUM] && other->scale[EM_MAP_MOMENTUM])
        twin->base.scale[EM_MAP_MOMENTUM] = other->scale[EM_MAP_MOMENTUM];
    else
        twin->base.ops = &ops;
}

double twin_worst_z(em_grid *grid, kernel_run run, em_mass *good, em_mass *other, visited *moves)
{
    enum { N_DRAW = 4000 };
    twin_mass mass;

    twin_of(good, other ? other : good, &mass);
    run.mass = &mass.base;
    const double z = law_worst_z(&law_of_three, grid, &run, N_DRAW, moves);
    em_mass_destroy(&good);
    em_mass_destroy(&other);
    return z;
}

const double dense_of_3[] = {1.0, 0.3, 0.0, 0.3, 0.7, 0.1, 0.0, 0.1, 0.4};
const double diag_of_3[] = {0.5, 1.5, 0.2};

em_mass *multiple_of(em_structure structure, int64_t dim, const double *inverse, double factor)
{
    enum { MOST = 64 };
    double scaled[MOST];
    em_mass *mass = NULL;

    ck_assert_int_le(em_mass_size(structure, dim), MOST);
    for (int64_t i = 0; i < em_mass_size(structure, dim); i++)
        scaled[i] = factor * inverse[i];
    ck_assert_int_eq(mass_of_array(structure, dim, scaled, &mass), EM_OK);
    return mass;
}

em_mass *low_rank_of_3(double value)
{
    const double x = sqrt(1.0 / 3), number[] = {1, 0.7, 0.5, value, x, x, x};
    const em_mass_form form = {.ops = &em_mass_low_rank, .dim = 3, .most_rank = 1};
    em_mass *mass = NULL;

    ck_assert_int_eq(em_mass_of(&form, number, &mass), EM_OK);
    return mass;
}

em_mass *blocks_of_3(double factor)
{
    static const em_part part[] = {{0, 2, EM_MASS_DENSE}, {2, 1, EM_MASS_DIAG}};
    const double number[] = {factor, 0.5 * factor, 0.5 * factor, 0.7 * factor, 0.3 * factor};
    const em_mass_form form = {.ops = &em_mass_block_diagonal, .dim = 3, .n_part = 2, .part = part};
    em_mass *mass = NULL;

    ck_assert_int_eq(em_mass_of(&form, number, &mass), EM_OK);
    return mass;
}
