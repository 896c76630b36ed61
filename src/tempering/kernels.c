/* The kernels of a rank. Each moves one copy at a time: all of its parameters, or a block of them.
 */
#include "base/memory.h"
#include "tempering/tempering_internal.h"

static em_status create_kernel(em_tempering *t, em_copy_kernel *kernel)
{
    const em_parameters *parameters = kernel->task->parameters;
    const int64_t dim = parameters ? parameters->count : t->dim;
    em_status status = EM_OK;

    kernel->posterior = t->tempered;
    if (parameters)
        status = em_posterior_create_part(t->tempered, parameters, 1, t->first_copy,
                                          t->block->theta, &kernel->posterior);
    if (!status && parameters)
        status = em_block_create(t->first_copy, 1, dim, 0, &kernel->block);
    return status ? status
                  : em_sampler_create(kernel->task->ops, kernel->task->options, 1, dim,
                                      &kernel->sampler);
}

em_status em_copy_kernels_create(em_tempering *t)
{
    em_status status = em_allocate(t->n_copy * t->n_kernel, sizeof *t->move, &t->move);

    for (int i = 0; !status && i < t->n_kernel; i++) {
        t->kernel[i] = (em_copy_kernel){.task = &t->task.kernel[i]};
        status = create_kernel(t, &t->kernel[i]);
    }
    return status;
}

void em_copy_kernels_destroy(em_tempering *t)
{
    for (int i = 0; i < t->n_kernel; i++) {
        em_copy_kernel *kernel = &t->kernel[i];
        em_sampler_destroy(&kernel->sampler);
        if (kernel->block) {
            em_block_destroy(&kernel->block);
            em_posterior_destroy(&kernel->posterior);
        }
        *kernel = (em_copy_kernel){.task = NULL};
    }
    em_release(&t->move);
}
