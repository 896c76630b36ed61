#include "base/text/locale.h"

em_locale em_locale_enter(void)
{
    em_locale locale = {.own = newlocale(LC_ALL_MASK, "C", (locale_t)0)};

    locale.host = uselocale(locale.own); /* of NULL, out of memory: changes nothing */
    return locale;
}

void em_locale_leave(em_locale *locale)
{
    uselocale(locale->host);
    if (locale->own)
        freelocale(locale->own);
    locale->own = (locale_t)0;
}
