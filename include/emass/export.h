/* What a function of the library is marked with: only those that are can be called from outside. */
#ifndef EMASS_EXPORT_H
#define EMASS_EXPORT_H

#if defined(__GNUC__)
#define EM_API __attribute__((visibility("default")))
#else
#define EM_API
#endif

#endif
