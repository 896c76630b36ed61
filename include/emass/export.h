/* What the declarations of the library are marked with: functions that can be called from outside,
 * and, for programs in C++, all of them as C. */
#pragma once

#if defined(__GNUC__)
#define EM_API __attribute__((visibility("default")))
#else
#define EM_API
#endif

#ifdef __cplusplus
#define EM_BEGIN_C extern "C" {
#define EM_END_C   }
#else
#define EM_BEGIN_C
#define EM_END_C
#endif
