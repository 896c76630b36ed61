#include "app/summary/loo.h"

#include "app/summary/command_arguments.h"
#include "app/summary/evidence.h"
#include "app/summary/summary_table.h"
#include "base/memory.h"
#include "base/system/terminal.h"
#include "diagnostics/diag.h"
#include "diagnostics/psis.h"
#include "par/world.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 10 }; /* of the table that people get */

/* ---------------------------------------------------------------- what is read */

em_status em_loo_open(em_reader *posterior, em_reader **out)
{
    *out = NULL;
    return em_reader_has(posterior, "log_likelihood", "draw")
               ? em_reader_open_beside(posterior, "log_likelihood", out)
               : EM_OK;
}

em_status em_loo_ask(em_reader *posterior, char **out)
{
    EM_SCOPED char *model = NULL, *config = NULL;
    const char *how = "the program that wrote it has to store them";

    if (em_reader_text(posterior, "model", &model))
        how = strcmp(model, "stan") == 0 ? "a vector log_lik among the generated quantities is one"
                                         : "this model reports none";
    if (em_reader_text(posterior, "config", &config) && strstr(config, "log_likelihood: false"))
        how = "emass run --set model.log_likelihood=true stores it";
    return em_copy_text(how, out);
}

/* Lists the elements of all variables of a group. */
static em_status all_elements(em_reader *reader, int64_t *n, em_element **out)
{
    int64_t total = 0, k = 0;

    for (int64_t i = 0; i < em_reader_n_variable(reader); i++)
        total += em_reader_variable_at(reader, i)->size;
    const em_status status = em_allocate(total, sizeof **out, out);
    for (int64_t i = 0; !status && i < em_reader_n_variable(reader); i++)
        for (int64_t at = 0; at < em_reader_variable_at(reader, i)->size; at++)
            (*out)[k++] = (em_element){i, at};
    *n = total;
    return status;
}

em_status em_loo_worth(em_reader *posterior, double *r_eff)
{
    const int64_t n_chain = em_reader_n_chain(posterior), n_draw = em_reader_n_draw(posterior);
    const double n_all = (double)(n_chain * n_draw);
    EM_SCOPED em_element *wanted = NULL;
    EM_SCOPED_BY(em_elements_destroy) em_elements *elements = NULL;
    EM_SCOPED_BY(em_diag_destroy) em_diag *diag = NULL;
    double sum = 0, count = 0;
    int64_t n = 0;
    em_status status = n_chain > 1 ? all_elements(posterior, &n, &wanted) : EM_OK;

    *r_eff = 1;
    if (status || n_chain == 1)
        return status;
    status = em_elements_create(posterior, n, wanted, &elements);
    status = status ? status : em_diag_create(&diag);
    for (int64_t i = 0; !status && i < n; i++) {
        const double *draws;
        em_diagnosis d;

        status = em_elements_next(elements, &draws);
        status = status ? status : em_diagnose(diag, n_chain, n_draw, draws, &d);
        const double ess = d.sd / d.mcse_mean * (d.sd / d.mcse_mean);
        if (!status && (isfinite(ess) || d.constant)) {
            sum += d.constant ? n_all : ess;
            count++;
        }
    }
    if (count > 0)
        *r_eff = sum / count / n_all;
    return status;
}

/* ---------------------------------------------------------------- observations */

static void add_up(em_loo *loo)
{
    const int64_t n = loo->variable->size;
    double squares = 0;

    loo->elpd = loo->p = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *value = loo->value + i * EM_N_LOO;
        loo->elpd += value[EM_LOO_ELPD];
        loo->p += value[EM_LOO_P];
        loo->n_undefined += isnan(value[EM_LOO_ELPD]);
        loo->n_high += value[EM_LOO_K] > loo->good_k;
    }
    for (int64_t i = 0; i < n; i++) {
        const double off = loo->value[i * EM_N_LOO + EM_LOO_ELPD] - loo->elpd / (double)n;
        squares += off * off;
    }
    loo->se = sqrt(squares);
}

em_status em_loo_read(em_reader *log_likelihood, int64_t i, double r_eff, em_loo *loo)
{
    EM_SCOPED em_element *wanted = NULL;
    EM_SCOPED_BY(em_elements_destroy) em_elements *elements = NULL;
    EM_SCOPED_BY(em_release_owner) em_psis *psis = NULL;

    *loo = (em_loo){.variable = em_reader_variable_at(log_likelihood, i),
                    .n_draw = em_reader_n_chain(log_likelihood) * em_reader_n_draw(log_likelihood)};
    const int64_t n = loo->variable->size;
    loo->good_k = em_psis_good_k(loo->n_draw);
    em_status status = em_allocate_all(EM_ARRAY(loo->value, n * EM_N_LOO), EM_ARRAY(wanted, n));
    for (int64_t k = 0; !status && k < n; k++)
        wanted[k] = (em_element){i, k};
    status = status ? status : em_elements_create(log_likelihood, n, wanted, &elements);
    status = status ? status : em_psis_create(loo->n_draw, r_eff, &psis);
    for (int64_t k = 0; !status && k < n; k++) {
        double *value = loo->value + k * EM_N_LOO;
        const double *draws;

        status = em_elements_next(elements, &draws);
        if (status)
            break;
        const em_psis_point point = em_psis_leave_out(psis, draws);
        value[EM_LOO_ELPD] = point.elpd;
        value[EM_LOO_P] = point.lpd - point.elpd;
        value[EM_LOO_K] = point.k;
    }
    if (!status)
        add_up(loo);
    return status;
}

void em_loo_release(em_loo *loo)
{
    em_release(&loo->value);
}

/* ---------------------------------------------------------------- what is printed */

static void tell(const em_loo *loo, const char *cut, FILE *words)
{
    const long long n = loo->variable->size;

    fprintf(
        words,
        "elpd_loo %.2f (standard error %.2f), p_loo %.2f: %lld observations, %s, and %lld draws\n",
        loo->elpd, loo->se, loo->p, n, loo->variable->name, (long long)loo->n_draw);
    if (cut)
        fprintf(words, "Cut: %s.\n", cut);
    if (loo->n_undefined > 0)
        fprintf(words,
                "Not finite: the log likelihoods of %lld of the observations are infinite or no "
                "number in some draw, so elpd_loo is undefined; emass summary --group "
                "log_likelihood shows them.\n",
                (long long)loo->n_undefined);
    if (loo->n_draw <= EM_PSIS_TOO_FEW)
        fprintf(
            words,
            "Too few draws: at least %d are needed to fit the tail of the weights; sample more.\n",
            EM_PSIS_TOO_FEW + 1);
    else if (loo->n_high > 0)
        fprintf(words,
                "Pareto k: above %.2f for %lld of the observations. They change the posterior so "
                "much that elpd_loo is unreliable: check whether the model fits them, or sample "
                "again without them.\n",
                loo->good_k, (long long)loo->n_high);
    else if (loo->n_undefined == 0)
        fprintf(words, "Pareto k is at most %.2f for all observations: elpd_loo is reliable.\n",
                loo->good_k);
}

static em_status make_table(const em_loo *loo, em_summary_table *table)
{
    em_status status = em_table_begin(loo->variable->size, EM_N_LOO, table);

    if (!status) /* in the order of EM_LOO_ELPD, EM_LOO_P, EM_LOO_K */
        status = em_table_add_column(table, EM_DIGITS_FOUR, "elpd_loo");
    status = status ? status : em_table_add_column(table, EM_DIGITS_FOUR, "p_loo");
    status = status ? status : em_table_add_column(table, EM_DIGITS_THOUSANDTHS, "k");
    if (status)
        return status;
    table->column[EM_LOO_K].most = loo->good_k;
    for (int64_t i = 0; i < table->n_row; i++)
        table->row[i] =
            (em_summary_row){em_reader_label(loo->variable, i), loo->value + i * EM_N_LOO};
    return EM_OK;
}

/* Prints a text with the totals and with the observations whose k is too large. csv: prints all
 * observations as CSV. */
static em_status print(const em_loo *loo, const char *cut, bool csv)
{
    EM_SCOPED_BY(em_table_release) em_summary_table table = {0};
    em_prose prose;
    em_status status = em_prose_begin(csv ? stderr : stdout, &prose);

    if (!status)
        tell(loo, cut, prose.words);
    em_prose_end(&prose, 100);
    status = status ? status : make_table(loo, &table);
    if (!status && csv)
        em_table_print_csv(&table, stdout);
    if (!status && !csv && loo->n_high + loo->n_undefined > 0) {
        const int64_t n = loo->n_high + loo->n_undefined;
        em_table_sort(&table, EM_LOO_K, false);
        table.n_row = n < MOST_ROWS ? n : MOST_ROWS;
        em_table_print(&table, stdout);
        if (n > MOST_ROWS)
            printf("... and %lld more (--csv prints all)\n", (long long)(n - MOST_ROWS));
    }
    return status;
}

/* ---------------------------------------------------------------- the command */

typedef struct arguments {
    const char *const *path;
    int64_t n_path;
    char *name;
    int csv, common, together;
} arguments;

/* Chooses the variable that is called `name`, or the only variable. */
static em_status choose(const char *path, const char *name, em_reader *log_likelihood, int64_t *out)
{
    const int64_t n = em_reader_n_variable(log_likelihood);
    const char *first = em_reader_variable_at(log_likelihood, 0)->name;

    *out = name ? em_reader_find(log_likelihood, name) : 0;
    if (*out < 0)
        return em_fail(EM_EUSAGE,
                       "loo: --var %s: no such variable in group log_likelihood of %s, whose first "
                       "variable is %s",
                       name, path, first);
    if (!name && n > 1)
        return em_fail(EM_EUSAGE,
                       "%s: found log likelihoods of %s, %s%s, expected one of them: --var %s",
                       path, first, em_reader_variable_at(log_likelihood, 1)->name,
                       n > 2 ? " ..." : "", first);
    return EM_OK;
}

/* Opens the files. `name`: the variable; NULL: the only one. `common`: as for em_reader_open_all.
 * The caller calls close_files even after an error. Errors: those of em_reader_open_all, and
 * EM_EUSAGE. */
static em_status open_files(int64_t n_path, const char *const *path, const char *name, bool common,
                            em_loo_files *out)
{
    EM_SCOPED char *how = NULL;
    double r_eff = 1;
    int64_t i = 0;
    em_status status = em_reader_open_all(n_path, path, "posterior", common, &out->posterior);

    status = status ? status : em_loo_open(out->posterior, &out->log_likelihood);
    if (!status && !out->log_likelihood)
        status = em_loo_ask(out->posterior, &how);
    if (how)
        status =
            em_fail(EM_EDATA, "%s: found no group log_likelihood, expected one: %s", path[0], how);
    status = status ? status : em_expect_draws(out->log_likelihood, "log_likelihood");
    status = status ? status : choose(path[0], name, out->log_likelihood, &i);
    status = status ? status : em_loo_worth(out->posterior, &r_eff);
    return status ? status : em_loo_read(out->log_likelihood, i, r_eff, &out->loo);
}

static void close_files(em_loo_files *files)
{
    em_loo_release(&files->loo);
    em_reader_close(&files->log_likelihood);
    em_reader_close(&files->posterior);
}

/* Prints the result of one file, or of the combined chains of several. */
static em_status leave_one_out(const arguments *a, int64_t n_path, const char *const *path,
                               em_loo_files *files)
{
    EM_SCOPED char *cut = NULL;
    em_status status = open_files(n_path, path, a->name, a->common, files);

    status = status ? status : em_reader_cut(files->posterior, &cut);
    if (!status && !(a->csv && n_path < a->n_path))
        status = print(&files->loo, cut, a->csv);
    return status;
}

/* Computes the result of each file, and then the differences of the files. */
static em_status compare(const arguments *a)
{
    EM_SCOPED em_loo_files *files = NULL;
    em_status status = em_allocate(a->n_path, sizeof *files, &files);

    for (int64_t i = 0; !status && i < a->n_path; i++) {
        if (!a->csv)
            printf("%s:\n", a->path[i]);
        status = leave_one_out(a, 1, &a->path[i], &files[i]);
        if (!status && i > 0)
            status = em_loo_check_data(a->path[0], &files[0].loo, a->path[i], &files[i].loo);
        if (!a->csv)
            putchar('\n');
    }
    status = status ? status : em_loo_compare(a->n_path, a->path, files, a->csv);
    for (int64_t i = 0; files && i < a->n_path; i++)
        close_files(&files[i]);
    return status;
}

/* Rank 0. */
static em_status answer(const arguments *a)
{
    EM_SCOPED_BY(close_files) em_loo_files files = {0};

    return a->n_path > 1 && !a->together && !a->common
               ? compare(a)
               : leave_one_out(a, a->n_path, a->path, &files);
}

em_status em_loo_command(int argc, const char **argv)
{
    arguments a = {0};
    const struct poptOption table[] = {{"var", 0, POPT_ARG_STRING, &a.name, 0, NULL, NULL},
                                       {"together", 0, POPT_ARG_NONE, &a.together, 0, NULL, NULL},
                                       {"common", 0, POPT_ARG_NONE, &a.common, 0, NULL, NULL},
                                       {"csv", 0, POPT_ARG_NONE, &a.csv, 0, NULL, NULL},
                                       POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    em_status status =
        em_command_line_read(argc, argv, table, "one file or more", 1, INT_MAX, &line);

    a.path = line.argument;
    a.n_path = line.n;
    return status ? status : em_agree(em_world_rank() == 0 ? answer(&a) : EM_OK);
}
