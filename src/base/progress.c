#include "base/progress.h"

#include "base/memory.h"
#include "base/nearest.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* A line being put together; what does not fit is cut off. */
typedef struct text_line {
    char text[512];
    size_t length;
} text_line;

struct em_progress {
    em_progress_mode mode; /* never AUTO */
    FILE *stream;
    bool shown;       /* something was */
    double last_time; /* of the last record shown */
};

static const double seconds_between[] = {[EM_PROGRESS_BAR] = 0.1, [EM_PROGRESS_LOG] = 5};

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

em_status em_progress_create(em_progress_mode mode, FILE *stream, em_progress **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (mode == EM_PROGRESS_AUTO)
        mode = isatty(fileno(stream)) ? EM_PROGRESS_BAR : EM_PROGRESS_LOG;
    if (!status)
        **out = (em_progress){.mode = mode, .stream = stream};
    return status;
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

static void append_time_left(text_line *line, double seconds)
{
    const long long s = (long long)fmin(ceil(fmax(seconds, 0)), 1e15);

    if (s < 60)
        append(line, "  left %lld s", s);
    else if (s < 3600)
        append(line, "  left %lld min %02lld s", s / 60, s % 60);
    else
        append(line, "  left %lld h %02lld min", s / 3600, s % 3600 / 60);
}

static text_line details_of(const em_progress_record *record)
{
    text_line details = {0};

    if (!isnan(record->r_hat))
        append(&details, "  R-hat %.3f", record->r_hat);
    if (!isnan(record->ess))
        append(&details, "  ESS %.0f", record->ess);
    append(&details, "  divergences %lld", (long long)record->divergences);
    if (isfinite(record->draws_per_second))
        append(&details, "  %.3g draws/s", record->draws_per_second);
    if (isfinite(record->seconds_left) && record->iteration < record->total)
        append_time_left(&details, record->seconds_left);
    return details;
}

static text_line position_of(const em_progress_record *record)
{
    text_line position = {0};

    append(&position, "%s %lld/%lld", record->phase, (long long)record->iteration,
           (long long)record->total);
    return position;
}

static void show_log_line(FILE *stream, const em_progress_record *record)
{
    const time_t now = time(NULL);
    struct tm local;
    char date[32];

    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
    fprintf(stream, "%s %s%s\n", date, position_of(record).text, details_of(record).text);
}

static int terminal_width(FILE *stream)
{
    struct winsize size;

    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

/* "  [=====>      ]" in `width` columns; nothing where that would be too short to read. */
static void append_bar(text_line *line, const em_progress_record *record, int width)
{
    const int inside = width - 4;
    const double done = (double)record->iteration / (double)(record->total > 0 ? record->total : 1);
    const int filled = (int)(fmin(fmax(done, 0), 1) * inside);

    if (inside < 8)
        return;
    append(line, "  [");
    for (int i = 0; i < inside; i++)
        append(line, "%c", i < filled ? '=' : i == filled ? '>' : ' ');
    append(line, "]");
}

/* Draws over the last line, padded to its width; the last column stays free, or the line would
 * wrap. */
static void show_bar(FILE *stream, const em_progress_record *record)
{
    const int width = terminal_width(stream) - 1;
    const text_line details = details_of(record);
    text_line line = position_of(record);

    append_bar(&line, record, width - (int)(line.length + details.length));
    append(&line, "%s", details.text);
    fprintf(stream, "\r%-*.*s", width, width, line.text);
}

void em_progress_tell(em_progress *progress, const em_progress_record *record)
{
    struct timespec clock;
    double now;

    if (!progress || progress->mode == EM_PROGRESS_NONE)
        return;
    clock_gettime(CLOCK_MONOTONIC, &clock);
    now = (double)clock.tv_sec + 1e-9 * (double)clock.tv_nsec;
    if (progress->shown && record->iteration < record->total &&
        now - progress->last_time < seconds_between[progress->mode])
        return;
    if (progress->mode == EM_PROGRESS_BAR)
        show_bar(progress->stream, record);
    else
        show_log_line(progress->stream, record);
    fflush(progress->stream);
    progress->shown = true;
    progress->last_time = now;
}

void em_progress_destroy(em_progress **progress)
{
    if (*progress && (*progress)->mode == EM_PROGRESS_BAR && (*progress)->shown)
        fputc('\n', (*progress)->stream);
    em_release(progress);
}
