#include "model/construct/construct.h"

#include "base/memory.h"
#include "par/message.h"

em_status em_model_build(const void *options, const em_model_context *context, em_model **out)
{
    const em_construction *how = context->ops->state;
    em_model *model = NULL;
    em_status status = em_agree_first(em_allocate(1, how->size, &model), 0);

    *out = NULL;
    if (status) {
        em_release(&model);
        return status;
    }
    model->ops = context->ops;
    status = how->set_up(model, options, context);
    if (status)
        context->ops->destroy(model);
    else
        *out = model;
    return status;
}
