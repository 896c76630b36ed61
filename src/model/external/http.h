/*
 * JSON over HTTP by libcurl, which is loaded when it is asked for, so that runs of other models do
 * not load it and the libraries that it needs. One connection is kept open. All Local.
 */
#pragma once

#include "emass/status.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct em_http em_http;

/* Errors: EM_ECONFIG: this emass has no libcurl, or it is not installed; EM_EMEMORY. */
em_status em_http_create(em_http **out);
void em_http_destroy(em_http **http); /* NULL-safe */

/*
 * Posts `request` (NULL: none, it is a GET) to URL/`path` and reads the object that answers it;
 * timeout in seconds, NaN: none. Errors: EM_NONFINITE, with a message: no connection, too long, no
 * JSON object, or an error of the server; EM_EMEMORY. *answer is to be freed by json_decref.
 */
em_status em_http_post(em_http *http, const char *url, const char *path, const json_t *request,
                       double timeout, json_t **answer);

/* How the last request failed: no server is there, or the connection broke before the answer. */
bool em_http_is_unreachable(const em_http *http);
bool em_http_is_broken(const em_http *http);
