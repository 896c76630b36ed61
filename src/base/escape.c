#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

int em_utf8_decode(const char *text, uint32_t *code)
{
    utf8proc_int32_t found;
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &found);

    *code = (uint32_t)found;
    return n > 0 ? (int)n : 0;
}

/* Whether eight bytes are ASCII and none of them is NUL. */
static bool are_ascii(const char *text)
{
    const uint64_t high = UINT64_C(0x8080808080808080), ones = UINT64_C(0x0101010101010101);
    uint64_t bytes;

    memcpy(&bytes, text, sizeof bytes);
    return ((bytes | (bytes - ones)) & high) == 0;
}

size_t em_utf8_valid_length(const char *text, size_t length)
{
    size_t at = 0;
    uint32_t code;

    while (at < length) {
        if (length - at >= 8 && are_ascii(text + at)) {
            at += 8;
            continue;
        }
        const int n = em_utf8_decode(text + at, &code);
        if (n == 0 || code == 0)
            break;
        at += (size_t)n;
    }
    return at < length ? at : length;
}

bool em_is_utf8(const char *text)
{
    const size_t length = strlen(text);

    return em_utf8_valid_length(text, length) == length;
}

bool em_is_printable(uint32_t code)
{
    static const uint32_t range[][2] = {{0, 0x1f},        {0x7f, 0x9f},      {0xad, 0xad},
                                        {0x61c, 0x61c},   {0x200b, 0x200b},  {0x200e, 0x200f},
                                        {0x2028, 0x202e}, {0x2060, 0x206f},  {0xfeff, 0xfeff},
                                        {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (code - range[i][0] <= range[i][1] - range[i][0])
            return false;
    return true;
}

int em_escape_one(const char *text, bool (*keeps)(uint32_t), char out[EM_LONGEST_ESCAPE + 1])
{
    static const char *const known[] = {['\t'] = "\\t", ['\n'] = "\\n", ['\r'] = "\\r"};
    uint32_t code;
    const int n = em_utf8_decode(text, &code);

    if (n == 0)
        sprintf(out, "\\x%02x", (unsigned)(unsigned char)*text);
    else if (keeps(code))
        sprintf(out, "%.*s", n, text);
    else if (code < sizeof known / sizeof *known && known[code])
        strcpy(out, known[code]);
    else
        sprintf(out, code < 0x80 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    return n ? n : 1;
}

size_t em_escape(const char *text, bool (*keeps)(uint32_t), char *out, size_t bytes)
{
    const char *next = text;
    size_t length = 0;

    while (*next) {
        char one[EM_LONGEST_ESCAPE + 1];
        const int n = em_escape_one(next, keeps, one);

        if (length + strlen(one) >= bytes)
            break;
        strcpy(out + length, one);
        length += strlen(one);
        next += n;
    }
    out[length] = '\0';
    return (size_t)(next - text);
}

size_t em_text_escape(const char *text, char *out, size_t bytes)
{
    return em_escape(text, em_is_printable, out, bytes);
}

/* Characters that look like the minus or the blank of ASCII but are others. */
static const struct {
    uint32_t code;
    char as; /* 0: nothing */
    const char *name;
} lookalike[] = {{0x2212, '-', "U+2212 MINUS SIGN"},
                 {0x2010, '-', "U+2010 HYPHEN"},
                 {0x2011, '-', "U+2011 NON-BREAKING HYPHEN"},
                 {0x2012, '-', "U+2012 FIGURE DASH"},
                 {0x2013, '-', "U+2013 EN DASH"},
                 {0x2014, '-', "U+2014 EM DASH"},
                 {0xfe63, '-', "U+FE63 SMALL HYPHEN-MINUS"},
                 {0xff0d, '-', "U+FF0D FULLWIDTH HYPHEN-MINUS"},
                 {0xa0, 0, "U+00A0 NO-BREAK SPACE"},
                 {0x2007, 0, "U+2007 FIGURE SPACE"},
                 {0x2009, 0, "U+2009 THIN SPACE"},
                 {0x200b, 0, "U+200B ZERO WIDTH SPACE"},
                 {0x202f, 0, "U+202F NARROW NO-BREAK SPACE"},
                 {0xfeff, 0, "U+FEFF ZERO WIDTH NO-BREAK SPACE"}};

enum { N_LOOKALIKE = sizeof lookalike / sizeof *lookalike };

static int find_lookalike(uint32_t code)
{
    int k = 0;

    while (k < N_LOOKALIKE && lookalike[k].code != code)
        k++;
    return k;
}

const char *em_text_to_ascii(const char *text, size_t bytes, char *out)
{
    const char *name = NULL;
    uint32_t code;
    size_t length = 0;

    for (int n; *text && length + 1 < bytes; text += n) {
        n = em_utf8_decode(text, &code);
        const int k = n > 1 ? find_lookalike(code) : N_LOOKALIKE;
        n = n > 0 ? n : 1;
        if (k < N_LOOKALIKE) {
            name = name ? name : lookalike[k].name;
            if (lookalike[k].as)
                out[length++] = lookalike[k].as;
        } else if (length + (size_t)n < bytes) {
            memcpy(out + length, text, (size_t)n);
            length += (size_t)n;
        } else {
            break;
        }
    }
    out[length] = '\0';
    return name;
}

/* Whether the character can be printed as it is. A blank that only looks like that of ASCII is not
 * printed as it is, because no reader would notice it. */
static bool is_distinct(uint32_t code)
{
    const int k = find_lookalike(code);

    return em_is_printable(code) && (k == N_LOOKALIKE || lookalike[k].as);
}

em_excerpt em_excerpt_of(const char *text)
{
    enum { LONGEST = 64 };
    em_excerpt excerpt;
    const size_t taken = em_escape(text, is_distinct, excerpt.text, LONGEST + 1);

    if (text[taken])
        strcat(excerpt.text, "...");
    return excerpt;
}

void em_print_in_quotes(FILE *out, char quote, const char *text)
{
    fputc(quote, out);
    for (; *text; text++) {
        if (*text == quote)
            fputc(quote, out);
        fputc(*text, out);
    }
    fputc(quote, out);
}

void em_print_quoted(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n"))
        em_print_in_quotes(out, '"', text);
    else
        fputs(text, out);
}

void em_escape_html(FILE *out, const char *text)
{
    static const char *const entity[UCHAR_MAX + 1] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;"};

    for (; *text; text++)
        if (entity[(unsigned char)*text])
            fputs(entity[(unsigned char)*text], out);
        else
            fputc(*text, out);
}
