#include "base/system/terminal.h"

#include "base/file.h"
#include "base/system/launcher.h"
#include "base/text.h"

#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

/* The parent of a helper process that stands between a launcher and its ranks, such as MPICH's
 * hydra_pmi_proxy on each node; 0: `process` is no such helper. */
static int starter_of_proxy(int process)
{
    char path[64], name[16] = "";
    int starter = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", process);
    EM_SCOPED_FILE *file = fopen(path, "re");
    const bool known = file && fscanf(file, "%*d (%15[^)]) %*c %d", name, &starter) == 2;
    return known && strncmp(name, "hydra_", strlen("hydra_")) == 0 ? starter : 0;
}

/* Opens the terminal by the name that the launcher's stream has on this node; below 0: there is
 * none. A terminal that has been closed causes no hang-up signal. */
static int open_launchers(int descriptor)
{
    char path[64];
    int launcher = getppid();

    for (int above = starter_of_proxy(launcher); above > 0; above = starter_of_proxy(launcher))
        launcher = above;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", launcher, descriptor);
    return open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

static int columns_of(int descriptor)
{
    enum { USUAL = 80 };
    struct winsize size;

    if (!isatty(descriptor))
        return 0;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL;
}

int em_terminal_columns(FILE *stream)
{
    const int descriptor = fileno(stream);
    const bool standard = descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO;

    if (descriptor < 0 || !standard || em_launched_ranks() == 0)
        return descriptor < 0 ? 0 : columns_of(descriptor);
    EM_SCOPED_BY(em_file_close) const int launchers = open_launchers(descriptor);
    return launchers < 0 ? 0 : columns_of(launchers);
}

bool em_terminal_colours(FILE *stream)
{
    const char *none = getenv("NO_COLOR"), *kind = getenv("TERM");

    return em_terminal_columns(stream) > 0 && !(none && *none) && kind && *kind &&
           strcmp(kind, "dumb") != 0;
}

/* ---------------------------------------------------------------- text */

/* The length of a colour sequence (terminal.h) at `text`, which takes no columns; 0: there is none.
 */
static size_t colour_length(const char *text)
{
    return text[0] == '\033' ? strcspn(text, "m") + 1 : 0;
}

static int width_of(const char *text, const char *end)
{
    int columns = 0;

    while (text < end) {
        uint32_t code;
        text += colour_length(text);
        if (text >= end)
            break;
        const int bytes = em_utf8_decode(text, &code);
        const int width = bytes ? wcwidth((wchar_t)code) : 1;

        columns += width < 0 ? 1 : width;
        text += bytes ? bytes : 1;
    }
    return columns;
}

static bool is_plain(const char *text, const char *end)
{
    while (text < end && *text >= ' ' && *text <= '~')
        text++;
    return text == end;
}

/* The number of columns that the text takes. The widths of characters come from a UTF-8 locale,
 * whatever the locale of the host program is. */
static int width_between(const char *text, const char *end)
{
    if (is_plain(text, end))
        return (int)(end - text);

    locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = uselocale(unicode);
    const int columns = width_of(text, end);

    uselocale(before);
    if (unicode)
        freelocale(unicode);
    return columns;
}

int em_terminal_width(const char *text)
{
    return width_between(text, text + strlen(text));
}

/* The column at which the continuation lines of a broken line begin. */
static int hanging(const char *line, const char *end, int columns)
{
    const int indent = (int)strspn(line, " ");
    int hang = indent == 0 || indent > 8 ? indent : indent + 2;

    for (const char *c = line + indent; c + 2 < end && c - line < columns / 2; c++)
        if (c[0] == ' ' && c[1] == ' ' && c[2] != ' ')
            hang = (int)(c + 2 - line);
    return hang < columns / 2 ? hang : columns / 2;
}

/* One line, without its end. */
static void fill_line(FILE *stream, int columns, const char *line, const char *end)
{
    const int hang = hanging(line, end, columns);
    const char *word = line;
    int at = 0;

    while (word < end) {
        const char *text = word + strspn(word, " "), *next = text + strcspn(text, " \n");
        const int blanks = (int)(text - word), width = width_between(text, next);

        if (at > hang && at + blanks + width > columns) {
            fprintf(stream, "\n%*s", hang, "");
            at = hang;
        } else {
            fprintf(stream, "%*s", blanks, "");
            at += blanks;
        }
        fwrite(text, 1, (size_t)(next - text), stream);
        at += width;
        word = next;
    }
}

void em_terminal_fill(FILE *stream, int columns, const char *text)
{
    if (columns <= 0) {
        fputs(text, stream);
        return;
    }
    while (*text) {
        const char *end = text + strcspn(text, "\n");

        fill_line(stream, columns, text, end);
        if (*end)
            fputc('\n', stream);
        text = *end ? end + 1 : end;
    }
}

em_status em_prose_begin(FILE *stream, em_prose *prose)
{
    *prose = (em_prose){.stream = stream};
    prose->words = open_memstream(&prose->text, &prose->size);
    return prose->words ? EM_OK : em_fail(EM_EMEMORY, "out of memory");
}

void em_prose_end(em_prose *prose, int widest)
{
    const int columns = em_terminal_columns(prose->stream);

    if (prose->words && fclose(prose->words) == 0)
        em_terminal_fill(prose->stream, columns < widest ? columns : widest, prose->text);
    free(prose->text);
    *prose = (em_prose){.words = NULL};
}
