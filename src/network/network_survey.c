/* What is unusual about the training data: classes without observations, and numbers that are large
 * beside the priors. */
#include "base/memory.h"
#include "base/text.h"
#include "emass/data.h"
#include "network/network.h"
#include "par/world.h"

#include <inttypes.h>
#include <math.h>

enum { MOST_CLASSES_SHOWN = 20, WORDS = 512 };

/* A column whose numbers exceed this many units of its prior has most of its numbers far from the
 * prior. */
static const double large = 10;

/* Counts in how many observations each input is large, and last the response, in count[n_input +
 * 1]. */
static void count_large(const em_network *self, int64_t *count)
{
    const em_examples *e = self->train;
    const double scale = self->options->sigma_scale;

    for (int64_t i = 0; i < e->rows.count; i++) {
        for (int64_t j = 0; j < e->n_input; j++) {
            const double x = e->value[i * e->n_column + e->column[j]];
            count[j] += fabs(x - self->centre[j]) * self->factor[j] > large;
        }
        count[e->n_input] += fabs(em_examples_response(e, i)) > large * scale;
    }
}

static em_status survey_sizes(em_network *self)
{
    const em_examples *e = self->train;
    const int64_t half = e->rows.total / 2;
    EM_SCOPED int64_t *count = NULL;
    em_status status = em_allocate(e->n_input + 1, sizeof *count, &count);

    if (!status)
        count_large(self, count);
    status = em_network_sum(self, status, e->n_input + 1, count);
    self->survey.first_large = -1;
    for (int64_t j = 0; !status && j < e->n_input; j++)
        if (count[j] > half) {
            self->survey.n_large++;
            self->survey.first_large = self->survey.first_large < 0 ? j : self->survey.first_large;
        }
    self->survey.large_response = !status && self->output == EM_OUTPUT_NORMAL &&
                                  isnan(self->options->sigma) && count[e->n_input] > half;
    return status;
}

static em_status survey_classes(em_network *self)
{
    int64_t *count = NULL;
    em_status status = em_own_all(&self->memory, EM_ARRAY(count, self->n_output));

    for (int64_t i = 0; !status && i < self->train->rows.count; i++)
        count[(int64_t)em_examples_response(self->train, i)]++;
    status = em_network_sum(self, status, self->n_output, count);
    self->survey.of_class = count;
    return status;
}

/* Lists the classes without observations: "1, 3", or "1, 3, ..." if there are many, or "" if there
 * are none. */
static void list_empty(const em_network *self, char words[static WORDS])
{
    int n = 0;

    words[0] = '\0';
    for (int64_t k = 0; k < self->n_output && n <= MOST_CLASSES_SHOWN; k++) {
        if (self->survey.of_class[k] > 0)
            continue;
        if (n++ == MOST_CLASSES_SHOWN)
            em_append(WORDS, words, ", ...");
        else
            em_append(WORDS, words, "%s%" PRId64, *words ? ", " : "", k);
    }
}

/* Writes sentence number i about the data; false: there is none. */
static bool warning_at(const em_network *self, int i, char words[static WORDS])
{
    const em_network_survey *s = &self->survey;
    const em_examples *e = self->train;
    char empty[WORDS] = "";

    words[0] = '\0';
    if (i == 0 && s->of_class) {
        list_empty(self, empty);
        if (*empty)
            em_append(WORDS, words,
                      "%s: no training observation has the label %s, of 0 to %" PRId64
                      ": labels are 0, 1, ..., without gaps",
                      e->path, empty, self->n_output - 1);
    }
    if (i == 1 && s->n_large > 0)
        snprintf(words, WORDS,
                 "%s: most values of %" PRId64 " of %" PRId64
                 " inputs are above %g in size (first: %s): the priors of the weights suit inputs "
                 "of size 1 (model.standardise: true)",
                 e->path, s->n_large, e->n_input, large,
                 em_excerpt_of(e->table->name[e->column[s->first_large]]).text);
    if (i == 2 && s->large_response)
        snprintf(words, WORDS,
                 "%s: most responses are above %g in size, %g times model.sigma_scale: divide "
                 "them by their standard deviation, and subtract their mean, or raise "
                 "model.sigma_scale and model.prior_scale",
                 e->path, large * self->options->sigma_scale, large);
    return i < 3;
}

em_status em_network_make_survey(em_network *self, bool warns)
{
    char words[WORDS];
    em_status status = EM_OK;

    if (self->output == EM_OUTPUT_SOFTMAX)
        status = survey_classes(self);
    if (!status && !self->train->images)
        status = survey_sizes(self);
    for (int i = 0; !status && warns && warning_at(self, i, words); i++)
        if (*words)
            em_say("warning: %s", words);
    return status;
}

void em_network_describe_survey(const em_network *self, FILE *out)
{
    const int64_t *count = self->survey.of_class;
    char words[WORDS];

    if (count && self->n_output <= MOST_CLASSES_SHOWN) {
        fprintf(out, "# classes    ");
        for (int64_t k = 0; k < self->n_output; k++)
            fprintf(out, "%s%" PRId64 ": %" PRId64, k > 0 ? ", " : "", k, count[k]);
        fprintf(out, " training observations\n");
    } else if (count) {
        int64_t least = count[0], most = count[0];
        for (int64_t k = 1; k < self->n_output; k++) {
            least = count[k] < least ? count[k] : least;
            most = count[k] > most ? count[k] : most;
        }
        fprintf(out,
                "# classes    %" PRId64 ", of %" PRId64 " to %" PRId64 " training observations\n",
                self->n_output, least, most);
    }
    for (int i = 0; warning_at(self, i, words); i++)
        if (*words)
            fprintf(out, "# warning    %s\n", words);
}
