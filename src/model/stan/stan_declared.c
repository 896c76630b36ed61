#include "model/stan/stan_declared.h"

#include "base/memory.h"

#include <ctype.h>
#include <string.h>

const char *em_stan_skip_one(const char *c)
{
    const char *end = NULL;

    if (c[0] == '/' && c[1] == '*') {
        end = strstr(c + 2, "*/");
        return end ? end + 2 : c + strlen(c);
    }
    if (c[0] == '/' && c[1] == '/')
        return c + strcspn(c, "\n");
    if (c[0] == '"') {
        end = c + 1 + strcspn(c + 1, "\"\n");
        return *end == '"' ? end + 1 : end;
    }
    return c + 1;
}

/* Blanks out comments, strings and directives: remaining brackets and semicolons are code. */
static void strip(char *text)
{
    for (char *c = text; *c;) {
        const bool is_directive = *c == '#';
        const size_t length = is_directive ? strcspn(c, "\n") : (size_t)(em_stan_skip_one(c) - c);
        if (length > 1 || is_directive || *c == '"')
            memset(c, ' ', length);
        c += length;
    }
}

const char *em_stan_skip_blanks(const char *c)
{
    while (isspace((unsigned char)*c))
        c++;
    return c;
}

/* The position after a character, unless it is the end of the text. */
static const char *past(const char *c)
{
    return *c ? c + 1 : c;
}

size_t em_stan_word_length(const char *c)
{
    size_t n = 0;

    while (isalnum((unsigned char)c[n]) || c[n] == '_')
        n++;
    return n;
}

static bool is_word(const char *c, const char *word)
{
    return em_stan_word_length(c) == strlen(word) && strncmp(c, word, strlen(word)) == 0;
}

/* The position after the bracket that closes the one at `c`, or the end of the text. */
static const char *skip_brackets(const char *c)
{
    int depth = 0;

    do {
        depth += *c == '(' || *c == '[' || *c == '{';
        depth -= *c == ')' || *c == ']' || *c == '}';
        c += *c != '\0';
    } while (*c && depth > 0);
    return c;
}

const char *em_stan_find_outside(const char *c, const char *wanted)
{
    while (*c && !strchr(wanted, *c))
        c = strchr("([{", *c) ? skip_brackets(c) : c + 1;
    return c;
}

static em_status append(em_stan_declared *declared, em_stan_declaration **out)
{
    const em_status status = em_reserve(&declared->declaration, &declared->capacity,
                                        declared->count, declared->count + 1);

    if (!status)
        *out = &declared->declaration[declared->count++];
    return status;
}

/* Writes the type as in the program, with single blanks, and the name after it. */
static em_status write_text(const char *type, size_t length, const char *name, char **out)
{
    em_status status = em_format_text(out, "%.*s %s", (int)length, type, name);
    char *to = status ? NULL : *out;

    for (const char *from = to; !status && *from; from++)
        if (!isspace((unsigned char)*from) || !isspace((unsigned char)from[1]))
            *to++ = isspace((unsigned char)*from) ? ' ' : *from;
    if (!status)
        *to = '\0';
    return status;
}

static em_status add(em_stan_declared *declared, em_stan_block block, bool is_integer,
                     const char *type, size_t type_length, const char *name, size_t name_length)
{
    em_stan_declaration *added;
    em_status status = append(declared, &added);

    if (status)
        return status;
    added->block = block;
    added->is_integer = is_integer;
    status = em_format_text(&added->name, "%.*s", (int)name_length, name);
    return status ? status : write_text(type, type_length, added->name, &added->text);
}

/* A statement "array[N] int<lower=0> a, b = 2" that may declare variables; `end` is its semicolon.
 * A statement of another kind has no name at that position, or declares no integer and does no
 * harm. */
static em_status read_statement(em_stan_declared *declared, em_stan_block block, const char *start,
                                const char *end)
{
    const char *base = start, *at;
    em_status status = EM_OK;

    if (is_word(base, "array"))
        base = em_stan_skip_blanks(skip_brackets(em_stan_skip_blanks(base + 5)));
    at = em_stan_skip_blanks(base + em_stan_word_length(base));
    if (at < end && *at == '<')
        at = em_stan_skip_blanks(past(em_stan_find_outside(at, ">")));
    if (at < end && (*at == '[' || *at == '('))
        at = em_stan_skip_blanks(skip_brackets(at));
    size_t type_length = (size_t)(at - start);
    while (!status && at < end && em_stan_word_length(at) > 0) {
        status = add(declared, block, is_word(base, "int"), start, type_length, at,
                     em_stan_word_length(at));
        at = em_stan_find_outside(at, ",;");
        at = *at == ',' ? em_stan_skip_blanks(at + 1) : end;
    }
    return status;
}

/* Reads the statements of a block, from after its opening brace to its closing one. */
static em_status read_block(em_stan_declared *declared, em_stan_block block, const char *c,
                            const char *close)
{
    em_status status = EM_OK;

    for (c = em_stan_skip_blanks(c); !status && c < close; c = em_stan_skip_blanks(c)) {
        const char *end = c;
        while (end < close && *end != ';' && *end != '{')
            end = strchr("([", *end) ? skip_brackets(end) : end + 1;
        if (end < close && *end == '{') { /* a loop, a condition: not the top of the block */
            c = skip_brackets(end);
            continue;
        }
        if (end < close)
            status = read_statement(declared, block, c, end);
        c = end < close ? end + 1 : close;
    }
    return status;
}

/* Finds the next block from *at on: its name begins at *at, and its braces are at *open and before
 * *close, after which the search may continue. False: there are no more blocks. */
static bool find_block(const char **at, const char **open, const char **close)
{
    *at = em_stan_skip_blanks(*at);
    *open = *at + strcspn(*at, "{");
    *close = skip_brackets(*open);
    return **open != '\0';
}

static bool are_words(const char *c, const char *first, const char *second)
{
    return is_word(c, first) && is_word(em_stan_skip_blanks(c + em_stan_word_length(c)), second);
}

static bool is_generated(const char *name)
{
    return are_words(name, "generated", "quantities");
}

static em_status read_blocks(em_stan_declared *declared, const char *at)
{
    const char *open, *close;
    em_status status = EM_OK;

    for (; !status && find_block(&at, &open, &close); at = close)
        if (is_word(at, "data"))
            status = read_block(declared, EM_STAN_DATA, open + 1, close - 1);
        else if (is_word(at, "parameters"))
            status = read_block(declared, EM_STAN_PARAMETERS, open + 1, close - 1);
        else if (are_words(at, "transformed", "parameters"))
            status = read_block(declared, EM_STAN_TRANSFORMED, open + 1, close - 1);
        else if (is_generated(at))
            status = read_block(declared, EM_STAN_GENERATED, open + 1, close - 1);
    return status;
}

em_status em_stan_without_generated(const char *program, char **out)
{
    const char *at, *open, *close;
    EM_SCOPED char *text = NULL;
    bool found = false;
    em_status status = em_copy_text(program, &text);

    *out = NULL;
    status = status ? status : em_copy_text(program, out);
    if (!status) {
        strip(text);
        for (at = text; find_block(&at, &open, &close); at = close)
            for (const char *c = at; is_generated(at) && c < close; c++) {
                (*out)[c - text] = *c == '\n' ? '\n' : ' ';
                found = true;
            }
    }
    if (status || !found)
        em_release(out);
    return status;
}

static bool names_solver(const char *text)
{
    static const char *const word[] = {"ode_", "dae", "solve", "integrate_"};
    bool found = false;

    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        found |= strstr(text, word[i]) != NULL;
    return found;
}

em_status em_stan_declared_read(const char *program, em_stan_declared **out)
{
    EM_SCOPED char *text = NULL;
    em_status status = em_allocate(1, sizeof **out, out);

    status = status ? status : em_copy_text(program, &text);
    if (!status) {
        const bool includes = strstr(text, "#include") != NULL;
        strip(text);
        (*out)->may_solve = includes || names_solver(text);
        (*out)->may_drop_constants = includes || strchr(text, '~');
        status = read_blocks(*out, text);
    }
    if (status)
        em_stan_declared_destroy(out);
    return status;
}

void em_stan_declared_destroy(em_stan_declared **declared)
{
    for (int64_t i = 0; *declared && i < (*declared)->count; i++)
        em_release_all(&(*declared)->declaration[i].name, &(*declared)->declaration[i].text);
    if (*declared)
        em_release(&(*declared)->declaration);
    em_release(declared);
}

const em_stan_declaration *em_stan_declared_find(const em_stan_declared *declared,
                                                 em_stan_block block, const char *name)
{
    for (int64_t i = 0; declared && i < declared->count; i++)
        if (declared->declaration[i].block == block &&
            strcmp(declared->declaration[i].name, name) == 0)
            return &declared->declaration[i];
    return NULL;
}
