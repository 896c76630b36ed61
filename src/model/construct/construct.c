#include "model/construct/construct.h"

#include "base/memory.h"
#include "par/message.h"

em_status em_model_build(size_t size, const em_model_ops *ops, em_model_set_up *set_up,
                         const void *options, const em_model_context *context, em_model **out)
{
    em_model *model = NULL;
    em_status status = em_agree_first(em_allocate(1, size, &model), 0);

    *out = NULL;
    if (status) {
        em_release(&model);
        return status;
    }
    model->ops = ops;
    status = set_up(model, options, context);
    if (status)
        ops->destroy(model);
    else
        *out = model;
    return status;
}
