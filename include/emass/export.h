/* Markers of declarations: EM_API for functions that the library exports; EM_BEGIN_C and EM_END_C
 * around declarations, which give them C linkage in C++ programs. */
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
