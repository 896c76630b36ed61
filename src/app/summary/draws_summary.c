#include "app/summary/draws_summary.h"

#include "app/summary/advice.h"
#include "app/summary/summary_rows.h"
#include "base/memory.h"
#include "base/system/terminal.h"
#include "base/text.h"
#include "diagnostics/diagnoses.h"
#include "diagnostics/limits.h"
#include "par/grid.h"
#include "par/mpi_world.h"

#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <string.h>

em_summary_options em_summary_defaults(int64_t n_path, const char *const *path)
{
    static double percentile[] = {5, 50, 95};

    return (em_summary_options){
        .n_path = n_path, .path = path, .group = "posterior", .percentile = {3, percentile}};
}

static bool matches(const char *pattern, const char *variable, const char *label)
{
    /* The brackets of theta[2] would be a set of characters to a glob. */
    return strcmp(pattern, label) == 0 || fnmatch(pattern, variable, 0) == 0 ||
           fnmatch(pattern, label, 0) == 0;
}

static bool wanted(const em_summary_options *options, const em_reader_variable *v, int64_t index)
{
    for (const char *const *p = options->pattern; p && *p; p++)
        if (matches(*p, v->name, em_reader_label(v, index)))
            return true;
    return !options->pattern;
}

/* Fails if a pattern matches no variable. */
static em_status check_patterns(const em_summary *s)
{
    for (const char *const *p = s->options->pattern; p && *p; p++) {
        bool found = false;

        for (int64_t i = 0; i < em_reader_n_variable(s->reader) && !found; i++) {
            const em_reader_variable *v = em_reader_variable_at(s->reader, i);

            for (int64_t k = 0; k < v->size && !found; k++)
                found = matches(*p, v->name, em_reader_label(v, k));
        }
        if (!found)
            return em_fail(EM_EUSAGE,
                           "--var %s: no such variable or element in group %s of %s, whose first "
                           "variable is %s",
                           *p, s->options->group, s->options->path[0],
                           em_reader_variable_at(s->reader, 0)->name);
    }
    return EM_OK;
}

static em_status select_elements(em_summary *s)
{
    int64_t total = 0;

    for (int64_t i = 0; i < em_reader_n_variable(s->reader); i++)
        total += em_reader_variable_at(s->reader, i)->size;
    em_status status = check_patterns(s);
    status = status ? status : em_allocate(total, sizeof *s->element, &s->element);
    if (status)
        return status;
    while (s->n_watched < em_reader_n_variable(s->reader) &&
           !em_reader_variable_at(s->reader, s->n_watched)->unwatched)
        s->n_watched++;
    for (int64_t i = 0; i < em_reader_n_variable(s->reader); i++) {
        const em_reader_variable *v = em_reader_variable_at(s->reader, i);

        for (int64_t k = 0; k < v->size; k++)
            if (wanted(s->options, v, k))
                s->element[s->n_element++] = (em_element){i, k};
    }
    if (s->n_element > INT_MAX) /* what MPI counts to */
        return em_fail(EM_EUSAGE, "%s has %lld elements, more than %d: choose some by --var",
                       s->options->path[0], (long long)s->n_element, INT_MAX);
    return EM_OK;
}

/* A column of the table. summarise() computes its values. */
static const struct {
    const char *name;
    em_digits digits;
    bool small_is_bad;     /* sorting by it puts the smallest first */
    const char *condition; /* the tables that have it; NULL: all */
} columns[EM_N_SUMMARY_COLUMN] = {
    [EM_COLUMN_MEAN] = {"mean"},
    [EM_COLUMN_MCSE] = {"mcse_mean"},
    [EM_COLUMN_SD] = {"sd"},
    [EM_COLUMN_PERCENTILES] = {"a percentile such as 50%"},
    [EM_COLUMN_ESS_BULK] = {"ess_bulk", EM_DIGITS_WHOLE, true},
    [EM_COLUMN_ESS_SQUARE] = {"ess_square", EM_DIGITS_WHOLE, true, "with --ess"},
    [EM_COLUMN_ESS_TAIL] = {"ess_tail", EM_DIGITS_WHOLE, true},
    [EM_COLUMN_R_HAT] = {"r_hat", EM_DIGITS_THOUSANDTHS},
    [EM_COLUMN_R_HAT_NESTED] = {"r_hat_nested", EM_DIGITS_THOUSANDTHS, false, "with superchains"}};

static bool has_column(const em_summary *s, int column)
{
    return column == EM_COLUMN_ESS_SQUARE     ? s->options->squares
           : column == EM_COLUMN_R_HAT_NESTED ? s->n_superchain > 0
                                              : true;
}

static em_status add_columns(em_summary *s)
{
    const em_reals *percentile = &s->options->percentile;
    int64_t n = 0;

    for (int k = 0; k < EM_N_SUMMARY_COLUMN; k++) {
        s->place[k] = has_column(s, k) ? n : -1;
        n += k == EM_COLUMN_PERCENTILES ? percentile->count : has_column(s, k);
    }
    s->n_value = n + EM_N_JUDGED;
    em_status status = em_table_begin(0, n, &s->table);
    s->table.at = (em_judge_columns){
        .ess_bulk = s->place[EM_COLUMN_ESS_BULK],
        .ess_tail = s->place[EM_COLUMN_ESS_TAIL],
        .r_hat = s->place[s->n_superchain > 0 ? EM_COLUMN_R_HAT_NESTED : EM_COLUMN_R_HAT],
        .judged = n};
    for (int k = 0; !status && k < EM_N_SUMMARY_COLUMN; k++) {
        char name[32];
        for (int64_t i = 0; k == EM_COLUMN_PERCENTILES && !status && i < percentile->count; i++) {
            snprintf(name, sizeof name, "%g%%", percentile->value[i]);
            status = em_table_add_column(&s->table, EM_DIGITS_FOUR, name);
        }
        if (!status && k != EM_COLUMN_PERCENTILES && s->place[k] >= 0)
            status = em_table_add_column(&s->table, columns[k].digits, columns[k].name);
    }
    if (!status)
        s->table.column[s->table.at.r_hat].most = EM_R_HAT_LIMIT;
    return status;
}

static em_status find_sort_column(em_summary *s)
{
    const char *name = s->options->sort;
    char expected[256] = "";

    s->sort = -1;
    for (int64_t j = 0; name && j < s->table.n_column; j++)
        if (strcmp(name, s->table.column[j].name) == 0)
            s->sort = j;
    if (!name || s->sort >= 0)
        return EM_OK;
    for (int k = 0; k < EM_N_SUMMARY_COLUMN; k++)
        em_append(sizeof expected, expected, "%s%s%s%s", k > 0 ? ", " : "", columns[k].name,
                  columns[k].condition ? " " : "",
                  columns[k].condition ? columns[k].condition : "");
    return em_fail(EM_EUSAGE, "--sort %s: no such column; expected one of %s", name, expected);
}

static em_status prepare(em_summary *s)
{
    const em_summary_options *options = s->options;
    int64_t n_rank = em_world_size(), rank = em_world_rank();
    em_status status = em_reader_open_all(options->n_path, options->path, options->group,
                                          options->common, &s->reader);

    if (status)
        return status;
    s->n_superchain = em_superchains_of(s->reader);
    status = add_columns(s);
    status = status ? status : find_sort_column(s);
    status = status ? status : em_expect_draws(s->reader, options->group);
    status = status ? status : select_elements(s);
    if (status)
        return status;
    const int64_t n_chain = em_reader_n_chain(s->reader);
    status = em_allocate_doubles(options->squares ? n_chain * em_reader_n_draw(s->reader) : 0,
                                 &s->square);
    status = status ? status : em_judge_create(s->reader, options->group, &s->judge);
    if (status)
        return status;
    s->judge->n_row = s->n_element;
    s->first = em_partition_first(s->n_element, n_rank, rank);
    s->end = em_partition_first(s->n_element, n_rank, rank + 1);
    return em_allocate_doubles((rank == 0 ? s->n_element : s->end - s->first) * s->n_value,
                               &s->value);
}

/* Bulk ESS of the squared deviations of the draws from their mean, which gives the precision of a
 * variance. */
static em_status ess_of_squares(const em_summary *s, em_diag *diag, const double *draws,
                                double mean, double *out)
{
    const int64_t n_chain = em_reader_n_chain(s->reader), n_draw = em_reader_n_draw(s->reader);
    em_diagnosis d;

    for (int64_t i = 0; i < n_chain * n_draw; i++)
        s->square[i] = (draws[i] - mean) * (draws[i] - mean);
    const em_status status = em_diagnose_convergence(diag, n_chain, n_draw, s->square, &d);
    *out = d.ess_bulk;
    return status;
}

/* Finds the percentiles, without sorting the draws where the diagnosis has them. */
static em_status find_percentiles(const em_summary *s, em_diag *diag, const double *draws,
                                  const em_diagnosis *d, double *out)
{
    const em_reals *percentile = &s->options->percentile;
    const int64_t n = em_reader_n_chain(s->reader) * em_reader_n_draw(s->reader);
    bool all = true;

    for (int64_t i = 0; i < percentile->count; i++) {
        out[i] = em_diagnosed_quantile(d, percentile->value[i] / 100);
        all = all && !isnan(out[i]);
    }
    for (int64_t i = 0; !all && i < percentile->count; i++)
        out[i] = percentile->value[i] / 100;
    return all ? EM_OK : em_quantiles(diag, n, draws, percentile->count, out, out);
}

/* Computes the row of an element from its draws [n_chain][n_draw]. */
static em_status summarise(const em_summary *s, const em_element *element, em_diag *diag,
                           const double *draws, double *value)
{
    int64_t n_chain = em_reader_n_chain(s->reader), n_draw = em_reader_n_draw(s->reader);
    double number[EM_N_SUMMARY_COLUMN];
    em_diagnosis d;

    em_status status = em_diagnose(diag, n_chain, n_draw, draws, &d);
    status = status ? status : find_percentiles(s, diag, draws, &d, value + EM_COLUMN_PERCENTILES);
    if (status)
        return status;
    number[EM_COLUMN_MEAN] = d.mean;
    number[EM_COLUMN_MCSE] = d.mcse_mean;
    number[EM_COLUMN_SD] = d.sd;
    number[EM_COLUMN_ESS_BULK] = d.ess_bulk;
    number[EM_COLUMN_ESS_TAIL] = d.ess_tail;
    number[EM_COLUMN_R_HAT] = d.r_hat;
    if (has_column(s, EM_COLUMN_R_HAT_NESTED))
        number[EM_COLUMN_R_HAT_NESTED] = em_nested_r_hat(s->n_superchain, n_chain, n_draw, draws);
    if (has_column(s, EM_COLUMN_ESS_SQUARE))
        status = ess_of_squares(s, diag, draws, d.mean, &number[EM_COLUMN_ESS_SQUARE]);
    for (int k = 0; !status && k < EM_N_SUMMARY_COLUMN; k++)
        if (k != EM_COLUMN_PERCENTILES && s->place[k] >= 0)
            value[s->place[k]] = number[k];
    return status ? status
                  : em_judge_row(s->judge, draws, &d, value[s->table.at.r_hat],
                                 element->variable < s->n_watched, value + s->table.at.judged);
}

/* This rank's share. */
static em_status summarise_share(em_summary *s)
{
    EM_SCOPED_BY(em_elements_destroy) em_elements *elements = NULL;
    EM_SCOPED_BY(em_diagnoses_destroy) em_diagnoses *own = NULL;
    EM_SCOPED_BY(em_diag_destroy) em_diag *diag = NULL;
    em_status status = em_diag_create(&diag);

    if (!status && !s->options->known)
        status = em_diagnoses_create(&own);
    if (!status) {
        em_diag_set_visits(diag, s->judge->visits);
        em_diag_set_known(diag, own ? own : s->options->known);
    }
    if (!status)
        status = em_elements_create(s->reader, s->end - s->first, s->element + s->first, &elements);
    for (int64_t i = 0; !status && i < s->end - s->first; i++) {
        const double *draws;

        status = em_elements_next(elements, &draws);
        if (!status)
            status =
                summarise(s, &s->element[s->first + i], diag, draws, s->value + i * s->n_value);
    }
    return status;
}

/* Sends the rows of all ranks to rank 0, whose own rows are already in place. Collective. */
static em_status gather(em_summary *s)
{
    int n_rank = em_world_size(), share = (int)(s->end - s->first);
    EM_SCOPED int *count = NULL, *start = NULL;
    MPI_Datatype row;
    em_status status = em_allocate_all(EM_ARRAY(count, n_rank), EM_ARRAY(start, n_rank));

    status = em_agree(status);
    if (!status) {
        for (int r = 0; r < n_rank; r++) {
            start[r] = (int)em_partition_first(s->n_element, n_rank, r);
            count[r] = (int)em_partition_first(s->n_element, n_rank, r + 1) - start[r];
        }
        MPI_Type_contiguous((int)s->n_value, MPI_DOUBLE, &row);
        MPI_Type_commit(&row);
        MPI_Gatherv(em_world_rank() == 0 ? MPI_IN_PLACE : s->value, share, row, s->value, count,
                    start, row, 0, em_world_ranks());
        MPI_Type_free(&row);
    }
    return status;
}

static em_status fill_table(em_summary *s)
{
    em_release(&s->table.row);
    em_status status = em_allocate(s->n_element, sizeof *s->table.row, &s->table.row);

    if (status)
        return status;
    for (int64_t i = 0; i < s->n_element; i++) {
        const em_element *e = &s->element[i];

        s->table.row[i] = (em_summary_row){
            .name = em_reader_label(em_reader_variable_at(s->reader, e->variable), e->index),
            .value = s->value + i * s->n_value,
            .variable = e->variable,
            .index = e->index};
    }
    s->table.n_row = s->n_element;
    bool small_is_bad = false;
    for (int k = 0; k < EM_N_SUMMARY_COLUMN; k++)
        small_is_bad |= columns[k].small_is_bad && s->place[k] == s->sort;
    if (s->sort >= 0) /* the worst first */
        em_table_sort(&s->table, s->sort, small_is_bad);
    return EM_OK;
}

/* Prints the first words of the verdict, up to the colon, in colour on a terminal with colours. */
static em_status print_verdict(em_summary *s, FILE *words, bool colours)
{
    static const char *const colour[] = {[EM_CONVERGED] = EM_COLOUR_GOOD,
                                         [EM_CONVERGED_WITH_WARNINGS] = EM_COLOUR_WARNING,
                                         [EM_NOT_CONVERGED] = EM_COLOUR_BAD};
    em_verdict verdict;
    EM_SCOPED char *text = NULL;
    em_status status = em_judge_verdict(s->judge, &verdict, &text);

    if (!status) {
        const int first = (int)strcspn(text, ":");
        fprintf(words, "%s%.*s%s%s\n", colours ? colour[verdict] : "", first, text,
                colours ? EM_COLOUR_END : "", text + first);
    }
    return status;
}

/* Prints the results of the ladders of a tempered run, which begin with "log evidence". */
static void print_tempering(em_summary *s, FILE *words)
{
    EM_SCOPED char *text = NULL;

    if (em_reader_text(s->judge->reader, "tempering", &text))
        fprintf(words, "%s\n", text);
}

/* Prints the verdict and the advice, in lines that fit a terminal. Local. */
static em_status advise(em_summary *s, FILE *out)
{
    em_prose prose;
    em_status status = em_prose_begin(out, &prose);

    if (status)
        return status;
    if (s->judge->is_posterior)
        status = print_verdict(s, prose.words, em_terminal_colours(out));
    if (s->judge->is_posterior)
        print_tempering(s, prose.words);
    status = status ? status : em_advise(s->judge, &s->table, prose.words);
    em_prose_end(&prose, INT_MAX);
    return status;
}

/* Prints how to see the rows that are not shown. */
static em_status tell_others(const em_summary *s, const em_visible_rows *rows, FILE *out)
{
    const em_summary_options *o = s->options;
    em_prose prose;
    em_status status = em_prose_begin(out, &prose);

    if (!status)
        fprintf(prose.words,
                "%lld of %lld rows; * those with the highest R-hat or the smallest ESS. All of "
                "them: emass summary %s%s --all; some: --var NAME.\n",
                (long long)rows->table.n_row, (long long)s->n_element, o->path[0],
                o->n_path > 1 ? " ..." : "");
    em_prose_end(&prose, INT_MAX);
    return status;
}

/* The largest number of rows to print; 0: no limit. */
static int64_t most_rows(const em_summary *s, FILE *out)
{
    const em_summary_options *o = s->options;

    if (o->rows > 0)
        return o->rows;
    if (!o->all && em_terminal_columns(out) > 0)
        return EM_ROWS_ON_TERMINAL;
    return o->log && s->n_element > EM_ROWS_IN_LOG ? EM_ROWS_IN_LOG : 0;
}

/* Prints the rows. On a terminal and in a log, only some of many are printed. Local. */
static em_status print_rows(em_summary *s, FILE *out)
{
    const int64_t most = most_rows(s, out);
    const em_rows_order order = {.most = most, .sorted = s->options->sort != NULL, .marks = true};
    EM_SCOPED_BY(em_rows_release) em_visible_rows rows = {0};

    if (most == 0) {
        em_table_print(&s->table, out);
        return EM_OK;
    }
    em_status status = em_rows_arrange(&s->table, s->reader, &order, &rows);
    if (!status)
        em_table_print(&rows.table, out);
    if (!status && rows.n_line > rows.table.n_row)
        status = tell_others(s, &rows, out);
    return status;
}

/* Prints the title of the table. */
static em_status print_title(const em_summary *s, FILE *out)
{
    const int64_t n_chain = em_reader_n_chain(s->reader), n_draw = em_reader_n_draw(s->reader);
    EM_SCOPED char *cut = NULL;
    em_status status = em_reader_cut(s->reader, &cut);

    if (status)
        return status;
    fprintf(out, "%s: %lld chain%s x %lld draw%s", s->options->group, (long long)n_chain,
            em_plural(n_chain), (long long)n_draw, em_plural(n_draw));
    if (!cut && em_reader_n_planned(s->reader) > n_draw)
        fprintf(out, " so far, of %lld", (long long)em_reader_n_planned(s->reader));
    if (s->options->n_path > 1)
        fprintf(out, ", of %lld files", (long long)s->options->n_path);
    fprintf(out, "%s%s\n", cut ? ": " : "", cut ? cut : "");
    return EM_OK;
}

/* Rank 0 alone. */
static em_status print(em_summary *s, FILE *out)
{
    em_status status = EM_OK;

    if (s->options->csv)
        em_table_print_csv(&s->table, out);
    else
        status = print_title(s, out);
    if (!status && !s->options->csv)
        status = print_rows(s, out);
    return status ? status : advise(s, s->options->csv ? stderr : out);
}

em_status em_summary_read(const em_summary_options *options, em_summary *s)
{
    *s = (em_summary){.options = options};
    em_status status = em_agree(prepare(s));

    status = status ? status : em_agree(summarise_share(s));
    if (!status && em_world_size() > 1) {
        em_judge_combine(s->judge);
        status = gather(s);
    }
    if (!status && em_world_rank() == 0) {
        status = fill_table(s);
        status = status ? status : em_judge_conclude(s->judge, &s->table);
    }
    return em_agree(status);
}

void em_summary_release(em_summary *s)
{
    em_table_release(&s->table);
    em_release_all(&s->element, &s->value, &s->square);
    em_judge_destroy(&s->judge);
    em_reader_close(&s->reader);
}

em_status em_summary_print(const em_summary_options *options, FILE *out)
{
    EM_SCOPED_BY(em_summary_release) em_summary s = {0};
    em_status status = em_summary_read(options, &s);

    return status ? status : em_agree(em_world_rank() == 0 ? print(&s, out) : EM_OK);
}
