/* A monotone function with one long tail, its derivatives and its inverse. */
#include "math/tail_map.h"

#include <math.h>

static const double centre = 0.5, q_of_0 = -0.48121182505960347, /* asinh(-1/2) */
    tail_of_0 = 2.6180339887498949;                              /* e^(-2 q) there */

double em_tail_map(double a, double z, double *slope, double *log_slope_by)
{
    const double side = a < 0 ? -1 : 1, size = fabs(a), y = side * z - centre,
                 root = sqrt(y * y + 1), q = asinh(y),
                 tail = size * exp(-2 * q); /* q' = 1 / root */

    *slope = (1 + 2 * tail) / root;
    *log_slope_by = -side * (y / root + 4 * tail / (1 + 2 * tail)) / root;
    return side * (q - q_of_0 + size * tail_of_0 - tail);
}

/* Q is concave in q, so Newton's method ascends to q from below it. If q is positive, Q and 0 are
 * below it; else Q, and the q at which the term with a alone equals Q. */
double em_tail_map_inverse(double a, double t)
{
    const double side = a < 0 ? -1 : 1, size = fabs(a), of_q = side * t + q_of_0 - size * tail_of_0;
    double q = of_q, before = -INFINITY;

    if (of_q < -size)
        q = fmax(of_q, -0.5 * log(-of_q / size));
    while (q > before) {
        before = q;
        const double tail = size * exp(-2 * q);
        q += (of_q - (q - tail)) / (1 + 2 * tail);
    }
    return side * (sinh(before) + centre);
}
