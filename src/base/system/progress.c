#include "base/system/progress.h"

#include "base/memory.h"
#include "base/system/terminal.h"
#include "base/system/thread.h"
#include "base/text.h"
#include "base/text/nearest.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

/* A line under construction. Text that does not fit is cut off. */
typedef struct text_line {
    char text[512];
    size_t length;
} text_line;

struct em_progress {
    em_progress_mode mode; /* never AUTO */
    FILE *stream;
    pthread_t thread;
    pthread_mutex_t lock; /* over what follows, and the stream */
    pthread_cond_t wake;
    bool has_thread, ending;
    bool told, printed, there; /* a record was told; one was printed; and is on the screen */
    em_progress_record last;   /* told */
    double last_news, last_printed;
};

/* Seconds between records (`records`), before the first line if no record has come (`first`), and
 * between repeats of a record, which wait as long as the record is old, within `least` and `most`.
 * So a log of slow iterations stays short. */
static const struct {
    double records, first, least, most;
} pace[] = {[EM_PROGRESS_BAR] = {0.1, 0.5, 2, 2}, [EM_PROGRESS_LOG] = {5, 1, 5, 600}};

static double now(void)
{
    struct timespec clock;

    clock_gettime(CLOCK_MONOTONIC, &clock);
    return (double)clock.tv_sec + 1e-9 * (double)clock.tv_nsec;
}

em_status em_progress_mode_of(const char *name, em_progress_mode *mode)
{
    static const char *const names[] = {"auto", "bar", "log", "none"};
    em_nearest nearest = em_nearest_start(name);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *mode = (em_progress_mode)i;
        if (strcmp(name, names[i]) == 0)
            return EM_OK;
        em_nearest_offer(&nearest, names[i]);
    }
    return em_fail(EM_EUSAGE, "--progress: found '%s', expected auto, bar, log or none%s%s%s", name,
                   nearest.name ? "; did you mean " : "", nearest.name ? nearest.name : "",
                   nearest.name ? "?" : "");
}

static void append(text_line *line, const char *format, ...) EM_PRINTF(2, 3);

static void append(text_line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line->text + line->length, sizeof line->text - line->length, format, arguments);
    va_end(arguments);
    line->length += strlen(line->text + line->length);
}

/* What a line leaves out to become shorter. Each value also leaves out what the values before it
 * leave out. */
typedef enum shortness {
    WHOLE,
    NO_RATE,
    SYMBOLS, /* for "at most" and "at least" */
    NO_TIME_LEFT,
    NO_R_HAT,
    NO_ESS,
    POSITION_ALONE
} shortness;

static const char *bound_of(bool is_bound, const char *words, const char *symbol, shortness level)
{
    return !is_bound ? "" : level < SYMBOLS ? words : symbol;
}

static void append_time_left(text_line *line, double seconds, const char *most)
{
    const long long s = (long long)fmin(ceil(fmax(seconds, 0)), 1e15);

    if (s < 60)
        append(line, "  left %s%lld s", most, s);
    else if (s < 3600)
        append(line, "  left %s%lld min %02lld s", most, s / 60, s % 60);
    else
        append(line, "  left %s%lld h %02lld min", most, s / 3600, s % 3600 / 60);
}

static text_line details_of(const em_progress_record *record, shortness level)
{
    const bool are_bounds = record->some_numbers;
    text_line details = {0};

    if (!isnan(record->r_hat) && level < NO_R_HAT)
        append(&details, "  R-hat %s%.3f", bound_of(are_bounds, "at least ", ">= ", level),
               record->r_hat);
    if (!isnan(record->ess) && level < NO_ESS)
        append(&details, "  ESS %s%.0f", bound_of(are_bounds, "at most ", "<= ", level),
               record->ess);
    if (record->divergences > 0 && level < POSITION_ALONE) /* 0 also of samplers that have none */
        append(&details, "  divergences %lld", (long long)record->divergences);
    if (isfinite(record->draws_per_second) && level < NO_RATE)
        append(&details, "  %s draws/s", em_three_digits(record->draws_per_second).text);
    if (isfinite(record->seconds_left) && record->iteration < record->total && level < NO_TIME_LEFT)
        append_time_left(&details, record->seconds_left,
                         bound_of(record->at_most, "at most ", "<= ", level));
    return details;
}

/* The details that fit into `room` columns; an empty line if none fit. */
static text_line fitting_details(const em_progress_record *record, int room)
{
    shortness level = WHOLE;
    text_line details = details_of(record, level);

    while ((int)details.length > room && level < POSITION_ALONE)
        details = details_of(record, ++level);
    return details;
}

static bool is_last(const em_progress_record *record)
{
    return record->total > 0 && record->iteration >= record->total;
}

/* The position of a run: iterations done, and of how many. `age`: seconds since the record came;
 * NaN: it is new. */
static text_line position_of(const em_progress_record *record, double age)
{
    text_line position = {0};

    if (is_last(record) && !isnan(age)) { /* a summary, a checkpoint, the end of other ranks */
        append(&position, "finishing (%.0f s)", floor(age));
        return position;
    }
    append(&position, "%s", record->phase);
    if (record->total > 0)
        append(&position, " %lld/%lld", (long long)record->iteration, (long long)record->total);
    if (!isnan(age))
        append(&position, record->total > 0 ? " (%.0f s ago)" : " (%.0f s)", floor(age));
    return position;
}

void em_progress_describe(const em_progress_record *record, size_t size, char *line)
{
    snprintf(line, size, "%s%s", position_of(record, NAN).text, details_of(record, WHOLE).text);
}

static void print_log_line(FILE *stream, const em_progress_record *record, double age)
{
    const time_t clock = time(NULL);
    struct tm local;
    char date[32];

    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", localtime_r(&clock, &local));
    fprintf(stream, "%s %s%s\n", date, position_of(record, age).text,
            details_of(record, WHOLE).text);
}

/* Appends a bar such as "  [=====>      ]" of `width` columns, or nothing if it would be too short
 * to read. */
static void append_bar(text_line *line, const em_progress_record *record, int width)
{
    const int inside = width - 4;

    if (inside < 8 || record->total == 0)
        return;
    const double done = (double)record->iteration / (double)record->total;
    const int filled = (int)(fmin(fmax(done, 0), 1) * inside);
    append(line, "  [");
    for (int i = 0; i < inside; i++)
        append(line, "%c", i < filled ? '=' : i == filled ? '>' : ' ');
    append(line, "]");
}

/* The last column stays free, or the line would wrap. */
static int line_width(FILE *stream)
{
    const int columns = em_terminal_columns(stream);

    return (columns > 0 ? columns : 80) - 1;
}

/* Redraws the line, padded to its width. The last record ends the line at once, because later
 * output of the program may reach the terminal in another way, and earlier. */
static void print_bar(FILE *stream, const em_progress_record *record, double age)
{
    const int width = line_width(stream);
    text_line line = position_of(record, age);
    const text_line details = fitting_details(record, width - (int)line.length);

    append_bar(&line, record, width - (int)(line.length + details.length));
    append(&line, "%s", details.text);
    fprintf(stream, "\r%-*.*s%s", width, width, line.text, is_last(record) ? "\n" : "");
}

/* With the lock. */
static void print(em_progress *progress, double age)
{
    if (progress->mode == EM_PROGRESS_BAR)
        print_bar(progress->stream, &progress->last, age);
    else
        print_log_line(progress->stream, &progress->last, age);
    fflush(progress->stream);
    progress->printed = true;
    progress->there = !is_last(&progress->last);
    progress->last_printed = now();
}

/* ---------------------------------------------------------------- without new records */

double em_progress_pause(em_progress_mode mode, double age)
{
    return fmin(fmax(age, pace[mode].least), pace[mode].most);
}

/* The time at which the last record is printed again; infinity: never. */
static double next_repeat(const em_progress *progress)
{
    const double age = fmax(progress->last_printed - progress->last_news, 0);

    if (progress->mode == EM_PROGRESS_BAR && is_last(&progress->last)) /* its line has ended */
        return INFINITY;
    return progress->printed ? progress->last_news + age + em_progress_pause(progress->mode, age)
                             : progress->last_news + pace[progress->mode].first;
}

/* Waits for a new record until this time. */
static void wait_until(em_progress *progress, double time)
{
    if (isinf(time)) {
        pthread_cond_wait(&progress->wake, &progress->lock);
        return;
    }
    const struct timespec deadline = {(time_t)time, (long)(1e9 * (time - floor(time)))};

    pthread_cond_timedwait(&progress->wake, &progress->lock, &deadline);
}

static void *refresh(void *given)
{
    em_progress *progress = given;

    pthread_mutex_lock(&progress->lock);
    while (!progress->ending) {
        const double next = next_repeat(progress);

        if (now() >= next)
            print(progress, now() - progress->last_news);
        else
            wait_until(progress, next);
    }
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

static em_status start_refreshing(em_progress *progress)
{
    em_condition_create(&progress->wake);
    const int error = em_thread_start(&progress->thread, refresh, progress);
    progress->has_thread = error == 0;
    return error ? em_fail(EM_EMEMORY, "cannot start a thread: %s", strerror(error)) : EM_OK;
}

static void end_refreshing(em_progress *progress)
{
    pthread_mutex_lock(&progress->lock);
    progress->ending = true;
    pthread_cond_signal(&progress->wake);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    pthread_cond_destroy(&progress->wake);
}

/* ---------------------------------------------------------------- records */

em_status em_progress_create(em_progress_mode mode, FILE *stream, const char *starting,
                             em_progress **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    if (mode == EM_PROGRESS_AUTO)
        mode = em_terminal_columns(stream) > 0 ? EM_PROGRESS_BAR : EM_PROGRESS_LOG;
    **out = (em_progress){.mode = mode,
                          .stream = stream,
                          .last = {.phase = starting,
                                   .r_hat = NAN,
                                   .ess = NAN,
                                   .draws_per_second = NAN,
                                   .seconds_left = NAN},
                          .last_news = now()};
    pthread_mutex_init(&(*out)->lock, NULL);
    if (mode != EM_PROGRESS_NONE && starting)
        status = start_refreshing(*out);
    if (status)
        em_release(out);
    return status;
}

static void take(em_progress *progress, const em_progress_record *record)
{
    const bool recent = now() - progress->last_printed < pace[progress->mode].records;

    progress->last = *record;
    progress->last_news = now();
    if (!progress->told || is_last(record) || !recent)
        print(progress, NAN);
    progress->told = true;
}

void em_progress_tell(em_progress *progress, const em_progress_record *record)
{
    if (!progress || progress->mode == EM_PROGRESS_NONE)
        return;
    pthread_mutex_lock(&progress->lock);
    take(progress, record);
    pthread_mutex_unlock(&progress->lock);
}

void em_progress_give_way(em_progress *progress)
{
    if (!progress || progress->mode != EM_PROGRESS_BAR)
        return;
    pthread_mutex_lock(&progress->lock);
    if (progress->there)
        fprintf(progress->stream, "\r%*s\r", line_width(progress->stream), "");
    progress->there = false;
    pthread_mutex_unlock(&progress->lock);
}

void em_progress_destroy(em_progress **out)
{
    em_progress *progress = *out;

    if (!progress)
        return;
    if (progress->has_thread)
        end_refreshing(progress);
    if (progress->mode == EM_PROGRESS_BAR && progress->there)
        fputc('\n', progress->stream);
    pthread_mutex_destroy(&progress->lock);
    em_release(out);
}
