#include "app/report/report_priors.h"

#include "app/report/svg.h"
#include "base/memory.h"
#include "base/page.h"

em_status em_report_priors(const em_report_data *data, FILE *out)
{
    char **line = NULL;
    int64_t n = 0;
    em_status status = EM_OK;

    if (em_reader_has(data->draws, "constant_data", "prior_count"))
        status = em_read_labels(data->path, "constant_data/prior", &n, &line);
    if (n > 0)
        fputs("<h2 id=\"priors\">Priors</h2>\n<ul>\n", out);
    for (int64_t i = 0; i < n; i++) {
        fputs("<li>", out);
        em_escape_html(out, line[i]);
        fputs("</li>\n", out);
        em_release(&line[i]);
    }
    if (n > 0)
        fputs("</ul>\n", out);
    em_release(&line);
    return status;
}
