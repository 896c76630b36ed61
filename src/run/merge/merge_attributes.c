#include "run/merge/merge_state.h"

#include "base/memory.h"
#include "par/world.h"
#include "run/config/config_folder.h"

#include <math.h>
#include <string.h>

/* The rule by which attributes of the files are combined. */
typedef enum rule { SAME, SUM, SUM_OF_DRAWS, SMALLEST_OF_DRAWS, LARGEST, FIRST, DROPPED } rule;

/* The rule for an attribute. `cut`: only some draws are used, so attributes about all draws of a
 * file do not apply. */
static rule rule_of(const char *name, bool cut)
{
    static const struct {
        const char *name;
        rule rule;
    } known[] = {
        {"config", FIRST},
        {"cut", DROPPED},
        {"divergences", SUM_OF_DRAWS},
        {"ended_by", DROPPED},
        {"ess_limit", SUM},
        {"failed_evaluations", DROPPED},
        {"failed_reports", SUM},
        {"iterations", SUM_OF_DRAWS},
        {"mode_search_log_mass", LARGEST},
        {"moved_chains", SUM},
        {"n_evaluations", SUM},
        {"n_failed_evaluations", SUM},
        {"redrawn_starts", SUM},
        {"reinitialised_chains", SUM},
        {"rescued_chains", SUM}, /* the same, in files of earlier versions */
        {"smallest_e_bfmi", SMALLEST_OF_DRAWS},
        {"superchains", SUM},
        {"checkpoint_left_out", DROPPED},
        {"complete", DROPPED},
        {EM_HOME_ATTRIBUTE, DROPPED},
        {"converged", DROPPED},
        {"created_at", DROPPED},
        {"creation_library", DROPPED},
        {"creation_library_language", DROPPED},
        {"creation_library_version", DROPPED},
        {"groups", DROPPED},
        {"host", DROPPED},
        {"inference_library", DROPPED},
        {"inference_library_version", DROPPED},
        {"merged", DROPPED},
        {"ranks", DROPPED},
        {"sampling_time", DROPPED},
        {"smallest_ess", DROPPED},
        {"verdict", DROPPED},
        {"worst_r_hat", DROPPED},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0)
            return cut && (known[i].rule == SUM_OF_DRAWS || known[i].rule == SMALLEST_OF_DRAWS)
                       ? DROPPED
                       : known[i].rule;
    return SAME;
}

static double value_of(const em_contents_attribute *attribute)
{
    return attribute->kind == EM_ATTRIBUTE_INT ? (double)attribute->integer : attribute->real;
}

static em_status put_value(em_merge_state *m, const em_contents_attribute *like, double value)
{
    return like->kind == EM_ATTRIBUTE_INT ? em_writer_put_int(m->writer, like->name, (int64_t)value)
                                          : em_writer_put_real(m->writer, like->name, value);
}

static em_status put_same(em_merge_state *m, const em_contents_attribute *a)
{
    return a->kind == EM_ATTRIBUTE_TEXT  ? em_writer_put_text(m->writer, a->name, a->text)
           : a->kind == EM_ATTRIBUTE_INT ? em_writer_put_int(m->writer, a->name, a->integer)
                                         : em_writer_put_real(m->writer, a->name, a->real);
}

static em_status merge_attribute(em_merge_state *m, const em_contents_attribute *first)
{
    const rule how = rule_of(first->name, m->request->cut != NULL);
    const bool is_number = first->kind != EM_ATTRIBUTE_TEXT;
    double sum = 0, smallest = INFINITY, largest = -INFINITY;
    bool same = true;

    for (int64_t i = 0; i < m->request->n_input; i++) {
        const em_contents_attribute *a = em_contents_attribute_of(m->contents[i], first->name);
        same = same && a && a->kind == first->kind && strcmp(a->text, first->text) == 0;
        if (a && a->kind != EM_ATTRIBUTE_TEXT) {
            sum += value_of(a);
            smallest = fmin(smallest, value_of(a));
            largest = fmax(largest, value_of(a));
        }
    }
    if (how == FIRST || (how == SAME && same))
        return put_same(m, first);
    if (how == SAME || how == DROPPED || !is_number)
        return EM_OK;
    return put_value(m, first,
                     how == SMALLEST_OF_DRAWS ? smallest
                     : how == LARGEST         ? largest
                                              : sum);
}

/* Writes the attributes of each file to the group `runs`. */
em_status em_merge_runs(em_merge_state *m)
{
    static const char *const name[] = {"seed",        "tuning_steps",    "divergences",
                                       "worst_r_hat", "smallest_e_bfmi", "converged"};
    const int64_t n = m->request->n_input, n_chain = em_grid_n_chain(m->grid);
    em_variable variable = {.n_axes = 1,
                            .shape = {n},
                            .axis = {"run"},
                            .label = {(const char *const *)m->request->input}};
    EM_SCOPED double *value = NULL;
    int64_t run = 0, chain = 0;
    em_status status = em_agree(em_allocate(n + n_chain, sizeof *value, &value));

    for (size_t k = 0; !status && k < sizeof name / sizeof *name; k++) {
        const em_contents_attribute *first = em_contents_attribute_of(em_merge_first(m), name[k]);
        if (!first || first->kind == EM_ATTRIBUTE_TEXT)
            continue;
        for (int64_t i = 0; i < n; i++) {
            const em_contents_attribute *a = em_contents_attribute_of(m->contents[i], name[k]);
            value[i] = a && a->kind != EM_ATTRIBUTE_TEXT ? value_of(a) : NAN;
        }
        variable.name = name[k];
        variable.storage = first->kind == EM_ATTRIBUTE_INT ? EM_STORE_INT : EM_STORE_REAL;
        status = em_writer_put_array(m->writer, "runs", &variable, value);
    }
    variable.name = "draws";
    variable.storage = EM_STORE_INT;
    for (const em_reader *file = m->reader; file; file = em_reader_next(file))
        value[run++] = (double)em_reader_n_own_draw(file);
    status = status ? status : em_writer_put_array(m->writer, "runs", &variable, value);
    run = 0;
    for (const em_reader *file = m->reader; !status && file; file = em_reader_next(file), run++)
        for (int64_t c = 0; c < em_reader_n_own_chain(file); c++)
            value[chain++] = (double)run;
    variable = (em_variable){.name = "run_of_chain",
                             .storage = EM_STORE_INT,
                             .n_axes = 1,
                             .shape = {n_chain},
                             .axis = {"chain"}};
    return status ? status : em_writer_put_array(m->writer, "runs", &variable, value);
}

/* Writes the folder from which the relative paths of the config start, which is that of the first
 * file. Collective. */
static em_status put_home(em_merge_state *m)
{
    const em_contents_attribute *a = em_contents_attribute_of(em_merge_first(m), EM_HOME_ATTRIBUTE);
    EM_SCOPED char *folder = NULL;
    em_status status = a && a->kind == EM_ATTRIBUTE_TEXT
                           ? em_agree(em_home_of(m->request->input[0], a->text, &folder))
                           : EM_OK;

    return status ? status
                  : em_home_put(m->writer, folder, m->request->output, m->created.reproducible);
}

em_status em_merge_attributes(em_merge_state *m)
{
    em_status status = em_created_read(&m->created);

    m->signature = em_created_signature(&m->created);
    status = status ? status : em_writer_sign(m->writer, 6, m->signature.text);
    for (int64_t i = 0; !status && i < em_merge_first(m)->n_attribute; i++)
        status = merge_attribute(m, &em_merge_first(m)->attribute[i]);
    status = status ? status : put_home(m);
    if (!status && m->request->cut)
        status = em_writer_put_text(m->writer, "cut", m->request->cut);
    return status ? status : em_writer_put_int(m->writer, "merged", m->request->n_input);
}
