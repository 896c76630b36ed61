#include "adaptation/trajectory/tree_depth.h"

#include <math.h>

static const double most_ended = 1.0 / 4;

void em_tree_depth_observe(double depth, bool saturated, double *count)
{
    const double wanted = depth + saturated;

    count[wanted < EM_DEPTHS ? (int)wanted : EM_DEPTHS - 1]++;
}

int64_t em_tree_depth_limit(const double *count, double ratio)
{
    double all = 0, deeper = 0;
    int depth = EM_DEPTHS - 1;

    for (int d = 0; d < EM_DEPTHS; d++)
        all += count[d];
    while (depth > 0 && deeper + count[depth] <= most_ended * all)
        deeper += count[depth--];
    const double wanted = depth + rint(log2(ratio));
    return !(wanted < EM_DEPTHS - 1) || all == 0 ? 0 : wanted < 1 ? 1 : (int64_t)wanted;
}
