#include "model/external/evaluation_log.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text/json.h"
#include "model/external/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct em_evaluation_log {
    char *path;
    int file;
    em_evaluation_table table; /* what the file had */
};

/* ---------------------------------------------------------------- reading */

/* Whether a line is a complete record. */
static bool read_record(const em_evaluation_table *table, const json_t *line, double *out)
{
    const char *why = json_string_value(json_object_get(line, "failed"));
    double *output = em_record_output(table, out), *gradient = em_record_gradient(table, out);

    if (!em_answer_numbers(json_object_get(line, "x"), table->n, em_record_x(out)))
        return false;
    if (!em_answer_numbers(json_object_get(line, "gradient"), table->n, gradient))
        for (int64_t i = 0; i < table->n; i++)
            gradient[i] = NAN;
    if (why)
        snprintf(em_record_why(out), EM_WHY_BYTES, "%s", *why ? why : "failed");
    return why || em_answer_numbers(json_object_get(line, "output"), table->n_output, output);
}

/* Takes a line of the log. If a position occurs twice, first without a gradient, the later line is
 * kept. */
static em_status take_line(em_evaluation_log *log, char *text)
{
    json_auto_t *line = em_answer_parse(text);
    EM_SCOPED double *read = NULL;
    em_status status = line ? em_allocate(log->table.width, sizeof *read, &read) : EM_OK;

    if (!status && line && read_record(&log->table, line, read))
        status = em_evaluation_table_put(&log->table, read);
    return status;
}

/* Reads the file. *ends_line: its last line is complete. It may not be if the writer was killed. */
static em_status read_all(em_evaluation_log *log, bool *ends_line)
{
    EM_SCOPED_FILE *in = fopen(log->path, "r");
    EM_SCOPED char *line = NULL;
    size_t size = 0;
    ssize_t length;
    int64_t n_line = 0;
    em_status status = EM_OK;

    *ends_line = true;
    if (!in)
        return EM_OK;
    while (!status && (length = getline(&line, &size, in)) > 0) {
        *ends_line = line[length - 1] == '\n';
        n_line += line[0] != '\n';
        status = take_line(log, line);
    }
    if (!status && n_line > 1 && log->table.positions.n == 0)
        status = em_fail(EM_ECONFIG,
                         "model.evaluation_log: found %s, none of whose %lld lines is an "
                         "evaluation of this model: expected its own log, or another name",
                         log->path, (long long)n_line);
    return status;
}

em_status em_evaluation_log_open(const char *path, int64_t n, int64_t n_output,
                                 em_evaluation_log **out)
{
    bool ends_line = true;
    em_status status = em_allocate(1, sizeof **out, out);
    em_evaluation_log *log = *out;

    if (status)
        return status;
    *log = (em_evaluation_log){.file = -1, .table = em_evaluation_table_of(n, n_output)};
    status = em_copy_text(path, &log->path);
    status = status ? status : read_all(log, &ends_line);
    if (status)
        return status;
    log->file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (log->file < 0 || (!ends_line && write(log->file, "\n", 1) != 1))
        return em_fail(EM_ECONFIG, "model.evaluation_log: found %s, which cannot be written: %s",
                       path, strerror(errno));
    return EM_OK;
}

void em_evaluation_log_close(em_evaluation_log **out)
{
    em_evaluation_log *log = *out;

    if (!log)
        return;
    if (log->file >= 0)
        close(log->file);
    em_evaluation_table_release(&log->table);
    em_release_all(&log->path, out);
}

bool em_evaluation_log_find(const em_evaluation_log *log, em_evaluation *evaluation)
{
    return em_evaluation_table_find(&log->table, evaluation);
}

/* ---------------------------------------------------------------- writing */

static void write_numbers(FILE *out, const char *key, int64_t n, const double *x)
{
    fprintf(out, ", \"%s\": [", key);
    for (int64_t i = 0; i < n; i++) {
        fputs(i > 0 ? ", " : "", out);
        if (isfinite(x[i]))
            em_json_write_number(x[i], out);
        else
            fputs(isnan(x[i]) ? "null" : x[i] > 0 ? "\"inf\"" : "\"-inf\"", out);
    }
    fputc(']', out);
}

/* Writes one line by one call of write(), so that lines of several ranks do not mix. */
em_status em_evaluation_log_add(em_evaluation_log *log, const em_evaluation *e)
{
    EM_SCOPED char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (!out)
        return em_fail(EM_EMEMORY, "out of memory for a line of %s", log->path);
    fprintf(out, "{\"chain\": %lld", (long long)e->chain);
    write_numbers(out, "x", log->table.n, e->x);
    if (e->why[0]) {
        fputs(", \"failed\": ", out);
        em_json_write_string(e->why, out);
    } else
        write_numbers(out, "output", log->table.n_output, e->output);
    if (e->gradient && !e->why[0])
        write_numbers(out, "gradient", log->table.n, e->gradient);
    fprintf(out, ", \"seconds\": %.6g}\n", e->seconds);
    const bool written = fclose(out) == 0 && write(log->file, text, length) == (ssize_t)length;
    return written ? EM_OK
                   : em_fail(EM_EIO, "%s: could not be written: %s", log->path, strerror(errno));
}
