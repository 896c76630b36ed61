#include "model/vector_lengths.h"

#include <stdbool.h>
#include <string.h>

static void set(int64_t first, int64_t end, int64_t *length)
{
    for (int64_t i = first; i < end; i++)
        length[i] = end - first;
}

/* Whether two names are those of numbers of one vector, such as beta.1 and beta.2. */
static bool are_of_one_vector(const char *a, const char *b)
{
    const size_t n = strcspn(a, ".["), m = strcspn(b, ".[");

    return n == m && a[n] != 0 && strncmp(a, b, n) == 0;
}

void em_model_vector_lengths(const em_model *model, int64_t dim, int64_t *length)
{
    const char *const *name = model->unconstrained_name;
    int64_t end = 0;

    set(0, dim, length);
    for (int64_t first = 0; name && first < dim; first = end) {
        for (end = first + 1; end < dim && are_of_one_vector(name[first], name[end]);)
            end++;
        set(first, end, length);
    }
    for (int64_t p = 0; !name && p < model->n_parameter; p++) {
        const int64_t size = em_variable_size(&model->parameter[p]);
        if (end + size <= dim)
            set(end, end + size, length);
        end += size;
    }
}
