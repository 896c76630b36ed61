/* "Did you mean": the name that a mistyped one is nearest to. */
#pragma once

/* A search in progress. `name` is the best candidate so far, borrowed; NULL: none is near. */
typedef struct em_nearest {
    const char *wanted;
    const char *name;
    int distance; /* a candidate has to be nearer than this */
} em_nearest;

/* Starts a search for what `wanted` may have meant: up to one edit for every three letters, plus
 * one. Local. */
em_nearest em_nearest_start(const char *wanted);

/* Offers a candidate. The distance is the number of letters inserted, deleted, replaced or swapped
 * with the next one, upper and lower case being equal (optimal string alignment; Damerau 1964).
 * Local. */
void em_nearest_offer(em_nearest *search, const char *candidate);
