#include "app/command/command.h"

#include "base/memory.h"
#include "base/system/terminal.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* help.txt, as the build found it beside this file: sections that begin with "@ " and a name. The
 * path is from the folder of the Makefile, where the compiler runs. */
extern const char em_help_text[];
__asm__(".section .rodata\n.global em_help_text\nem_help_text:\n"
        ".incbin \"src/app/command/help.txt\"\n.byte 0\n.previous\n");

/* The text of the section of that name, up to the next section; "" if there is none. */
static const char *find_section(const char *name, int *length)
{
    for (const char *at = em_help_text; at; at = strstr(at + 1, "\n@ ")) {
        const char *title = at + strspn(at, "\n@ "), *text = strchr(title, '\n') + 1;

        if (strncmp(title, name, strlen(name)) != 0 || title + strlen(name) + 1 != text)
            continue;
        *length = (int)(strstr(text, "\n@") + 1 - text);
        return text;
    }
    *length = 0;
    return "";
}

/* Whether `next` continues the sentence of the line before it, in the paragraph that begins at
 * `start`. Both lines are at the margin and are no titles, or both are indented text of an option.
 */
static bool continues(const char *start, const char *line, const char *next)
{
    enum { FAR = 8 };
    const size_t indent = strspn(next, " "), length = strcspn(line, "\n");

    if (*next == '\n' || *next == '\0' || length == 0)
        return false;
    return indent >= FAR ? *start == ' ' : indent == 0 && *start != ' ' && line[length - 1] != ':';
}

/* Prints the text with each sentence joined to one line. */
static void join_lines(const char *text, FILE *out)
{
    const char *start = text, *next;

    for (const char *line = text; *line; line = next) {
        const size_t length = strcspn(line, "\n");

        next = line + length + (line[length] == '\n');
        fwrite(line, 1, length, out);
        if (continues(start, line, next)) {
            fputc(' ', out);
            next += strspn(next, " ");
        } else {
            fputc('\n', out);
            start = next;
        }
    }
}

/* Prints a text, and below it the exit statuses. */
static em_status print(int length, const char *text)
{
    enum { WIDEST = 100 };
    int length_of_end;
    const char *end = find_section("exit status", &length_of_end);
    EM_SCOPED char *whole = NULL;
    em_prose prose;
    em_status status = em_format_text(&whole, "%.*s%.*s", length, text, length_of_end, end);

    status = status ? status : em_prose_begin(stdout, &prose);
    if (!status) {
        if (em_terminal_columns(stdout) > 0)
            join_lines(whole, prose.words);
        else
            fputs(whole, prose.words);
        em_prose_end(&prose, WIDEST);
    }
    return status;
}

em_status em_help_print(const char *name)
{
    int length;
    const char *text = find_section(name, &length);

    return print(length, text);
}

em_status em_help_print_text(const char *text)
{
    return print((int)strlen(text), text);
}
