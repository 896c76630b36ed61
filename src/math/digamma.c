#include "math/digamma.h"

#include <math.h>

/* psi(x) = psi(x + 1) - 1/x up to 8; there the asymptotic series, whose next term is below 1e-14.
 */
double em_digamma(double x)
{
    double below = 0;

    for (; x < 8; x += 1)
        below += 1 / x;
    const double y = 1 / (x * x);
    const double series =
        y *
        (1.0 / 12 -
         y * (1.0 / 120 -
              y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));

    return log(x) - 0.5 / x - series - below;
}
