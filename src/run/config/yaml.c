#include "run/config/yaml.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"

#include <stdbool.h>
#include <string.h>
#include <yaml.h>

/* A text being parsed into entries, event by event, so that depth and size are bounded. */
typedef struct parse {
    yaml_parser_t parser;
    const char *path, *place; /* of a file; or a fixed place, with `path` NULL */
    const char *text;
    em_yaml *yaml;
    bool replaces;    /* else a key that is there already is an error */
    const char *list; /* the key of a list that is data, while it is read; NULL: none */
} parse;

/* A file and a line for messages. */
typedef struct location {
    char text[512];
} location;

static location location_of(const parse *p, size_t line)
{
    location where;

    if (p->path)
        snprintf(where.text, sizeof where.text, "%s:%zu", p->path, line + 1);
    else
        snprintf(where.text, sizeof where.text, "%s", p->place);
    return where;
}

/* ---- entries ---- */

const em_yaml_entry *em_yaml_find(const em_yaml *yaml, const char *key)
{
    for (int64_t i = 0; i < yaml->count; i++)
        if (strcmp(yaml->entry[i].key, key) == 0)
            return &yaml->entry[i];
    return NULL;
}

static void release_entry(em_yaml_entry *entry)
{
    em_release_all(&entry->key, &entry->place);
    em_value_release(&entry->value);
}

/* Makes an empty entry, or empties the one that is to be replaced. */
static em_status new_entry(parse *p, const char *key, size_t line, em_yaml_entry **out)
{
    const location where = location_of(p, line);
    em_yaml_entry *entry = (em_yaml_entry *)em_yaml_find(p->yaml, key);

    if (entry && !p->replaces)
        return em_fail(EM_ECONFIG, "%s: duplicate key %s, first given at %s", where.text,
                       em_excerpt_of(key).text, entry->place);
    if (!entry && p->yaml->count == EM_YAML_MAX_ENTRIES)
        return em_fail(EM_ECONFIG, "%s: more than %d keys", where.text, EM_YAML_MAX_ENTRIES);
    if (!entry)
        entry = &p->yaml->entry[p->yaml->count++];
    release_entry(entry);
    *out = entry;
    const em_status status = em_copy_text(key, &entry->key);
    return status ? status : em_copy_text(where.text, &entry->place);
}

/* ---- libyaml ---- */

static size_t line_of(const char *text, size_t offset)
{
    size_t line = 0;

    for (size_t i = 0; i < offset && text[i]; i++)
        line += text[i] == '\n';
    return line;
}

/* The start of a line; NULL: the text has fewer lines. */
static const char *find_line(const char *text, size_t line)
{
    for (; line > 0 && text; line--) {
        text = strchr(text, '\n');
        if (text)
            text++;
    }
    return text;
}

static bool has_leading_tab(const char *text, size_t line)
{
    text = find_line(text, line);
    return text && memchr(text, '\t', strspn(text, " \t"));
}

/* Whether a line has a word with a bracket, such as district[West]. In a list or a mapping YAML
 * ends the word at the bracket. */
static bool has_bracket_in_word(const char *text, size_t line)
{
    static const char ends[] = "\"'[]{},: \t\n";
    const char *at = find_line(text, line);

    for (; at && *at && *at != '\n'; at++)
        if (!strchr(ends, *at) && at[1] == '[')
            return true;
    return false;
}

/* Fails with the problem that libyaml found, in one line. */
static em_status parser_failed(const parse *p)
{
    const yaml_parser_t *y = &p->parser;
    const size_t line =
        y->error == YAML_READER_ERROR ? line_of(p->text, y->problem_offset) : y->problem_mark.line;
    char context[256] = "";

    if (y->error == YAML_MEMORY_ERROR)
        return em_fail(EM_EMEMORY, "out of memory while reading %s", location_of(p, line).text);
    if (y->context && p->path)
        snprintf(context, sizeof context, ", %s from line %zu on", y->context,
                 y->context_mark.line + 1);
    if (has_leading_tab(p->text, line))
        return em_fail(EM_ECONFIG, "%s: found a tab before the first word, expected spaces",
                       location_of(p, line).text);
    return em_fail(EM_ECONFIG, "%s: not YAML: %s%s%s", location_of(p, line).text,
                   y->problem ? y->problem : "unknown problem", context,
                   y->error == YAML_PARSER_ERROR && has_bracket_in_word(p->text, line)
                       ? " (a name with brackets stands between quotes: \"district[West]\")"
                       : "");
}

static em_status next_event(parse *p, yaml_event_t *event)
{
    if (yaml_parser_parse(&p->parser, event))
        return EM_OK;
    memset(event, 0, sizeof *event);
    return parser_failed(p);
}

/* False for what YAML would fold, drop or refuse when the text is written again in one line:
 * control characters (also U+0080..9F), U+2028, U+2029, U+FEFF, U+FFFE, U+FFFF. */
static bool is_one_line(const unsigned char *s, size_t length)
{
    for (const unsigned char *end = s + length; s < end; s++)
        if (*s < 0x20 || *s == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0) ||
            (s[0] == 0xe2 && s[1] == 0x80 && (s[2] & 0xfe) == 0xa8) ||
            (s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf) ||
            (s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe))
            return false;
    return true;
}

static em_status check_scalar(const parse *p, const yaml_event_t *event)
{
    if (is_one_line(event->data.scalar.value, event->data.scalar.length))
        return EM_OK;
    return em_fail(EM_ECONFIG,
                   "%s: found a line break or control character in '%s', expected one line of text",
                   location_of(p, event->start_mark.line).text,
                   em_excerpt_of((const char *)event->data.scalar.value).text);
}

static bool is_null(const yaml_event_t *event)
{
    static const char *const names[] = {"", "~", "null", "Null", "NULL", NULL};

    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           em_text_find((const char *)event->data.scalar.value, names) >= 0;
}

/* ---- values ---- */

static em_status read_scalar(parse *p, const yaml_event_t *event, em_value *value)
{
    int64_t capacity = 0;
    em_status status = check_scalar(p, event);

    value->kind = is_null(event) ? EM_VALUE_NULL : EM_VALUE_SCALAR;
    if (!status && value->kind == EM_VALUE_SCALAR)
        status = em_append_copy(&value->text.value, &capacity, &value->text.count,
                                (const char *)event->data.scalar.value);
    return status;
}

/* Reads one element of a list, or the end of the list. */
static em_status read_element(parse *p, const yaml_event_t *event, em_value *value,
                              int64_t *capacity, bool *ended)
{
    *ended = event->type == YAML_SEQUENCE_END_EVENT;
    if (*ended)
        return EM_OK;
    if (event->type != YAML_SCALAR_EVENT)
        return em_fail(EM_ECONFIG,
                       "%s: found a list, mapping or alias in a list, expected text or numbers",
                       location_of(p, event->start_mark.line).text);
    const em_status status = check_scalar(p, event);
    return status ? status
                  : em_append_copy(&value->text.value, capacity, &value->text.count,
                                   (const char *)event->data.scalar.value);
}

static em_status read_node(parse *p, const yaml_event_t *event, const char *key, size_t line,
                           int depth);

/* Reads mapping number `i` of a list. */
static em_status read_numbered(parse *p, const yaml_event_t *event, const char *path, int64_t i,
                               int depth)
{
    EM_SCOPED char *key = NULL;
    em_status status = em_format_text(&key, "%s[%lld]", path, (long long)i);

    return status ? status : read_node(p, event, key, event->start_mark.line, depth + 1);
}

/* Reads a list of texts or, at the root, of mappings. */
static em_status read_list(parse *p, const char *path, int depth, em_value *value)
{
    int64_t capacity = 0;
    bool ended = false;
    em_status status = EM_OK;

    value->kind = EM_VALUE_LIST;
    for (int64_t i = 0; !status && !ended; i++) {
        yaml_event_t event;
        status = next_event(p, &event);
        if (!status && event.type == YAML_MAPPING_START_EVENT && depth == 1 &&
            value->text.count == 0) {
            value->kind = EM_VALUE_MAPPING;
            status = read_numbered(p, &event, path, i, depth);
        } else if (!status && value->kind == EM_VALUE_MAPPING && event.type == YAML_SCALAR_EVENT)
            status = em_fail(EM_ECONFIG, "%s: found text in a list of mappings, expected a mapping",
                             location_of(p, event.start_mark.line).text);
        else if (!status)
            status = read_element(p, &event, value, &capacity, &ended);
        yaml_event_delete(&event);
    }
    return status;
}

/* ---- data ---- */

/* Writes a scalar as JSON. A number stays as it was written if that is also valid in JSON; all else
 * becomes text. */
static em_status write_scalar(const parse *p, const yaml_event_t *event, FILE *out)
{
    const char *text = (const char *)event->data.scalar.value;
    const bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    const size_t length = is_plain ? em_json_number(text, NULL) : 0;
    const em_status status = check_scalar(p, event);

    if (length > 0 && !text[length])
        fputs(text, out);
    else
        em_json_write_string(text, out);
    return status;
}

static em_status write_data(parse *p, const yaml_event_t *event, int depth, FILE *out);

/* Records the line of element number `i` of the list. */
static em_status note_element(parse *p, const yaml_event_t *event, int64_t i)
{
    em_yaml_entry *entry;
    EM_SCOPED char *key = NULL;
    em_status status = em_format_text(&key, "%s[%lld]", p->list, (long long)i);

    status = status ? status : new_entry(p, key, event->start_mark.line, &entry);
    if (!status)
        entry->value.kind = EM_VALUE_MAPPING;
    return status;
}

/* Parses the content of a list or a mapping, up to its closing bracket. */
static em_status write_inside(parse *p, bool is_mapping, int depth, FILE *out)
{
    em_status status = EM_OK;
    bool ended = false;

    for (int64_t n = 0; !status && !ended; n++) {
        const bool is_key = is_mapping && n % 2 == 0;
        yaml_event_t event;
        status = next_event(p, &event);
        ended = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        if (!status && p->list && depth == 1 && !ended)
            status = note_element(p, &event, n);
        if (!status && is_key && !ended && event.type != YAML_SCALAR_EVENT)
            status = em_fail(EM_ECONFIG, "%s: found a key that is not a name",
                             location_of(p, event.start_mark.line).text);
        if (!status && !ended && n > 0)
            fputs(is_mapping && !is_key ? ": " : ", ", out);
        if (!status && !ended && is_key)
            em_json_write_string((const char *)event.data.scalar.value, out);
        else if (!status && !ended)
            status = write_data(p, &event, depth, out);
        yaml_event_delete(&event);
    }
    return status;
}

/* Writes a value with its content as one line of JSON. */
static em_status write_data(parse *p, const yaml_event_t *event, int depth, FILE *out)
{
    const bool is_mapping = event->type == YAML_MAPPING_START_EVENT;

    if (event->type == YAML_SCALAR_EVENT)
        return write_scalar(p, event, out);
    if (event->type == YAML_ALIAS_EVENT)
        return em_fail(EM_ECONFIG, "%s: found an alias, expected the value itself",
                       location_of(p, event->start_mark.line).text);
    if (depth > EM_YAML_MAX_DEPTH)
        return em_fail(EM_ECONFIG, "%s: nested more than %d levels deep",
                       location_of(p, event->start_mark.line).text, EM_YAML_MAX_DEPTH);
    fputc(is_mapping ? '{' : '[', out);
    const em_status status = write_inside(p, is_mapping, depth + 1, out);
    fputc(is_mapping ? '}' : ']', out);
    return status;
}

/* Reads a whole mapping or list as one value. */
static em_status read_data(parse *p, const yaml_event_t *event, const char *key, em_yaml_data data,
                           em_value *value)
{
    EM_SCOPED char *text = NULL;
    em_text_stream written;
    em_status status = em_text_begin(&written);
    int64_t capacity = 0;

    p->list = event->type == YAML_SEQUENCE_START_EVENT && data == EM_YAML_ALL_IS_DATA ? key : NULL;
    status = status ? status : write_data(p, event, 0, written.out);
    p->list = NULL;

    status = em_text_end(&written, status, &text);
    value->kind = EM_VALUE_MAPPING;
    return status ? status
                  : em_append_copy(&value->text.value, &capacity, &value->text.count, text);
}

/* ---- nodes ---- */

/* Reads the value of a key in the mapping at `path`. */
static em_status read_pair(parse *p, const yaml_event_t *name, const char *path, int depth)
{
    const size_t line = name->start_mark.line;
    yaml_event_t event;
    EM_SCOPED char *key = NULL;

    if (name->type != YAML_SCALAR_EVENT || name->data.scalar.length == 0)
        return em_fail(EM_ECONFIG, "%s: found a key that is not a name", location_of(p, line).text);
    em_status status = check_scalar(p, name);
    if (!status)
        status = em_format_text(&key, "%s%s%s", path, *path ? "." : "",
                                (const char *)name->data.scalar.value);
    if (!status) {
        status = next_event(p, &event);
        status = status ? status : read_node(p, &event, key, line, depth + 1);
        yaml_event_delete(&event);
    }
    return status;
}

static em_status read_mapping(parse *p, const char *path, int depth)
{
    bool ended = false;
    em_status status = EM_OK;

    while (!status && !ended) {
        yaml_event_t event;
        status = next_event(p, &event);
        ended = event.type == YAML_MAPPING_END_EVENT;
        if (!status && !ended)
            status = read_pair(p, &event, path, depth);
        yaml_event_delete(&event);
    }
    return status;
}

/* Reads a value under `key`, which is in line `line`. The root has the key "". */
static em_status read_node(parse *p, const yaml_event_t *event, const char *key, size_t line,
                           int depth)
{
    const bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
    em_yaml_entry *entry = NULL;
    em_status status = EM_OK;

    if (event->type == YAML_ALIAS_EVENT)
        return em_fail(EM_ECONFIG, "%s: found the alias *%s, expected the value itself",
                       location_of(p, line).text,
                       em_excerpt_of((const char *)event->data.alias.anchor).text);
    if (depth > EM_YAML_MAX_DEPTH)
        return em_fail(EM_ECONFIG, "%s: nested more than %d levels deep", location_of(p, line).text,
                       EM_YAML_MAX_DEPTH);
    if (*key)
        status = new_entry(p, key, is_mapping ? line : event->start_mark.line, &entry);
    else if (!is_mapping)
        return em_fail(EM_ECONFIG, "%s: expected a mapping, lines of the form key: value",
                       location_of(p, event->start_mark.line).text);
    if (status)
        return status;
    const em_yaml_data data = entry ? p->yaml->is_data(p->yaml->context, key) : EM_YAML_NO_DATA;
    if ((is_mapping && data != EM_YAML_NO_DATA) ||
        (event->type == YAML_SEQUENCE_START_EVENT && data >= EM_YAML_ALL_IS_DATA))
        return read_data(p, event, key, data, &entry->value);
    if (is_mapping) {
        if (entry)
            entry->value.kind = EM_VALUE_MAPPING;
        return read_mapping(p, key, depth);
    }
    return event->type == YAML_SCALAR_EVENT ? read_scalar(p, event, &entry->value)
                                            : read_list(p, key, depth, &entry->value);
}

/* ---- documents ---- */

/* Reads one event, which must be of the given type. */
static em_status skip(parse *p, yaml_event_type_t expected, const char *otherwise)
{
    yaml_event_t event;
    em_status status = next_event(p, &event);

    if (!status && event.type != expected)
        status =
            em_fail(EM_ECONFIG, "%s: %s", location_of(p, event.start_mark.line).text, otherwise);
    yaml_event_delete(&event);
    return status;
}

/* Reads the whole text, which is one document. Its root has the path `key`. */
static em_status read_document(parse *p, const char *key)
{
    yaml_event_t event;
    em_status status = skip(p, YAML_STREAM_START_EVENT, "not YAML");

    status = status ? status : skip(p, YAML_DOCUMENT_START_EVENT, "found nothing, expected YAML");
    if (status)
        return status;
    status = next_event(p, &event);
    status = status ? status : read_node(p, &event, key, event.start_mark.line, 0);
    yaml_event_delete(&event);
    status = status ? status : skip(p, YAML_DOCUMENT_END_EVENT, "not YAML");
    return status ? status
                  : skip(p, YAML_STREAM_END_EVENT, "found a second document, expected one");
}

static em_status parse_text(parse *p, const char *key)
{
    if (!yaml_parser_initialize(&p->parser))
        return em_fail(EM_EMEMORY, "out of memory while reading YAML");
    yaml_parser_set_encoding(&p->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p->parser, (const unsigned char *)p->text, strlen(p->text));
    const em_status status = read_document(p, key);
    yaml_parser_delete(&p->parser);
    return status;
}

em_status em_yaml_parse(const char *path, const char *text, em_yaml_is_data *is_data,
                        const void *context, em_yaml **out)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of byte order, which some editors put first */
    const bool has_mark = strncmp(text, mark, strlen(mark)) == 0;
    em_status status = em_allocate(1, sizeof **out, out);
    parse p = {.path = path, .text = text + (has_mark ? strlen(mark) : 0), .yaml = *out};

    if (!status) {
        p.yaml->is_data = is_data;
        p.yaml->context = context;
        status = parse_text(&p, "");
    }
    if (status)
        em_yaml_destroy(out);
    return status;
}

/* Sets a value from a text. An empty text is no value, and different from an empty document. */
em_status em_yaml_put(em_yaml *yaml, const char *place, const char *key, const char *text)
{
    parse p = {.place = place, .text = *text ? text : "null", .yaml = yaml, .replaces = true};

    return parse_text(&p, key);
}

void em_yaml_destroy(em_yaml **yaml)
{
    for (int64_t i = 0; *yaml && i < (*yaml)->count; i++)
        release_entry(&(*yaml)->entry[i]);
    em_release(yaml);
}
