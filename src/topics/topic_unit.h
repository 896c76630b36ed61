/*
 * The unit of sums over documents and tokens other than counts. The terms are integers, so that the
 * sums do not depend on the assignment of documents to shards.
 */
#pragma once

#include <math.h>
#include <stdint.h>

#define EM_TOPIC_UNIT 0x1p-20

/* Local. */
static inline int64_t em_topic_in_units(double x)
{
    return (int64_t)llround(x / EM_TOPIC_UNIT);
}
