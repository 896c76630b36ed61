#include "model/external/answer.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *word, *text; /* of the same length, with its quotes */
} words[] = {{"-Infinity", "\"-inf\"   "},
             {"Infinity", "\"inf\"   "},
             {"-inf", "\"-\x7f\""},
             {"inf", "\"\x7f\""},
             {"-nan", "\"\"  "},
             {"nan", "\"\" "},
             {"NaN", "\"\" "}};
enum { N_WORD = sizeof words / sizeof *words };

json_t *em_answer_parse(char *text)
{
    json_error_t error;
    bool inside = false; /* of a text */

    for (char *c = text; *c; c++) {
        if (inside && *c == '\\' && c[1]) {
            c++;
            continue;
        }
        inside ^= *c == '"';
        for (int i = 0; !inside && i < N_WORD; i++)
            if (strncmp(c, words[i].word, strlen(words[i].word)) == 0) {
                memcpy(c, words[i].text, strlen(words[i].text));
                c += strlen(words[i].text) - 1;
                break;
            }
    }
    return json_loads(text, 0, &error);
}

bool em_answer_number(const json_t *value, double *out)
{
    const char *text = json_string_value(value);

    *out = json_is_number(value) ? json_number_value(value)
           : text && (strcmp(text, "-inf") == 0 || strcmp(text, "-\x7f") == 0) ? -INFINITY
           : text && (strcmp(text, "inf") == 0 || strcmp(text, "\x7f") == 0)   ? INFINITY
                                                                               : NAN;
    return json_is_number(value) || json_is_null(value) || (text && (!isnan(*out) || !*text));
}

bool em_answer_numbers(const json_t *list, int64_t n, double *out)
{
    bool good = json_is_array(list) && (int64_t)json_array_size(list) == n;

    for (int64_t i = 0; good && i < n; i++)
        good = em_answer_number(json_array_get(list, (size_t)i), &out[i]);
    return good;
}
