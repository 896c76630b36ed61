/* A host program with a decimal comma: configs mean the same, and its locale stays its own. Needs
 * localedef and the source of de_DE (Debian: locales). */
#include "run/config/config.h"
#include "support/tap.h"

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "model: {name: gaussian, dim: 2}\n"
                           "sampler: {name: hmc, target_accept: 0.625}\n"
                           "run: {init_radius: 1.5}\n"
                           "stop: {max_time: 2.5m}\n";

/* Makes the locale in a folder of its own, which is left where this fails. */
static bool use_a_comma(char folder[])
{
    char command[256];

    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
             folder);
    if (system(command) != 0)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL &&
           strcmp(localeconv()->decimal_point, ",") == 0;
}

static char *full_config(void)
{
    em_config *config = NULL;
    char *full;

    ck_assert_msg(em_config_parse("test.yaml", text, 0, NULL, &config) == EM_OK, "%s",
                  em_error_text());
    ck_assert_double_eq(config->run.init_radius, 1.5);
    ck_assert_double_eq(config->stop.max_time, 150);
    full = strdup(config->full);
    em_config_destroy(&config);
    return full;
}

START_TEST(a_config_means_the_same)
{
    char folder[] = "/tmp/emass-locale-XXXXXX", command[64], *plain = full_config(), *comma;

    if (use_a_comma(folder)) {
        comma = full_config();
        ck_assert_str_eq(comma, plain);
        ck_assert_str_eq(localeconv()->decimal_point, ","); /* still the host's */
        free(comma);
    } else
        fprintf(stderr, "skipped: no localedef, or no de_DE\n");
    free(plain);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("locale");

    tcase_add_test(tests, a_config_means_the_same);
    tcase_set_timeout(tests, 100);
    return run_case(tests, CK_FORK);
}
