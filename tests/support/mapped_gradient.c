#include "support/mapped_gradient.h"

#include "support/tap.h"

#include <math.h>
#include <string.h>

enum { MOST = 32 };

double mapped_density(const em_noncentring *map, mapped_law *law, const double *z)
{
    double x[MOST], unused[MOST];

    memcpy(x, z, (size_t)map->dim * sizeof *z);
    const double log_jacobian = em_noncentring_to_model(map, x, NULL);
    return law(x, unused) + log_jacobian;
}

void check_mapped_gradient(const em_noncentring *map, mapped_law *law, const double *z, double size,
                           double pulled, double pushed)
{
    static const double h = 1e-5;
    const size_t bytes = (size_t)map->dim * sizeof *z;
    double x[MOST], of_x[MOST], g[MOST], moved[MOST];

    ck_assert_int_le(map->dim, MOST);
    memcpy(x, z, bytes);
    em_noncentring_to_model(map, x, map->at);
    law(x, of_x);
    memcpy(g, of_x, bytes);
    em_noncentring_pull(map, z, map->at, g);
    memcpy(moved, z, bytes);
    for (int64_t i = 0; i < map->dim; i++) {
        moved[i] = z[i] + h;
        const double up = mapped_density(map, law, moved);
        moved[i] = z[i] - h;
        const double slope = (up - mapped_density(map, law, moved)) / (2 * h);
        moved[i] = z[i];
        ck_assert_double_eq_tol(g[i], slope, pulled * (size + fabs(slope)));
    }
    em_noncentring_push(map, z, map->at, g);
    for (int64_t i = 0; i < map->dim; i++)
        ck_assert_double_eq_tol(g[i], of_x[i], pushed * (size + fabs(of_x[i])));
}
