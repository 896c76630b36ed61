#include "app/command/compare_draws.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { MOST_NUMBERS = 1 << 20 }; /* in memory at a time, of each file */

static bool differ(double a, double b, bool bits)
{
    return memcmp(&a, &b, sizeof a) != 0 && (bits || !isnan(a) || !isnan(b));
}

void em_compare_block(const em_draw_pair *pair, em_difference *out)
{
    const int64_t n = pair->n * pair->size;

    for (int64_t k = 0; k < n; k++) {
        const int64_t draw = pair->first + k / pair->size;
        const double a = pair->a[k], b = pair->b[k];

        if (!differ(a, b, pair->bits))
            continue;
        if (out->count == 0 || draw < out->draw)
            *out = (em_difference){out->count, out->of, pair->chain, draw, k % pair->size, {a, b}};
        out->count++;
    }
    out->of += n;
}

em_status em_compare_draws(em_reader **reader, const int64_t *variable, bool bits,
                           em_difference *out)
{
    const int64_t n_chain[] = {em_reader_n_chain(reader[0]), em_reader_n_chain(reader[1])};
    const int64_t n_draw[] = {em_reader_n_draw(reader[0]), em_reader_n_draw(reader[1])};
    const int64_t size = em_reader_variable_at(reader[0], variable[0])->size;
    const int64_t chains = n_chain[0] < n_chain[1] ? n_chain[0] : n_chain[1];
    const int64_t draws = n_draw[0] < n_draw[1] ? n_draw[0] : n_draw[1];
    const int64_t fit = size < MOST_NUMBERS ? MOST_NUMBERS / (size > 0 ? size : 1) : 1;
    double *value[2] = {NULL, NULL};
    em_status status = em_allocate_doubles(fit * size, &value[0]);

    status = status ? status : em_allocate_doubles(fit * size, &value[1]);
    for (int64_t c = 0; c < chains; c++)
        for (int64_t first = 0; !status && first < draws; first += fit) {
            const int64_t n = draws - first < fit ? draws - first : fit;
            for (int i = 0; !status && i < 2; i++)
                status = em_reader_draws(reader[i], variable[i], c, 1, first, n, value[i]);
            if (!status)
                em_compare_block(&(em_draw_pair){value[0], value[1], size, c, first, n, bits}, out);
        }
    em_release_all(&value[0], &value[1]);
    return status;
}
