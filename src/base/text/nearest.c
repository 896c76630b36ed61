#include "base/text/nearest.h"

#include "base/memory.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { LONGEST = 63 }; /* letters of a name that is worth a suggestion */

static bool are_equal(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The edit distance of two names. d[i][j] is the distance between the first i letters of a and the
 * first j letters of b. */
static int distance_between(const char *a, const char *b)
{
    const int m = (int)strlen(a), n = (int)strlen(b);
    int d[LONGEST + 1][LONGEST + 1];

    for (int i = 0; i <= m; i++)
        for (int j = 0; j <= n; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = (int)em_least(d[i - 1][j], d[i][j - 1]) + 1;
            d[i][j] = (int)em_least(d[i][j], d[i - 1][j - 1] + !are_equal(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && are_equal(a[i - 1], b[j - 2]) && are_equal(a[i - 2], b[j - 1]))
                d[i][j] = (int)em_least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[m][n];
}

em_nearest em_nearest_start(const char *wanted)
{
    return (em_nearest){wanted, NULL, (int)(strnlen(wanted, LONGEST) / 3) + 2};
}

void em_nearest_offer(em_nearest *search, const char *candidate)
{
    if (strlen(search->wanted) > LONGEST || strlen(candidate) > LONGEST)
        return;
    const int distance = distance_between(search->wanted, candidate);
    if (distance < search->distance) {
        search->distance = distance;
        search->name = candidate;
    }
}
