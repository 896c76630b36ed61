#include "data/design/column_selection.h"

#include "base/text.h"
#include "base/text/nearest.h"
#include "data/design/level_order.h"
#include "data/formula/formula.h"
#include "data/table/builder.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---------------------------------------------------------------- names */

em_status em_choice_find(const em_table *table, const char *name, int64_t *column)
{
    char *end;

    *column = -1;
    for (int64_t j = 0; j < table->n_column; j++) {
        if (strcmp(table->name[j], name) != 0)
            continue;
        if (*column >= 0)
            return em_fail(EM_EDATA, "%s:1: found two columns called '%s', expected one",
                           table->path, em_excerpt_of(name).text);
        *column = j;
    }
    const long long number = strtoll(name, &end, 10);
    if (*column < 0 && *name >= '0' && *name <= '9' && *end == '\0' && number >= 1 &&
        number <= table->n_column)
        *column = number - 1;
    return EM_OK;
}

static em_status find(const em_table *table, const char *what, const char *name, int64_t *column)
{
    em_status status = em_choice_find(table, name, column);

    if (status || *column >= 0)
        return status;
    em_nearest nearest = em_nearest_start(name);
    for (int64_t j = 0; table->is_named && j < table->n_column; j++)
        em_nearest_offer(&nearest, table->name[j]);
    return em_fail(
        EM_EDATA,
        "%s:1: found no %s '%s', expected one of %s, ..., %s or a number from 1 to %lld%s%s%s%s",
        table->path, what, em_excerpt_of(name).text, em_excerpt_of(table->name[0]).text,
        em_excerpt_of(table->name[table->n_column - 1]).text, (long long)table->n_column,
        nearest.name ? "; did you mean " : "", nearest.name ? em_excerpt_of(nearest.name).text : "",
        nearest.name ? "?" : "", em_names_are_utf8(table->n_column, table->name) ? "" : EM_NO_UTF8);
}

/* Checks that names of columns are distinct, because the summary, readers and emass predict
 * identify columns by their names. `use` NULL: all are used. */
static em_status check_names_differ(const em_table_options *options, const em_table *table,
                                    const em_use *use)
{
    EM_SCOPED const char **used = NULL;
    int64_t twin = -1;

    if (!table->is_named)
        return EM_OK;
    em_status status = em_allocate(table->n_column, sizeof *used, &used);
    for (int64_t j = 0; !status && j < table->n_column; j++)
        used[j] = use && use[j] == EM_USE_NOT ? NULL : table->name[j];
    status = status ? status : em_text_find_twin(table->n_column, used, &twin);
    if (status || twin < 0)
        return status;
    char advice[64] = "";
    if (!options->fitted)
        snprintf(advice, sizeof advice, " (columns: [-%lld] leaves the later one out)",
                 (long long)twin + 1);
    return em_fail(EM_EDATA,
                   "%s:1: found two columns called '%s', expected one name for each that is used%s",
                   table->path, em_excerpt_of(table->name[twin]).text, advice);
}

int64_t em_choice_count(const em_table_options *options)
{
    const char *only = options->chosen.count == 1 ? options->chosen.value[0] : "";
    const size_t length = strlen(only);

    if (options->columns > 0 || length == 0 || length > 9 || strspn(only, "0123456789") < length)
        return options->columns;
    return strtoll(only, NULL, 10);
}

bool em_is_missing(const char *text)
{
    static const char *const word[] = {"", "NA", "N/A", "nan", "null", "?", "."};

    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strcasecmp(text, word[i]) == 0)
            return true;
    return false;
}

/* ---------------------------------------------------------------- what the options say */

/* The state while the columns are being selected. */
typedef struct making {
    const em_table_options *options;
    const em_table *table;
    em_choice *choice;
} making;

bool em_choice_is_asked(const em_table_options *o)
{
    return o->chosen.count > 0 || o->factors.count > 0 || o->levels || o->formula ||
           o->na == EM_NA_DROP || o->fitted;
}

static bool is_beside(const em_set_aside *set_aside, int64_t column)
{
    for (int k = 0; k < EM_N_BESIDE; k++)
        if (set_aside->beside[k] == column)
            return true;
    return false;
}

em_status em_set_aside_find_beside(const em_table_options *options, const em_table *table,
                                   em_set_aside *out)
{
    em_status status = EM_OK;
    char what[32];

    for (int k = 0; k < EM_N_BESIDE; k++)
        out->beside[k] = -1;
    for (int k = 0; !status && k < EM_N_BESIDE; k++) {
        snprintf(what, sizeof what, "%s column", em_beside_names[k]);
        if (options->beside[k] && !(options->fitted && k == EM_BESIDE_WEIGHTS))
            status = find(table, what, options->beside[k], &out->beside[k]);
    }
    return status;
}

em_status em_set_aside_find_response(const em_table_options *options, const em_table *table,
                                     em_set_aside *set_aside)
{
    if (options->response)
        return find(table, "response column", options->response, &set_aside->response);
    set_aside->response = table->n_column - 1;
    while (set_aside->response >= 0 && is_beside(set_aside, set_aside->response))
        set_aside->response--;
    return EM_OK;
}

static em_status find_set_aside(making *m)
{
    const em_table_options *o = m->options;
    em_set_aside *set_aside = &m->choice->set_aside;
    const em_status status = em_set_aside_find_beside(o, m->table, set_aside);

    set_aside->response = -1;
    return status || o->formula || o->fitted || m->table->response
               ? status
               : em_set_aside_find_response(o, m->table, set_aside);
}

static em_status take_formula(making *m)
{
    const em_formula_columns columns = {.n = m->table->n_column,
                                        .name = m->table->name,
                                        .beside = m->choice->set_aside.beside,
                                        .unnamed = !m->table->is_named};
    EM_SCOPED_BY(em_formula_release) em_formula formula = {0};
    em_status status = EM_OK;

    if (m->options->response || m->options->chosen.count > 0)
        status = em_fail(EM_ECONFIG, "model.formula: found model.%s too, expected one of the two",
                         m->options->response ? "response" : "columns");
    status = status ? status : em_formula_parse(m->options->formula, &columns, &formula);
    m->choice->set_aside.response = formula.response;
    for (int64_t i = 0; !status && i < formula.n_term; i++)
        for (int k = 0; k < formula.term[i].n; k++)
            if (formula.term[i].column[k] < columns.n)
                m->choice->use[formula.term[i].column[k]] = EM_USE_ANY;
    for (int64_t k = 0; !status && k < formula.n_derived; k++)
        for (int i = 0; i < formula.derived[k].n_step; i++)
            if (formula.derived[k].step[i].op == EM_OP_COLUMN)
                m->choice->use[formula.derived[k].step[i].column] = EM_USE_NUMBER;
    for (int64_t j = 0; !status && j < m->table->n_column; j++)
        if (formula.is_factor[j] && m->choice->use[j] != EM_USE_NOT) {
            m->choice->use[j] = EM_USE_LEVEL;
            m->choice->factor[j] = "";
        }
    return status;
}

static bool is_set_aside(const making *m, int64_t column)
{
    return column == m->choice->set_aside.response || is_beside(&m->choice->set_aside, column);
}

/* Takes one of options->columns, which is a name or a number. A minus before it excludes the
 * column. */
static em_status take_name(making *m, const char *name, bool *removes)
{
    int64_t column;
    em_status status = em_choice_find(m->table, name, &column);

    *removes = !status && column < 0 && *name == '-';
    status = status ? status : find(m->table, "column", *removes ? name + 1 : name, &column);
    if (!status && is_set_aside(m, column))
        status = em_fail(EM_EDATA, "%s:1: found '%s' among columns, expected no %s there",
                         m->table->path, em_excerpt_of(name).text,
                         column == m->choice->set_aside.response ? "response"
                                                                 : "exposure, offset or weights");
    if (!status)
        m->choice->use[column] = *removes ? EM_USE_NOT : EM_USE_NUMBER;
    return status;
}

static em_status take_columns(making *m)
{
    const em_texts *chosen = &m->options->chosen;
    const bool leaves_out =
        chosen->count == 0 || (*chosen->value[0] == '-' && chosen->value[0][1] != '\0');
    bool removes;
    em_status status = EM_OK;

    for (int64_t j = 0; j < m->table->n_column; j++)
        m->choice->use[j] = leaves_out ? EM_USE_NUMBER : EM_USE_NOT;
    for (int64_t i = 0; !status && i < chosen->count; i++) {
        status = take_name(m, chosen->value[i], &removes);
        if (!status && removes != leaves_out)
            status =
                em_fail(EM_ECONFIG,
                        "model.columns: found '%s' together with '%s', expected columns to use, or "
                        "columns to leave out (-name), not both",
                        em_excerpt_of(chosen->value[i]).text, em_excerpt_of(chosen->value[0]).text);
    }
    return status;
}

/* Selects the columns of the run; other columns of the table are ignored. */
static em_status take_fitted(making *m)
{
    const em_fitted_columns *fitted = m->options->fitted;
    char printable[EM_FITTED_BYTES];

    for (int64_t j = 0; j < m->table->n_column; j++) {
        em_text_escape(m->table->name[j], printable, sizeof printable);
        m->choice->use[j] =
            m->table->is_named || m->table->n_column != fitted->n ? EM_USE_NOT : EM_USE_NUMBER;
        for (int64_t k = 0; k < fitted->n; k++)
            if (strcmp(printable, fitted->name[k]) == 0)
                m->choice->use[j] = fitted->is_factor[k] ? EM_USE_LEVEL : EM_USE_NUMBER;
    }
    return EM_OK;
}

/* Features that model.levels names are factors, unless a function of the formula needs numbers. */
static em_status take_levels(making *m)
{
    const char *name;
    json_t *levels, *list;
    int64_t column;
    em_status status = em_level_order_load(m->options, &levels);

    json_object_foreach(levels, name, list)
    {
        status = status ? status : find(m->table, "factor", name, &column);
        if (!status && strcmp(m->table->name[column], name) != 0)
            status = em_fail(EM_ECONFIG,
                             "model.levels: found '%s', expected the name of that column, '%s'",
                             em_excerpt_of(name).text, em_excerpt_of(m->table->name[column]).text);
        if (status || is_set_aside(m, column) ||
            m->choice->use[column] != (m->options->formula ? EM_USE_ANY : EM_USE_NUMBER))
            continue;
        m->choice->use[column] = EM_USE_LEVEL;
        m->choice->factor[column] = "";
    }
    json_decref(levels);
    return status;
}

/* Takes an entry of model.factors, which is "name" or "name=level". */
static em_status take_factor(making *m, const char *factor)
{
    const char *equals = strrchr(factor, '=');
    EM_SCOPED char *name = NULL;
    int64_t column = -1;
    em_status status = em_choice_find(m->table, factor, &column);

    if (!status && column < 0 && equals) {
        status = em_format_text(&name, "%.*s", (int)(equals - factor), factor);
        status = status ? status : find(m->table, "factor", name, &column);
    } else if (!status) {
        status = find(m->table, "factor", factor, &column);
    }
    if (!status && (m->choice->use[column] == EM_USE_NOT || is_set_aside(m, column)))
        status = em_fail(EM_EDATA, "%s:1: found '%s' among factors, expected one of the features",
                         m->table->path, em_excerpt_of(factor).text);
    if (!status) {
        m->choice->use[column] = EM_USE_LEVEL;
        m->choice->factor[column] = name ? equals + 1 : "";
    }
    return status;
}

static em_status make(making *m)
{
    const em_table_options *o = m->options;
    em_choice *choice = m->choice;
    em_status status = find_set_aside(m);

    if (!status)
        status = o->fitted ? take_fitted(m) : o->formula ? take_formula(m) : take_columns(m);
    if (!status && !o->fitted)
        status = take_levels(m);
    for (int64_t i = 0; !status && !o->fitted && i < o->factors.count; i++)
        status = take_factor(m, o->factors.value[i]);
    if (status)
        return status;
    if (m->choice->set_aside.response >= 0)
        choice->use[m->choice->set_aside.response] = o->labelled ? EM_USE_LEVEL : EM_USE_NUMBER;
    for (int k = 0; k < EM_N_BESIDE; k++)
        if (choice->set_aside.beside[k] >= 0)
            choice->use[choice->set_aside.beside[k]] = EM_USE_NUMBER;
    for (int64_t j = 0; j < choice->n_column; j++)
        choice->n_used += choice->use[j] != EM_USE_NOT;
    choice->drops = o->na == EM_NA_DROP;
    return EM_OK;
}

em_status em_choice_make(const em_table_options *options, const em_table *table, em_choice **out)
{
    making m = {.options = options, .table = table};

    *out = NULL;
    if ((!em_choice_is_asked(options) && !options->labelled) || table->n_column == 0)
        return check_names_differ(options, table, NULL);
    em_status status = em_allocate(1, sizeof **out, out);
    if (!status)
        status = em_own_all(&(*out)->memory, EM_ARRAY((*out)->use, table->n_column),
                            EM_ARRAY((*out)->factor, table->n_column));
    if (!status) {
        m.choice = *out;
        (*out)->n_column = table->n_column;
        status = make(&m);
    }
    status = status ? status : check_names_differ(options, table, (*out)->use);
    if (status)
        em_release_owner(out);
    return status;
}

static int64_t position_of(const em_choice *choice, int64_t column)
{
    int64_t place = 0;

    for (int64_t j = 0; j < column; j++)
        place += choice->use[j] != EM_USE_NOT;
    return column < 0 ? -1 : place;
}

em_status em_choice_mark(const em_choice *choice, em_table *table)
{
    int64_t to = 0;
    em_status status = em_allocate(choice->n_used, sizeof *table->factor, &table->factor);

    for (int64_t j = 0; !status && j < choice->n_column; j++)
        if (choice->use[j] != EM_USE_NOT)
            table->factor[to++] = choice->factor[j];
    table->is_chosen = true;
    table->response_at = position_of(choice, choice->set_aside.response);
    for (int k = 0; k < EM_N_BESIDE; k++)
        table->beside_at[k] = position_of(choice, choice->set_aside.beside[k]);
    return status;
}

/* ---------------------------------------------------------------- existing tables */

/* Copies the chosen columns of row i of a table to another table. */
static em_status copy_row(const em_choice *choice, const int64_t *place, const em_table *from,
                          int64_t i, em_table *to)
{
    const int64_t first = from->column ? from->start[i] : i * from->n_column;
    const int64_t end = from->column ? from->start[i + 1] : first + from->n_column;
    const int64_t n_value = to->n_value;
    em_status status = EM_OK;

    for (int64_t k = first; !status && k < end; k++) {
        const int64_t j = from->column ? from->column[k] : k - first;
        if (choice->use[j] == EM_USE_NOT)
            continue;
        if (isnan(from->value[k]) && choice->drops) {
            to->n_value = n_value;
            to->n_dropped++;
            return EM_OK;
        }
        if (!isfinite(from->value[k]))
            return em_fail(EM_EDATA, "%s:%lld: found %g for column %s, expected a finite number%s",
                           from->path, (long long)em_table_line_of(from, i), from->value[k],
                           em_excerpt_of(from->name[j]).text,
                           isnan(from->value[k]) ? " (na: drop leaves such rows out)" : "");
        status = from->column ? em_table_push_sparse(to, (int32_t)place[j], from->value[k])
                              : em_table_push(to, from->value[k]);
    }
    if (status)
        return status;
    return from->response
               ? em_table_end_row_labelled(to, em_table_line_of(from, i), from->response[i])
               : em_table_end_row(to, em_table_line_of(from, i));
}

static em_status copy_rows(const em_choice *choice, const int64_t *place, const em_table *from,
                           em_table *to)
{
    em_status status = EM_OK;

    for (int64_t r = 0; !status && r < from->n_run; r++) {
        const em_row_run *run = &from->run[r];
        if (run->rank != em_world_rank())
            continue;
        status = em_table_begin_run(to, run->order);
        for (int64_t i = 0; !status && i < run->count; i++)
            status = copy_row(choice, place, from, run->held + i, to);
    }
    return status;
}

static em_status copy_names(const em_choice *choice, const em_table *from, int64_t *place,
                            em_table *to)
{
    em_status status = em_allocate(choice->n_used, sizeof *to->name, &to->name);

    to->is_named = from->is_named;
    if (!status && from->column)
        status = em_table_make_sparse(to);
    if (!status && from->response)
        status = em_table_make_labelled(to);
    for (int64_t j = 0; !status && j < from->n_column; j++) {
        place[j] = to->n_column;
        if (choice->use[j] != EM_USE_NOT)
            status = em_copy_text(from->name[j], &to->name[to->n_column++]);
    }
    return status;
}

em_status em_choice_apply(const em_choice *choice, em_table **table)
{
    em_table *from = *table, *to = NULL;
    EM_SCOPED int64_t *place = NULL;
    em_status status = em_table_create(from->path, &to);

    status = status ? status : em_allocate(from->n_column, sizeof *place, &place);
    status = status ? status : copy_names(choice, from, place, to);
    status = status ? status : copy_rows(choice, place, from, to);
    status = status ? status : em_choice_mark(choice, to);
    status =
        em_agree_first(status, status && to ? em_table_row(from, to->n_row + to->n_dropped) : 0);
    if (!status) {
        em_table_destroy(table);
        *table = to;
        return em_table_finish(to);
    }
    em_table_destroy(&to);
    return status;
}
