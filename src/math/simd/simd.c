#include "math/simd/simd.h"

#include "base/text.h"

#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const em_simd em_simd_portable;

#ifdef EM_SIMD_X86
extern const em_simd em_simd_avx512, em_simd_avx2;

const em_simd *const em_simds[] = {&em_simd_avx512, &em_simd_avx2, &em_simd_portable, NULL};

bool em_simd_runs(const em_simd *simd)
{
    if (simd == &em_simd_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("bmi");
    if (simd == &em_simd_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi");
    return true;
}
#else
const em_simd *const em_simds[] = {&em_simd_portable, NULL};

bool em_simd_runs(const em_simd *simd)
{
    return simd == &em_simd_portable;
}
#endif

static const em_simd *widest(void)
{
    const em_simd *const *simd = em_simds;

    while (!em_simd_runs(*simd))
        simd++;
    return *simd;
}

em_status em_simd_find(const char *name, const em_simd **out)
{
    char names[64] = "";

    for (const em_simd *const *simd = em_simds; *simd; simd++) {
        if (!em_simd_runs(*simd))
            continue;
        *out = *simd;
        if (strcmp((*simd)->name, name) == 0)
            return EM_OK;
        em_append(sizeof names, names, "%s%s", *names ? ", " : "", (*simd)->name);
    }
    *out = widest();
    return em_fail(EM_EUSAGE,
                   "EMASS_SIMD: found %s, expected an instruction set of this processor (%s)", name,
                   names);
}

static const em_simd *best;

em_status em_simd_check(void)
{
    const char *name = getenv("EMASS_SIMD");

    if (name && name[0])
        return em_simd_find(name, &best);
    best = widest();
    return EM_OK;
}

const em_simd *em_simd_best(void)
{
    if (!best)
        (void)em_simd_check();
    return best;
}

/* ---------------------------------------------------------------- constants */

static void read_pages(const struct dl_phdr_info *object, size_t page)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const volatile char *at = (const volatile char *)(object->dlpi_addr + segment->p_vaddr);
        const size_t size = segment->p_memsz;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_R) || segment->p_flags & PF_W)
            continue;
        for (size_t k = 0; k < size; k += page)
            (void)at[k];
        (void)at[size - 1];
    }
}

static int read_object(struct dl_phdr_info *object, size_t size, void *page)
{
    (void)size;
    if (object->dlpi_name && strstr(object->dlpi_name, "sleef"))
        read_pages(object, *(const size_t *)page);
    return 0;
}

/* SLEEF's functions for AVX-512 read some constants under a mask that is empty but for arguments
 * such as infinity. While the page of such a constant is not in memory, a read under an empty mask
 * does not load it, and every such read takes a hundred times as long. On a machine that has just
 * started this was half the time of a stochastic sampler. So all pages of the library are read
 * once, when this one is loaded. */
__attribute__((constructor)) static void bring_constants(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    dl_iterate_phdr(read_object, &page);
}
