/* Characters as they are, or escaped, one after the other. All Local. */
#ifndef EM_BASE_ESCAPE_H
#define EM_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { EM_LONGEST_ESCAPE = 10 };

/* False of controls, of what changes the direction of text or breaks a line, and of what shows
 * nothing at all but for the joiners, which scripts need. */
bool em_is_printable(uint32_t code);

/* The character at `text` as it is or escaped; returns how many bytes it has there. */
int em_escape_one(const char *text, bool (*keeps)(uint32_t), char out[EM_LONGEST_ESCAPE + 1]);

/* As many whole characters as out[bytes] has room for; returns how many bytes of `text` these were.
 */
size_t em_escape(const char *text, bool (*keeps)(uint32_t), char *out, size_t bytes);

/* Text for HTML and SVG, in an element or between double quotes: < > & " ' as entities. */
void em_escape_html(FILE *out, const char *text);

#endif
