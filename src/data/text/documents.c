#include "data/text/documents.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/reader/binary_kind.h"
#include "data/reader/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_COLUMNS = 4096, LONGEST_FILE = 1 << 26 };

enum { TEXT, NAME, LABEL, N_FIELD };

struct em_documents {
    const em_documents_options *options;
    em_status (*next)(em_documents *d, em_text_document *out);
    em_lines *lines; /* of a file */
    /* A table */
    char separator;
    int column[N_FIELD]; /* -1: not asked for */
    int n_column;
    char **field;                   /* [n_column] of the row */
    char *row;                      /* the row, over all of its lines */
    int64_t row_capacity, row_line; /* row_line: its first line */
    /* JSON lines */
    char *first; /* the line that determined the format, to be returned first; NULL: it was returned
                  */
    json_t *object;
    char number[N_FIELD][32]; /* members that are numbers, as texts */
    bool seen[N_FIELD];       /* an object has had this member */
    /* A folder */
    FTS *folder;
    char *content;
    int64_t n_file, n_foreign; /* files so far; of these, not in UTF-8 */
    char *foreign;             /* the first of them, with line and byte */
};

static const char *column_name(const em_documents *d, int field)
{
    return field == TEXT ? d->options->text : field == NAME ? d->options->name : d->options->label;
}

/* ---------------------------------------------------------------- lines */

static em_status next_line(em_documents *d, em_text_document *out)
{
    char *line = NULL;
    em_status status = em_lines_next(d->lines, &line);

    if (!status && line)
        *out = (em_text_document){.text = line, .length = strlen(line)};
    if (!status && line)
        status = em_lines_check_utf8(d->lines, line);
    return status;
}

/* Reads the next line. The first line was read when the file was opened. */
static em_status read_line(em_documents *d, char **line)
{
    if (!d->first)
        return em_lines_next(d->lines, line);
    *line = d->first;
    d->first = NULL;
    return EM_OK;
}

/* ---------------------------------------------------------------- a table */

/* Whether a quoted field is still open at the end of a line. `open`: one was open at the beginning.
 * Only a field that begins with a quote is quoted. */
static bool is_open(const char *line, char separator, bool open)
{
    bool begins = !open, quoted = open;

    for (; *line; line++) {
        quoted |= begins && *line == '"';
        open ^= quoted && *line == '"';
        begins = !open && *line == separator;
        quoted &= !begins;
    }
    return open;
}

/* Reads a row into d->row: more lines are added while a quote is open. False at the end. */
static em_status read_row(em_documents *d, bool *found)
{
    int64_t used = 0;
    bool open = false;
    char *line = NULL;
    em_status status = read_line(d, &line);

    *found = !status && line;
    d->row_line = d->lines->number;
    while (!status && line) {
        const int64_t length = (int64_t)strlen(line);
        status = em_lines_check_utf8(d->lines, line);
        status = status ? status : em_reserve(&d->row, &d->row_capacity, used, used + length + 2);
        if (status)
            break;
        memcpy(d->row + used, line, (size_t)length + 1);
        used += length;
        open = is_open(line, d->separator, open);
        if (!open)
            break;
        d->row[used++] = '\n';
        d->row[used] = '\0';
        if (used > LONGEST_FILE)
            return em_fail(
                EM_EDATA,
                "%s:%lld: found a quoted field of more than %d bytes, expected its closing quote",
                d->lines->path, (long long)d->row_line, LONGEST_FILE);
        status = em_lines_next(d->lines, &line);
    }
    if (!status && *found && open)
        status = em_fail(
            EM_EDATA,
            "%s:%lld: found an open quote at the end of the file, expected its closing quote",
            d->lines->path, (long long)d->row_line);
    return status;
}

/* Removes the quotes of the field at `field`; returns its end in the row. Text between the closing
 * quote and the separator belongs to the field. */
static char *unquote(char *field, char separator)
{
    char *to = field, *from = field + 1;
    bool quoted = true;

    for (; *from && (quoted || *from != separator); from++) {
        if (*from == '"' && quoted && from[1] == '"')
            from++;
        else if (*from == '"') {
            quoted = !quoted;
            continue;
        }
        *to++ = *from;
    }
    const bool more = *from != '\0'; /* the end may be overwritten */
    *to = '\0';
    return more ? from + 1 : NULL;
}

/* Ends a field without quotes; returns the next one, or NULL. */
static char *end_plain(char *field, char separator)
{
    char *end = strchr(field, separator);

    if (end)
        *end++ = '\0';
    return end;
}

/* Cuts the row into fields and returns how many there are; the first `most` are kept. */
static int cut_row(char *row, char separator, int most, char **field)
{
    int n = 0;

    for (char *at = row; at; n++) {
        if (n < most)
            field[n] = at;
        at = *at == '"' ? unquote(at, separator) : end_plain(at, separator);
    }
    return n;
}

static char find_separator(const char *header)
{
    static const char candidates[] = ",;\t";
    char best = ',';
    int most = 0;

    for (const char *c = candidates; *c; c++) {
        int n = 0;
        for (const char *at = header; (at = strchr(at, *c)) != NULL; at++)
            n++;
        best = n > most ? *c : best;
        most = n > most ? n : most;
    }
    return best;
}

static em_status find_columns(em_documents *d)
{
    for (int f = 0; f < N_FIELD; f++) {
        const char *name = column_name(d, f);
        d->column[f] = -1;
        for (int j = 0; name && j < d->n_column; j++) {
            if (strcmp(d->field[j], name) != 0)
                continue;
            if (d->column[f] >= 0)
                return em_fail(EM_EDATA, "%s:%lld: found two columns called '%s', expected one",
                               d->lines->path, (long long)d->lines->number,
                               em_excerpt_of(name).text);
            d->column[f] = j;
        }
        if (name && d->column[f] < 0)
            return em_fail(
                EM_EDATA,
                "%s:%lld: found no column '%s' among %d columns from '%s' to '%s', expected it",
                d->lines->path, (long long)d->lines->number, em_excerpt_of(name).text, d->n_column,
                em_excerpt_of(d->field[0]).text, em_excerpt_of(d->field[d->n_column - 1]).text);
    }
    return EM_OK;
}

static em_status next_row(em_documents *d, em_text_document *out)
{
    bool found = false;
    em_status status = read_row(d, &found);

    if (status || !found)
        return status;
    const int n = cut_row(d->row, d->separator, d->n_column, d->field);
    if (n != d->n_column)
        return em_fail(EM_EDATA, "%s:%lld: found %d columns, expected %d as in the first line",
                       d->lines->path, (long long)d->row_line, n, d->n_column);
    *out = (em_text_document){
        .text = d->field[d->column[TEXT]],
        .length = strlen(d->field[d->column[TEXT]]),
        .name = d->column[NAME] < 0 ? NULL : d->field[d->column[NAME]],
        .label = d->column[LABEL] < 0 ? NULL : d->field[d->column[LABEL]],
    };
    return EM_OK;
}

static em_status begin_table(em_documents *d)
{
    bool found;

    d->separator = find_separator(d->first);
    d->next = next_row;
    d->n_column = MOST_COLUMNS;
    em_status status = em_allocate(MOST_COLUMNS, sizeof *d->field, &d->field);
    status = status ? status : read_row(d, &found);
    if (status)
        return status;
    d->n_column = cut_row(d->row, d->separator, MOST_COLUMNS, d->field);
    if (d->n_column > MOST_COLUMNS)
        return em_fail(EM_EDATA, "%s:1: found %d columns, expected at most %d", d->lines->path,
                       d->n_column, MOST_COLUMNS);
    return find_columns(d);
}

/* ---------------------------------------------------------------- JSON lines */

static em_status fail_member(const em_documents *d, int field, const json_t *found,
                             const char *expected)
{
    static const char *const kind[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_INTEGER] = "a number",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",    [JSON_FALSE] = "false",
        [JSON_NULL] = "null"};

    return em_fail(EM_EDATA, "%s:%lld: found %s as member '%s', expected %s", d->lines->path,
                   (long long)d->lines->number, found ? kind[json_typeof(found)] : "nothing",
                   em_excerpt_of(column_name(d, field)).text, expected);
}

/* Reads the name or the label of an object: a text, or a number as text. *out is NULL if the member
 * is null or there is none. */
static em_status get_member(em_documents *d, int field, const char **out)
{
    const char *name = column_name(d, field);
    const json_t *value = name ? json_object_get(d->object, name) : NULL;

    *out = json_string_value(value);
    d->seen[field] |= value != NULL;
    if (json_is_number(value)) {
        if (json_is_integer(value))
            snprintf(d->number[field], sizeof d->number[field], "%lld",
                     (long long)json_integer_value(value));
        else
            snprintf(d->number[field], sizeof d->number[field], "%.15g", json_real_value(value));
        *out = d->number[field];
    }
    if (*out || !value || json_is_null(value))
        return EM_OK;
    return fail_member(d, field, value, "a text or a number");
}

/* At the end of the file: a name or label that no object has was mistyped. */
static em_status check_members(const em_documents *d)
{
    for (int f = NAME; f < N_FIELD; f++)
        if (d->object && column_name(d, f) && !d->seen[f])
            return em_fail(
                EM_EDATA, "%s:%lld: found no member '%s' up to this line, expected it in an object",
                d->lines->path, (long long)d->lines->number, em_excerpt_of(column_name(d, f)).text);
    return EM_OK;
}

static em_status fail_object(const em_documents *d, const json_error_t *error)
{
    const bool zero = !d->object && json_error_code(error) == json_error_null_character;

    return em_fail(EM_EDATA, "%s:%lld: found %s, expected a JSON object in each line",
                   d->lines->path, (long long)d->lines->number,
                   zero        ? "the character \\u0000 in a text"
                   : d->object ? "other JSON"
                               : em_excerpt_of(error->text).text);
}

static em_status next_object(em_documents *d, em_text_document *out)
{
    json_error_t error;
    char *line = NULL;
    em_status status = read_line(d, &line);

    if (status || !line)
        return status ? status : check_members(d);
    status = em_lines_check_utf8(d->lines, line);
    if (status)
        return status;
    json_decref(d->object);
    d->object = json_loads(line, 0, &error);
    if (!json_is_object(d->object))
        return fail_object(d, &error);
    const json_t *text = json_object_get(d->object, d->options->text);
    out->text = json_string_value(text);
    if (!out->text)
        return fail_member(d, TEXT, text, "a text");
    out->length = strlen(out->text);
    status = get_member(d, NAME, &out->name);
    return status ? status : get_member(d, LABEL, &out->label);
}

/* ---------------------------------------------------------------- a folder */

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static em_status read_file(em_documents *d, const FTSENT *file, size_t *length)
{
    const int descriptor = open(file->fts_accpath, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    const int64_t size = file->fts_statp->st_size;
    int64_t used = 0, n = 1;

    if (descriptor < 0)
        return em_fail(EM_EDATA, "%s: %s", file->fts_path, strerror(errno));
    em_status status =
        size > LONGEST_FILE
            ? em_fail(EM_EDATA, "%s: found %lld bytes, expected a document of at most %d",
                      file->fts_path, (long long)size, LONGEST_FILE)
            : em_reallocate(size + 1, 1, &d->content);
    while (!status && used < size && n > 0) {
        n = read(descriptor, d->content + used, (size_t)(size - used));
        used += n > 0 ? n : 0;
    }
    if (!status && n < 0)
        status = em_fail(EM_EIO, "%s: %s", file->fts_path, strerror(errno));
    if (!status)
        d->content[used] = '\0';
    *length = (size_t)used;
    close(descriptor);
    return status;
}

/* Records a file that is not in UTF-8. The other files are still read, so that all such files are
 * counted. */
static em_status see_encoding(em_documents *d, const char *path, size_t length)
{
    const em_binary_kind *kind = em_binary_kind_of(d->content, length);
    const size_t valid = em_utf8_valid_length(d->content, length);
    int64_t line = 1;

    d->n_file++;
    if (kind && kind->certain)
        return em_fail(EM_EDATA, "%s: found %s, expected %s (%s)", path, kind->name,
                       kind->expected ? kind->expected : "text", kind->advice);
    if (valid == length)
        return EM_OK;
    for (size_t i = 0; i < valid; i++)
        line += d->content[i] == '\n';
    return d->n_foreign++ > 0
               ? EM_OK
               : em_format_text(&d->foreign, "%s:%lld: found the byte 0x%02X", path,
                                (long long)line, (unsigned)(unsigned char)d->content[valid]);
}

static em_status end_folder(const em_documents *d)
{
    if (errno)
        return em_fail(EM_EIO, "%s: %s", d->options->path, strerror(errno));
    if (d->n_foreign == 0)
        return EM_OK;
    return em_fail(EM_EDATA, "%s, expected text in UTF-8, as in %lld of %lld files" EM_NO_UTF8,
                   d->foreign, (long long)(d->n_file - d->n_foreign), (long long)d->n_file);
}

static em_status next_file(em_documents *d, em_text_document *out)
{
    const size_t root = strlen(d->options->path);
    FTSENT *file;

    while (errno = 0, (file = fts_read(d->folder)) != NULL) {
        if (file->fts_level > 0 && file->fts_name[0] == '.') { /* hidden */
            fts_set(d->folder, file, FTS_SKIP);
            continue;
        }
        if (file->fts_info == FTS_ERR || file->fts_info == FTS_DNR || file->fts_info == FTS_NS)
            return em_fail(EM_EDATA, "%s: %s", file->fts_path, strerror(file->fts_errno));
        if (file->fts_info == FTS_SLNONE || file->fts_info == FTS_DC)
            return em_fail(EM_EDATA, "%s: found a link to %s, expected a document", file->fts_path,
                           file->fts_info == FTS_DC ? "a folder that it is in" : "no file");
        if (file->fts_info != FTS_F || !S_ISREG(file->fts_statp->st_mode))
            continue;
        *out =
            (em_text_document){.name = file->fts_path + root + strspn(file->fts_path + root, "/"),
                               .label = file->fts_level > 1 ? file->fts_parent->fts_name : NULL};
        em_status status = read_file(d, file, &out->length);
        status = status ? status : see_encoding(d, file->fts_path, out->length);
        out->text = status ? NULL : d->content;
        return status;
    }
    return end_folder(d);
}

static em_status begin_folder(em_documents *d)
{
    char *const paths[] = {(char *)d->options->path, NULL};

    d->next = next_file;
    if (d->options->text)
        return em_fail(EM_EDATA, "%s: found a folder, expected a file with a column '%s'",
                       d->options->path, em_excerpt_of(d->options->text).text);
    d->folder = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    return d->folder ? EM_OK : em_fail(EM_EDATA, "%s: %s", d->options->path, strerror(errno));
}

/* ---------------------------------------------------------------- all */

static em_status begin_file(em_documents *d)
{
    em_status status = em_lines_open(d->options->path, &d->lines);

    d->next = next_line;
    if (status || !d->options->text)
        return status;
    status = em_lines_next(d->lines, &d->first);
    if (!status && !d->first)
        status =
            em_fail(EM_EDATA, "%s:1: found an empty file, expected documents", d->options->path);
    if (status)
        return status;
    const char *start = d->first + strspn(d->first, " \t");
    if (*start == '[' && strchr("{", start[1 + strspn(start + 1, " \t")]))
        return em_fail(EM_EDATA,
                       "%s:1: found a JSON array, expected a JSON object in each line: jq -c '.[]' "
                       "makes them of it",
                       d->options->path);
    if (*start != '{')
        return begin_table(d);
    d->next = next_object;
    return EM_OK;
}

em_status em_documents_open(const em_documents_options *options, em_documents **out)
{
    struct stat what;
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    (*out)->options = options;
    if (stat(options->path, &what) != 0)
        status = em_fail(EM_EDATA, "%s: %s", options->path, strerror(errno));
    else
        status = S_ISDIR(what.st_mode) ? begin_folder(*out) : begin_file(*out);
    if (status)
        em_documents_close(out);
    return status;
}

em_status em_documents_next(em_documents *d, em_text_document *out)
{
    *out = (em_text_document){.text = NULL};
    return d->next(d, out);
}

void em_documents_close(em_documents **out)
{
    em_documents *d = *out;

    if (!d)
        return;
    em_lines_close(&d->lines);
    json_decref(d->object);
    if (d->folder)
        fts_close(d->folder);
    em_release_all(&d->field, &d->row, &d->content, &d->foreign, out);
}
