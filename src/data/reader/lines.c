#include "data/reader/lines.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/reader/binary_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { FIRST_CAPACITY = 1 << 17, LONGEST_LINE = 1 << 26, PACKED_BYTES = 1 << 16 };

#define XZ_MEMORY (UINT64_C(1) << 30) /* a damaged header must not fill the memory */

static em_status create(const char *path, em_lines **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_lines *lines = *out;

    if (status)
        return status;
    lines->path = path;
    lines->descriptor = -1;
    lines->limit = INT64_MAX;
    lines->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!lines->locale)
        return em_fail(EM_EMEMORY, "%s: out of memory", path);
    return EM_OK;
}

em_status em_lines_open(const char *path, em_lines **out)
{
    int descriptor;
    em_status status = create(path, out);

    status = status ? status : em_file_open(path, O_RDONLY, &descriptor);
    if (!status && !((*out)->file = gzdopen(descriptor, "rb"))) {
        close(descriptor);
        status = em_fail(EM_EMEMORY, "%s: out of memory", path);
    }
    if (status)
        em_lines_close(out);
    return status;
}

/* The offset after the first newline at or after `from`; the end of the file if there is none. */
static em_status pass_newline(int descriptor, const char *path, int64_t from, int64_t *after)
{
    char piece[4096];
    ssize_t got;

    for (*after = from; (got = pread(descriptor, piece, sizeof piece, *after)) > 0; *after += got) {
        const char *newline = memchr(piece, '\n', (size_t)got);
        if (newline) {
            *after += newline + 1 - piece;
            return EM_OK;
        }
    }
    return got == 0 ? EM_OK
                    : em_fail(EM_EDATA, "%s: found an unreadable file (%s), expected text", path,
                              strerror(errno));
}

em_status em_lines_open_range(const char *path, int64_t first, int64_t limit, int64_t newlines,
                              em_lines **out)
{
    em_status status = create(path, out);

    status = status ? status : em_file_open(path, O_RDONLY, &(*out)->descriptor);
    if (!status && first > 0) /* a line that begins at `first` follows a newline */
        status = pass_newline((*out)->descriptor, path, first - 1, &(*out)->position);
    if (!status) {
        (*out)->number = newlines + ((*out)->position > first);
        (*out)->limit = limit;
    } else {
        em_lines_close(out);
    }
    return status;
}

static int64_t count_newlines(const char *text, int64_t length)
{
    int64_t count = 0;

    for (const char *c = text, *end = text + length;
         c < end && (c = memchr(c, '\n', (size_t)(end - c))); c++)
        count++;
    return count;
}

em_status em_lines_count(const char *path, int64_t first, int64_t limit, int64_t *count)
{
    enum { PIECE = 1 << 18 };
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    ssize_t got = 1;
    EM_SCOPED char *piece = NULL;
    em_status status = em_file_open(path, O_RDONLY, &descriptor);

    *count = 0;
    status = status ? status : em_allocate(PIECE, 1, &piece);
    while (!status && first < limit && got > 0) {
        got = pread(descriptor, piece, limit - first < PIECE ? (size_t)(limit - first) : PIECE,
                    first);
        if (got < 0)
            status = em_fail(EM_EDATA, "%s: found an unreadable file (%s), expected text", path,
                             strerror(errno));
        else
            *count += count_newlines(piece, got);
        first += got;
    }
    return status;
}

em_status em_lines_open_blocks(const char *path, em_lines **out)
{
    em_status status = create(path, out);

    if (status)
        em_lines_close(out);
    else
        (*out)->ended = true;
    return status;
}

em_status em_lines_block(em_lines *lines, int64_t length, int64_t number, char **room)
{
    em_status status = em_reserve(&lines->buffer, &lines->capacity, 0, length + 1);

    lines->begin = lines->end = 0;
    if (status)
        return status;
    lines->end = lines->position = length;
    lines->number = number;
    *room = lines->buffer;
    return EM_OK;
}

void em_lines_close(em_lines **out)
{
    em_lines *lines = *out;

    if (!lines)
        return;
    if (lines->file)
        gzclose(lines->file);
    em_file_close(&lines->descriptor);
    if (lines->xz)
        lzma_end(lines->xz);
    em_release_all(&lines->xz, &lines->packed);
    if (lines->locale)
        freelocale(lines->locale);
    em_release_all(&lines->buffer, out);
}

static em_status damaged(const em_lines *lines, const char *what)
{
    return em_fail(EM_EDATA, "%s:%lld: found %s after this line, expected a complete one",
                   lines->path, (long long)lines->number, what);
}

/* Reads bytes of the file, decompressing gzip. A failure is returned only after all bytes before
 * it. */
static em_status fetch_plain(em_lines *lines, char *out, int64_t room, int64_t *got)
{
    int code = Z_ERRNO;

    *got = lines->file ? gzread(lines->file, out, (unsigned)room)
                       : pread(lines->descriptor, out, (size_t)room, lines->position);
    if (lines->file)
        gzerror(lines->file, &code);
    if (*got > 0 || (*got == 0 && (!lines->file || code == Z_OK || code == Z_STREAM_END)))
        return EM_OK;
    return damaged(lines,
                   code == Z_ERRNO ? "an unreadable file" : "a truncated or damaged gzip file");
}

static em_status fetch_xz(em_lines *lines, char *out, int64_t room, int64_t *got)
{
    lzma_stream *xz = lines->xz;
    lzma_ret code = LZMA_OK;
    em_status status = EM_OK;

    xz->next_out = (uint8_t *)out;
    xz->avail_out = (size_t)room;
    while (code == LZMA_OK && xz->avail_out == (size_t)room) {
        int64_t more = 0;
        if (xz->avail_in == 0) {
            status = fetch_plain(lines, lines->packed, PACKED_BYTES, &more);
            xz->next_in = (uint8_t *)lines->packed;
            xz->avail_in = (size_t)more;
        }
        if (status)
            return status;
        code = lzma_code(xz, xz->avail_in == 0 ? LZMA_FINISH : LZMA_RUN);
    }
    *got = room - (int64_t)xz->avail_out;
    if (code == LZMA_MEM_ERROR)
        return em_fail(EM_EMEMORY, "%s: out of memory", lines->path);
    if (code != LZMA_OK && code != LZMA_STREAM_END)
        return damaged(lines, "a truncated or damaged xz file");
    return EM_OK;
}

/* Begins to decompress xz: moves the `held` bytes in `buffer` to the compressed bytes. */
static em_status begin_xz(em_lines *lines, int64_t held)
{
    static const lzma_stream fresh = LZMA_STREAM_INIT;
    em_status status = em_allocate(1, sizeof fresh, &lines->xz);

    if (!status)
        status = em_allocate(PACKED_BYTES > held ? PACKED_BYTES : held, 1, &lines->packed);
    if (status)
        return status;
    *lines->xz = fresh;
    if (lzma_stream_decoder(lines->xz, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
        return em_fail(EM_EMEMORY, "%s: out of memory", lines->path);
    memcpy(lines->packed, lines->buffer, (size_t)held);
    lines->xz->next_in = (uint8_t *)lines->packed;
    lines->xz->avail_in = (size_t)held;
    return EM_OK;
}

static em_status fetch(em_lines *lines, char *out, int64_t room, int64_t *got)
{
    static const char magic[] = {'\xFD', '7', 'z', 'X', 'Z', '\0'};
    const bool first = lines->file && lines->position == 0;

    if (lines->xz)
        return fetch_xz(lines, out, room, got);
    em_status status = fetch_plain(lines, out, room, got);
    if (status || !first || *got < (int64_t)sizeof magic || memcmp(out, magic, sizeof magic) != 0)
        return status;
    status = begin_xz(lines, *got);
    return status ? status : fetch_xz(lines, out, room, got);
}

/* Enlarges the buffer and fills it. */
static em_status refill(em_lines *lines)
{
    int64_t held = lines->end - lines->begin;
    int64_t got;

    if (held >= LONGEST_LINE)
        return em_fail(EM_EDATA, "%s:%lld: found a line of more than %d bytes, expected text",
                       lines->path, (long long)lines->number + 1, LONGEST_LINE);
    if (held > 0 && lines->begin > 0)
        memmove(lines->buffer, lines->buffer + lines->begin, (size_t)held);
    lines->begin = 0;
    lines->end = held;
    em_status status =
        em_reserve(&lines->buffer, &lines->capacity, held, held ? 2 * held + 1 : FIRST_CAPACITY);
    if (status)
        return status;
    /* One byte stays free for the terminator of a last line that has no newline. */
    status = fetch(lines, lines->buffer + held, lines->capacity - held - 1, &got);
    if (status)
        return status;
    lines->position += got;
    lines->end += got;
    lines->ended = got == 0;
    return EM_OK;
}

static char *find_newline(const em_lines *lines, int64_t from)
{
    return lines->end > lines->begin + from ? memchr(lines->buffer + lines->begin + from, '\n',
                                                     (size_t)(lines->end - lines->begin - from))
                                            : NULL;
}

/* The next line, even if it is blank; NULL at the end of the file. */
static em_status raw_line(em_lines *lines, char **line, int64_t *length)
{
    char *newline = NULL;
    em_status status = EM_OK;

    *line = NULL;
    if (em_lines_offset(lines) >= lines->limit)
        return EM_OK;
    while (!status && !(newline = find_newline(lines, 0)) && !lines->ended)
        status = refill(lines);
    if (status || (!newline && lines->begin == lines->end))
        return status;
    *line = lines->buffer + lines->begin;
    *length = newline ? newline - *line : lines->end - lines->begin;
    lines->begin += *length + (newline != NULL);
    lines->number++;
    (*line)[*length] = '\0';
    return EM_OK;
}

em_status em_lines_next_block(em_lines *lines, int64_t least, const char **block, int64_t *length)
{
    const char *newline = NULL;
    em_status status = EM_OK;

    while (!status && !(newline = find_newline(lines, least - 1)) && !lines->ended)
        status = refill(lines);
    if (status && lines->end > lines->begin)
        newline = memrchr(lines->buffer + lines->begin, '\n', (size_t)(lines->end - lines->begin));
    if (status && !newline)
        return status;
    *block = lines->buffer + lines->begin;
    *length = newline ? newline + 1 - *block : lines->end - lines->begin;
    lines->begin += *length;
    lines->number += count_newlines(*block, *length) + (!newline && *length > 0);
    return EM_OK;
}

void em_lines_give_back(em_lines *lines, int64_t length)
{
    lines->begin -= length;
    lines->number -= count_newlines(lines->buffer + lines->begin, length);
}

/* Checks that a line is text, by the first bytes of the file and by zero bytes in the line. */
static em_status check_text(const em_lines *lines, const char *line, int64_t length)
{
    const em_binary_kind *kind =
        lines->number == 1 ? em_binary_kind_of(line, (size_t)length) : NULL;
    const bool has_zero = memchr(line, '\0', (size_t)length) != NULL;

    if (!has_zero && !(kind && kind->certain))
        return EM_OK;
    if (em_text_ends_with(lines->path, ".npz"))
        kind = NULL;
    return em_fail(EM_EDATA, "%s:%lld: found %s, expected %s (%s)", lines->path,
                   (long long)lines->number, kind ? kind->name : "a binary file",
                   kind && kind->expected ? kind->expected : "text",
                   kind ? kind->advice
                   : em_text_ends_with(lines->path, ".npz")
                       ? "a matrix of scipy is written by emass.write_corpus of Python"
                       : "HDF5 data are named file.h5:/dataset");
}

/* Checks a file of one line: its lines must not end by carriage returns alone. */
static em_status check_ends(const em_lines *lines, const char *line)
{
    const char *end = strchr(line, '\r');

    if (!end || !end[1] || lines->number > 1 || !em_lines_are_over(lines))
        return EM_OK;
    return em_fail(EM_EDATA,
                   "%s:%lld: found lines that end with a carriage return alone, expected a newline "
                   "at each line's end (tr '\\r' '\\n' <FILE >NEW)",
                   lines->path, (long long)lines->number);
}

em_status em_lines_check_utf8(const em_lines *lines, const char *line)
{
    const size_t length = strlen(line), valid = em_utf8_valid_length(line, length);

    if (valid == length)
        return EM_OK;
    return em_fail(EM_EDATA, "%s:%lld: found the byte 0x%02X, expected text in UTF-8" EM_NO_UTF8,
                   lines->path, (long long)lines->number, (unsigned)(unsigned char)line[valid]);
}

em_status em_lines_next(em_lines *lines, char **line)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* UTF-8's, before the first line */
    int64_t length = 0;

    do {
        em_status status = raw_line(lines, line, &length);
        if (status || !*line)
            return status;
        status = check_text(lines, *line, length);
        status = status ? status : check_ends(lines, *line);
        if (status)
            return status;
        if (length > 0 && (*line)[length - 1] == '\r')
            (*line)[length - 1] = '\0';
        if (lines->number == 1 && strncmp(*line, mark, sizeof mark - 1) == 0)
            *line += sizeof mark - 1;
    } while ((*line)[strspn(*line, " \t")] == '\0');
    return EM_OK;
}

static bool is_nonfinite_word(const char *text)
{
    static const char *const word[] = {"nan", "inf", "infinity"};

    text += *text == '+' || *text == '-';
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strcasecmp(text, word[i]) == 0)
            return true;
    return false;
}

/* Reads the digits at *at. Returns false if there are more than nineteen, the most that fit. */
static bool read_digits(const char **at, uint64_t *digits, int *n)
{
    for (; **at >= '0' && **at <= '9'; ++*at, *n += *n > 0 || *digits > 0)
        *digits = *digits * 10 + (uint64_t)(**at - '0');
    return *n < 19;
}

/* Parses a short decimal, as most numbers of a table are. Its digits and the power of ten are both
 * exact as doubles, so their quotient is rounded once (Clinger 1990). Returns false for anything
 * else. */
static bool read_short(const char *text, double *value)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *at = text + (*text == '-' || *text == '+'), *first = at, *point;
    uint64_t digits = 0;
    int n = 0;

    if (!read_digits(&at, &digits, &n))
        return false;
    point = at;
    if (*at == '.') {
        at++;
        if (!read_digits(&at, &digits, &n))
            return false;
    }
    const long n_behind = point < at ? at - point - 1 : 0;
    if (*at != '\0' || at - first - (point < at) < 1 || digits > (UINT64_C(1) << 53) ||
        n_behind > 22)
        return false;
    *value = (double)digits / power[n_behind];
    *value = *text == '-' ? -*value : *value;
    return true;
}

em_token em_lines_token(const em_lines *lines, const char *text, double *value)
{
    char *end;

    if (read_short(text, value))
        return EM_TOKEN_NUMBER;
    /* strtod would also take hexadecimal, ... */
    if (text[strspn(text, "+-.0123456789eE")] != '\0')
        return is_nonfinite_word(text) ? EM_TOKEN_NONFINITE : EM_TOKEN_TEXT;
    *value = strtod_l(text, &end, lines->locale);
    if (end == text || *end != '\0')
        return EM_TOKEN_TEXT;
    return isfinite(*value) ? EM_TOKEN_NUMBER : EM_TOKEN_NONFINITE;
}

em_status em_lines_number(const em_lines *lines, const char *text, const char *what, double *value)
{
    em_token token = em_lines_token(lines, text, value);

    if (token == EM_TOKEN_NUMBER)
        return EM_OK;
    if (*text == '\0')
        return em_fail(EM_EDATA, "%s:%lld: found nothing for %s, expected a number", lines->path,
                       (long long)lines->number, what);
    return em_fail(EM_EDATA, "%s:%lld: found '%s' for %s, expected a %s", lines->path,
                   (long long)lines->number, em_excerpt_of(text).text, what,
                   token == EM_TOKEN_TEXT ? "number" : "finite number");
}
