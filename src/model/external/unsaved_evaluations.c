#include "model/external/unsaved_evaluations.h"

#include "base/memory.h"
#include "par/message.h"
#include "par/world.h"

static const char form_name[] = "unsaved_evaluations_form", records_name[] = "unsaved_evaluations";

em_status em_unsaved_create(int64_t n, int64_t n_output, em_unsaved_evaluations **out)
{
    const em_status status = em_allocate(1, sizeof **out, out);

    if (!status)
        **out = (em_unsaved_evaluations){.own = em_evaluation_table_of(n, n_output),
                                         .earlier = em_evaluation_table_of(n, n_output)};
    return status;
}

void em_unsaved_destroy(em_unsaved_evaluations **unsaved)
{
    if (*unsaved) {
        em_evaluation_table_release(&(*unsaved)->own);
        em_evaluation_table_release(&(*unsaved)->earlier);
    }
    em_release(unsaved);
}

void em_unsaved_forget(em_unsaved_evaluations *unsaved, int64_t done)
{
    em_evaluation_table_release(&unsaved->own);
    if (done >= unsaved->until)
        em_evaluation_table_release(&unsaved->earlier);
}

/* Adds the earlier evaluations, which all ranks have, to those of this rank. */
static em_status take_earlier(em_unsaved_evaluations *unsaved)
{
    const em_evaluation_table *earlier = &unsaved->earlier;
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < earlier->positions.n; i++)
        status = em_evaluation_table_put(&unsaved->own, earlier->record + i * earlier->width);
    return status;
}

em_status em_unsaved_save(em_unsaved_evaluations *unsaved, int64_t until, const em_visitor *visitor)
{
    const em_evaluation_table *own = &unsaved->own;
    const int64_t latest = until > unsaved->until ? until : unsaved->until;
    EM_SCOPED double *record = NULL;
    int64_t total = 0;
    em_status status = em_agree(em_world_rank() == 0 ? take_earlier(unsaved) : EM_OK);

    if (!status)
        status = em_world_gather(own->positions.n, (size_t)own->width * sizeof *record, own->record,
                                 &total, &record);
    if (!status && total > 0) {
        double form[] = {(double)total, (double)latest};
        status = visitor->shared(visitor->context, form_name, 2, form);
        if (!status)
            status = visitor->shared(visitor->context, records_name, total * own->width, record);
    }
    return status;
}

em_status em_unsaved_restore(em_unsaved_evaluations *unsaved, const em_visitor *visitor)
{
    const int64_t width = unsaved->earlier.width;
    EM_SCOPED double *record = NULL;
    double form[2] = {0, 0};
    em_status status = visitor->shared(visitor->context, form_name, 2, form);

    if (status == EM_EDATA) /* there are none */
        return EM_OK;
    if (!status && !(form[0] >= 1 && form[0] < 1e9))
        status = em_fail(EM_EDATA, "%s: found %g, expected 1 or more", form_name, form[0]);
    if (!status)
        status = em_agree(em_allocate((int64_t)form[0] * width, sizeof *record, &record));
    if (!status)
        status = visitor->shared(visitor->context, records_name, (int64_t)form[0] * width, record);
    for (int64_t i = 0; !status && i < (int64_t)form[0]; i++) {
        em_record_why(record + i * width)[EM_WHY_BYTES - 1] = '\0';
        status = em_evaluation_table_put(&unsaved->earlier, record + i * width);
    }
    unsaved->until = (int64_t)form[1];
    return em_agree(status);
}
