/* A call whose first argument, from 1 to 8, is a constant for the compiler, so that it unrolls
 * loops of as many steps and keeps their vectors in registers. */
#pragma once

#define with_count(count, call, ...)                                                               \
    switch (count) {                                                                               \
        with_case(1, call, __VA_ARGS__);                                                           \
        with_case(2, call, __VA_ARGS__);                                                           \
        with_case(3, call, __VA_ARGS__);                                                           \
        with_case(4, call, __VA_ARGS__);                                                           \
        with_case(5, call, __VA_ARGS__);                                                           \
        with_case(6, call, __VA_ARGS__);                                                           \
        with_case(7, call, __VA_ARGS__);                                                           \
        with_case(8, call, __VA_ARGS__);                                                           \
    }
/* with_count for a first argument from 1 to 13. */
#define with_larger_count(count, call, ...)                                                        \
    switch (count) {                                                                               \
        with_case(9, call, __VA_ARGS__);                                                           \
        with_case(10, call, __VA_ARGS__);                                                          \
        with_case(11, call, __VA_ARGS__);                                                          \
        with_case(12, call, __VA_ARGS__);                                                          \
        with_case(13, call, __VA_ARGS__);                                                          \
    default:                                                                                       \
        with_count(count, call, __VA_ARGS__);                                                      \
    }
#define with_case(count, call, ...)                                                                \
    case count:                                                                                    \
        call(count, __VA_ARGS__);                                                                  \
        break
