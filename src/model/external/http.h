/*
 * JSON over HTTP by libcurl. libcurl and its dependencies are loaded at the first use, so that runs
 * of other models do not load them. One connection is kept open. All Local.
 */
#pragma once

#include "emass/status.h"

#include <jansson.h>

typedef struct em_http em_http;

/* Why a request has no answer: there is no server, the connection broke, or the server is to blame.
 */
typedef enum em_http_failure { EM_HTTP_OTHER, EM_HTTP_UNREACHABLE, EM_HTTP_BROKEN } em_http_failure;

/* Errors: EM_ECONFIG if emass was built without libcurl, or if libcurl is not installed;
 * EM_EMEMORY. */
em_status em_http_create(em_http **out);
void em_http_destroy(em_http **http); /* NULL-safe */

/*
 * Posts `request` to url/path (NULL: a GET without request) and reads the JSON object of the
 * answer, which json_decref frees. timeout is in seconds; NaN: none. Errors: EM_NONFINITE, with a
 * message, if there is no connection, the timeout is over, the answer is not a JSON object, or the
 * server reports an error; EM_EMEMORY.
 */
em_status em_http_post(em_http *http, const char *url, const char *path, const json_t *request,
                       double timeout, json_t **answer);

/* Why the last request failed, if it did. */
em_http_failure em_http_last_failure(const em_http *http);
