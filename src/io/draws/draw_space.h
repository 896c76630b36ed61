/* The space of a group of draws in a file. */
#pragma once

#include <stdint.h>

typedef struct em_draw_space {
    int64_t n_draw;       /* planned draws */
    int64_t n_chunk_draw; /* the most draws of a chunk, of one chain; fewer above 16 MiB */
    int64_t n_copied; /* the first draws, which the caller writes before the file is used: they are
                         not filled */
} em_draw_space;
