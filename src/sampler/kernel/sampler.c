#include "sampler/kernel/sampler.h"

em_status em_sampler_create(const em_sampler_ops *ops, const void *options, int64_t n_chain,
                            int64_t dim, em_sampler **out)
{
    em_status status = em_allocate(1, ops->size, out);

    if (status)
        return status;
    **out = (em_sampler){.ops = ops, .options = options};
    status = ops->set_up ? ops->set_up(*out, n_chain, dim) : EM_OK;
    if (status)
        em_sampler_destroy(out);
    return status;
}

void em_sampler_destroy(em_sampler **sampler)
{
    if (!*sampler)
        return;
    if ((*sampler)->ops->release)
        (*sampler)->ops->release(*sampler);
    em_release_owned(&(*sampler)->memory);
    em_release(sampler);
}
