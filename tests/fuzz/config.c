/*
 * The config parser, on any text with any overrides: the input is the text and then, each after a
 * NUL, up to eight overrides. What is accepted reads back as the same config.
 */
#include "fuzz/fuzz.h"

#include "run/config/config.h"

#include <string.h>

enum { MOST_OVERRIDES = 8 };

static void reads_back(const em_config *config)
{
    em_config *again;
    const em_status status = em_config_parse("fuzz.yaml", config->full, 0, NULL, &again);

    if (status || strcmp(again->full, config->full) != 0)
        printf("%s\n%s\n%s\n", config->full, status ? "" : again->full, em_error_text());
    REQUIRE(!status && strcmp(again->full, config->full) == 0);
    em_config_destroy(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    const char *override[MOST_OVERRIDES];
    int n_override = 0;
    em_config *config;

    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = strlen(text); i < size && n_override < MOST_OVERRIDES;
         i += 1 + strlen(text + i + 1))
        override[n_override++] = text + i + 1;
    if (em_config_parse("fuzz.yaml", text, n_override, override, &config) == EM_OK)
        reads_back(config);
    else
        REQUIRE(!config && *em_error_text());
    em_config_destroy(&config);
    free(text);
    return 0;
}
