#include "model/external/http.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

#ifdef EM_CURL

#include "base/system/shared_object.h"
#include "model/external/answer.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <math.h>

enum { MOST_ANSWER = 1 << 26 };

/* The functions of libcurl that this file uses. */
typedef struct library {
    CURLcode (*global_init)(long flags);
    CURL *(*init)(void);
    void (*cleanup)(CURL *handle);
    CURLcode (*setopt)(CURL *handle, CURLoption option, ...);
    CURLcode (*perform)(CURL *handle);
    CURLcode (*getinfo)(CURL *handle, CURLINFO info, ...);
    const char *(*strerror)(CURLcode code);
    struct curl_slist *(*append)(struct curl_slist *list, const char *text);
    void (*free_all)(struct curl_slist *list);
} library;

struct em_http {
    library curl;
    CURL *handle;
    struct curl_slist *headers;
    char *answer;
    size_t capacity, used;
    em_http_failure failure; /* of the last request */
};

/* Loads libcurl: the variant with OpenSSL, the one with GnuTLS, or that of macOS. */
static em_status load(library *out)
{
    static const char *const name[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"};
    const struct {
        const char *name;
        void *to;
    } symbol[] = {{"curl_global_init", &out->global_init}, {"curl_easy_init", &out->init},
                  {"curl_easy_cleanup", &out->cleanup},    {"curl_easy_setopt", &out->setopt},
                  {"curl_easy_perform", &out->perform},    {"curl_easy_getinfo", &out->getinfo},
                  {"curl_easy_strerror", &out->strerror},  {"curl_slist_append", &out->append},
                  {"curl_slist_free_all", &out->free_all}};
    void *handle = NULL;

    for (size_t i = 0; !handle && i < sizeof name / sizeof *name; i++)
        handle = dlopen(name[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; handle && i < sizeof symbol / sizeof *symbol; i++)
        if (!em_shared_object_find(handle, symbol[i].name, symbol[i].to))
            handle = NULL;
    return handle ? EM_OK
                  : em_fail(EM_ECONFIG, "model umbridge needs libcurl, which is not found: install "
                                        "libcurl4 (Debian), or curl (Spack, modules)");
}

static size_t take(char *data, size_t size, size_t n, void *to)
{
    em_http *http = to;
    const size_t more = size * n;

    if (http->used + more + 1 > http->capacity) {
        const size_t wanted = 2 * (http->used + more + 1);
        if (wanted > MOST_ANSWER || em_reallocate((int64_t)wanted, 1, &http->answer))
            return 0;
        http->capacity = wanted;
    }
    memcpy(http->answer + http->used, data, more);
    http->used += more;
    http->answer[http->used] = '\0';
    return more;
}

em_status em_http_create(em_http **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_http *http = *out;

    status = status ? status : load(&http->curl);
    if (status)
        return status;
    http->curl.global_init(CURL_GLOBAL_DEFAULT);
    http->handle = http->curl.init();
    http->headers = http->curl.append(NULL, "Content-Type: application/json");
    http->headers = http->headers ? http->curl.append(http->headers, "Expect:") : NULL;
    if (!http->handle || !http->headers)
        return em_fail(EM_EMEMORY, "out of memory for a connection");
    http->curl.setopt(http->handle, CURLOPT_HTTPHEADER, http->headers);
    http->curl.setopt(http->handle, CURLOPT_WRITEFUNCTION, take);
    http->curl.setopt(http->handle, CURLOPT_WRITEDATA, http);
    http->curl.setopt(http->handle, CURLOPT_NOSIGNAL, 1L);
    http->curl.setopt(http->handle, CURLOPT_TCP_NODELAY, 1L);
    http->curl.setopt(http->handle, CURLOPT_CONNECTTIMEOUT, 10L);
    return EM_OK;
}

void em_http_destroy(em_http **http)
{
    if (!*http)
        return;
    if ((*http)->headers)
        (*http)->curl.free_all((*http)->headers);
    if ((*http)->handle)
        (*http)->curl.cleanup((*http)->handle);
    em_release_all(&(*http)->answer, http);
}

static em_status send_text(em_http *http, const char *url, const char *text, double timeout)
{
    http->used = 0;
    http->curl.setopt(http->handle, CURLOPT_URL, url);
    if (text)
        http->curl.setopt(http->handle, CURLOPT_POSTFIELDS, text);
    else
        http->curl.setopt(http->handle, CURLOPT_HTTPGET, 1L);
    http->curl.setopt(http->handle, CURLOPT_TIMEOUT_MS,
                      isnan(timeout) ? 0L : 1 + (long)(1000 * timeout));
    const CURLcode code = http->curl.perform(http->handle);
    http->failure = code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
                            (code == CURLE_OPERATION_TIMEDOUT && isnan(timeout)) /* to connect */
                        ? EM_HTTP_UNREACHABLE
                        : code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
                                  code == CURLE_SEND_ERROR || code == CURLE_PARTIAL_FILE
                              ? EM_HTTP_BROKEN
                              : EM_HTTP_OTHER;
    return code == CURLE_OK ? EM_OK
           : code == CURLE_OPERATION_TIMEDOUT && !isnan(timeout)
               ? em_fail(EM_NONFINITE, "the evaluation took longer than %g s", timeout)
               : em_fail(EM_NONFINITE, "%s: %s", url, http->curl.strerror(code));
}

/* The error of a server: {"error": {"type": "...", "message": "..."}}. */
static em_status read_answer(const em_http *http, const char *url, json_t **answer)
{
    long code = 0;

    http->curl.getinfo(http->handle, CURLINFO_RESPONSE_CODE, &code);
    *answer = http->used > 0 ? em_answer_parse(http->answer) : NULL;
    const json_t *failed = json_object_get(*answer, "error");
    if (failed) {
        const char *what = json_string_value(json_object_get(failed, "message"));
        return em_fail(EM_NONFINITE, "the server says: %.200s", what ? what : "error");
    }
    if (code == 200 && json_is_object(*answer))
        return EM_OK;
    return em_fail(EM_NONFINITE, "%s: found '%s' (HTTP %ld), expected a JSON object", url,
                   http->used > 0 ? em_excerpt_of(http->answer).text : "", code);
}

em_status em_http_post(em_http *http, const char *url, const char *path, const json_t *request,
                       double timeout, json_t **answer)
{
    EM_SCOPED char *text =
        request ? json_dumps(request, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    EM_SCOPED char *whole = NULL;
    em_status status = text || !request ? em_format_text(&whole, "%s/%s", url, path)
                                        : em_fail(EM_EMEMORY, "out of memory for a request");

    *answer = NULL;
    status = status ? status : send_text(http, whole, text, timeout);
    status = status ? status : read_answer(http, whole, answer);
    if (status) {
        json_decref(*answer);
        *answer = NULL;
    }
    return status;
}

em_http_failure em_http_last_failure(const em_http *http)
{
    return http->failure;
}

#else

em_status em_http_create(em_http **out)
{
    *out = NULL;
    return em_fail(EM_ECONFIG, "model umbridge needs libcurl, and this emass was built without its "
                               "headers: install libcurl4-openssl-dev and build it again");
}

void em_http_destroy(em_http **http)
{
    *http = NULL;
}

em_status em_http_post(em_http *http, const char *url, const char *path, const json_t *request,
                       double timeout, json_t **answer)
{
    (void)http, (void)url, (void)path, (void)request, (void)timeout;
    *answer = NULL;
    return em_fail(EM_ECONFIG, "no libcurl");
}

em_http_failure em_http_last_failure(const em_http *http)
{
    (void)http;
    return EM_HTTP_OTHER;
}

#endif
