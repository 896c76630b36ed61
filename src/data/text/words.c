#include "data/text/words.h"

#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* A word being read. */
typedef struct run {
    char text[EM_LONGEST_WORD];
    size_t length, before_mark; /* before_mark: of the word without an apostrophe at its end */
    int n_character;
    bool has_letter, plain, too_long, ends_with_letter;
    em_words_take *take;
    void *to;
} run;

static void begin(run *r)
{
    r->length = r->before_mark = 0;
    r->n_character = 0;
    r->has_letter = r->too_long = r->ends_with_letter = false;
    r->plain = true;
}

static void add(run *r, const char *bytes, size_t n)
{
    if (r->length + n > sizeof r->text) {
        r->too_long = true;
        return;
    }
    memcpy(r->text + r->length, bytes, n);
    r->length += n;
}

/* Passes the word on after composing its characters (NFC) if that changes it. */
static em_status give_composed(const run *r)
{
    EM_SCOPED utf8proc_uint8_t *composed = NULL;
    const utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)r->text, (utf8proc_ssize_t)r->length, &composed,
                     UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    em_status status = EM_OK;

    if (length == UTF8PROC_ERROR_NOMEM)
        status = em_fail(EM_EMEMORY, "out of memory for a word");
    else if (length > 0)
        status = r->take(r->to, (const char *)composed, (size_t)length);
    return status;
}

static em_status end(run *r)
{
    em_status status = EM_OK;

    if (r->length > 0 && !r->ends_with_letter && r->before_mark > 0)
        r->length = r->before_mark;
    if (r->has_letter && r->n_character >= 2 && !r->too_long)
        status = r->plain ? r->take(r->to, r->text, r->length) : give_composed(r);
    begin(r);
    return status;
}

static bool is_apostrophe(utf8proc_int32_t code)
{
    return code == '\'' || code == 0x2019;
}

typedef struct kind {
    bool letter, mark, digit;
} kind;

static kind kind_of(utf8proc_int32_t code)
{
    if (code < 0x80) {
        const int lower = code | 0x20;
        return (kind){.letter = lower >= 'a' && lower <= 'z', .digit = code >= '0' && code <= '9'};
    }
    const utf8proc_category_t category = utf8proc_category(code);
    return (kind){
        .letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO,
        .mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME,
        .digit = category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO,
    };
}

/* Adds a letter, a mark or a digit to the word. */
static void add_character(run *r, utf8proc_int32_t code, kind is)
{
    utf8proc_uint8_t bytes[4] = {(utf8proc_uint8_t)(is.letter ? code | 0x20 : code)};
    const utf8proc_ssize_t n =
        code < 0x80 ? 1 : utf8proc_encode_char(utf8proc_tolower(code), bytes);

    add(r, (const char *)bytes, (size_t)n);
    r->plain &= n == 1;
    r->has_letter |= is.letter;
    r->n_character += !is.mark;
    r->ends_with_letter = is.letter || is.mark;
    r->before_mark = 0;
}

/* Processes one character. A character that cannot be part of a word ends the word. */
static em_status see(run *r, utf8proc_int32_t code)
{
    const kind is = kind_of(code);
    const bool after_apostrophe = r->before_mark > 0;

    if (after_apostrophe && !is.letter) { /* it stood at the end of the word */
        const em_status status = end(r);
        if (status)
            return status;
    }
    if (is.letter || is.digit || (is.mark && r->n_character > 0)) {
        add_character(r, code, is);
        return EM_OK;
    }
    if (is_apostrophe(code) && r->ends_with_letter && !after_apostrophe) {
        r->before_mark = r->length;
        add(r, "'", 1);
        r->ends_with_letter = false;
        return EM_OK;
    }
    return end(r);
}

em_status em_words_each(const char *text, size_t length, em_words_take *take, void *to)
{
    run r = {.take = take, .to = to};
    em_status status = EM_OK;

    begin(&r);
    for (size_t at = 0; !status && at < length;) {
        utf8proc_int32_t code = (unsigned char)text[at];
        utf8proc_ssize_t n = 1;
        if (code >= 0x80)
            n = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                 (utf8proc_ssize_t)(length - at), &code);
        if (n < 1) {
            n = 1;
            code = 0; /* of no word */
        }
        status = see(&r, code);
        at += (size_t)n;
    }
    return status ? status : end(&r);
}
