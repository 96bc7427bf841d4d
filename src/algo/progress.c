/* SPDX-License-Identifier: MIT */
/*
 * progress.c - counters of processed elements, and a progress bar: a line on a terminal that shows
 * them
 *
 * The problem: a computation must never wait for a terminal, which may stop accepting output at
 * any time.
 *
 * A progress bar therefore has a thread of its own, which draws the line again after each interval
 * of REDRAW_MS. That thread does not wait for the terminal while it draws (plat/terminal.h). The
 * bytes that the terminal does not accept stay in `out`. The thread writes them before anything
 * else, so that no escape sequence is cut in two. It composes a new line only when the previous
 * line is written completely, or discarded because of an error. Only when it erases the line at the
 * end does the thread wait for the terminal, for at most LAST_WRITE_MS each time it accepts
 * nothing.
 *
 * The thread draws the first line after one interval, so a computation that takes less time shows
 * nothing. The line is at least one column shorter than the terminal, because many terminals wrap
 * when the last column is written.
 *
 * Threads. fj_progress_bar_start() fills in the fj_progress_bar before it starts the thread. From
 * then on only the thread uses `drawn`, `out`, and the members for the rate and for the number of
 * bytes in `out`. fj_progress_bar_stop() sets `stop`, and reads `ready` and `thread` in order to
 * join the thread. If there is no terminal, the bar has no thread. After fork() the child process
 * has the memory of the bar but not its thread: there fj_progress_bar_stop() frees the memory and
 * writes nothing to the terminal.
 *
 * Edges               from                        to                         carries
 *   progress.thread   release store, bar_run()    acquire load, bar_end()    the thread's handle
 */
#include <forkjoin/algo.h>
#include <string.h>

#include "plat/atomic.h"
#include "plat/plat.h"
#include "plat/terminal.h"
#include "scratch.h"

/* ---- Counters -------------------------------------------------------------------------------- */

void fj_progress_init(fj_progress *p, uint64_t total)
{
    if (p == NULL) return;
    /* relaxed: the counters order no other data, here and in the three functions below. */
    fji_store_relaxed(&p->total, total);
    fji_store_relaxed(&p->done, (uint64_t)0);
    p->adds = total == 0;
    p->spare = 0;
}

void fj_progress_add(fj_progress *p, uint64_t n)
{
    if (p != NULL) (void)fji_add_relaxed(&p->done, n); /* relaxed: as above */
}

uint64_t fj_progress_done(const fj_progress *p)
{
    return p == NULL ? 0 : fji_load_relaxed(&p->done); /* relaxed: as above */
}

uint64_t fj_progress_total(const fj_progress *p)
{
    return p == NULL ? 0 : fji_load_relaxed(&p->total); /* relaxed: as above */
}

/* ---- The bar --------------------------------------------------------------------------------- */

enum {
    REDRAW_MS = 100,     /* milliseconds between two drawings of the line */
    LAST_WRITE_MS = 100, /* milliseconds that bar_erase() waits when the terminal accepts nothing */
    COLUMNS_DEFAULT = 80, /* the width of a terminal that does not report its width */
    COLUMNS_MAX = 500,    /* a wider terminal is used only up to this column */
    BAR_MIN = 10,         /* the least columns of the bar, without its brackets */
    BAR_MAX = 40,         /* the most columns of the bar, without its brackets */
    LABEL_MIN = 8,     /* figures are left out before the label is cut to fewer columns than this */
    FIGURES = 4,       /* texts behind the bar: percentage, numbers, rate, remaining time */
    FIGURE_BYTES = 48, /* size of the array for each of these texts, with the terminating null */
};

#define SMOOTH_SECONDS 3.0 /* the displayed rate is an average over about this time, in seconds */

struct fj_progress_bar {
    const fj_progress *progress;
    bool shown; /* true: the bar has a terminal and a thread; false: it has neither */
    fji_terminal terminal;
    fji_thread thread;      /* valid once `ready` is 1 */
    uint32_t ready;         /* 1: the thread has stored its handle */
    uint32_t stop;          /* 1: the thread has to erase the line and end */
    bool drawn;             /* true: a line was drawn, which the thread erases before it ends */
    int64_t measured_at;    /* when the rate was last measured, in ns */
    uint64_t measured_done; /* the elements that were done at that time */
    double rate;            /* elements per second, averaged; negative: not measured yet */
    size_t written, length; /* `out` has `length` bytes, of which the first `written` are written */
    char out[5 * COLUMNS_MAX]; /* the line, with its control characters, as the terminal gets it */
    char label[]; /* the caller's label; a control character or an invalid byte is a '?' here */
};

/* A line while it is composed. */
typedef struct line {
    char *text;
    size_t length, columns; /* bytes in `text` so far, and the columns that they take */
} line;

/* ---- Labels ---------------------------------------------------------------------------------- */

/* Returns how many bytes the UTF-8 character at s has. Returns 0 if it is a control character, or
 * if the bytes at s are not a first byte followed by the right number of other bytes. Accepts a few
 * invalid characters of 3 or 4 bytes: overlong forms, surrogates and numbers above 0x10ffff. */
static size_t char_length(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (s[0] < 0x20 || s[0] == 0x7f || s[0] > 0xf4) return 0;
    if (s[0] == 0xc2 && s[1] < 0xa0) return 0; /* the control characters above 127 */
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return n;
}

/* Returns an upper bound for the columns that a character of `length` bytes takes on a terminal. */
static size_t char_columns(size_t length)
{
    return length < 3 ? 1 : 2;
}

/* Replaces each byte of a control character, and each byte that char_length() does not accept as
 * UTF-8, by a question mark. */
static void label_clean(char *label)
{
    for (size_t i = 0, n; label[i] != '\0'; i += n) {
        n = char_length((const unsigned char *)label + i);
        if (n == 0) {
            label[i] = '?';
            n = 1;
        }
    }
}

static size_t label_columns(const char *label)
{
    size_t columns = 0;

    for (size_t n; *label != '\0' && columns < COLUMNS_MAX; label += n) {
        n = char_length((const unsigned char *)label);
        columns += char_columns(n);
    }
    return columns;
}

/* Appends the first characters of the label, as many as fit into `columns` columns. label_clean()
 * has cleaned the label. */
static void line_label(line *l, const char *label, size_t columns)
{
    size_t end = l->columns + columns;

    for (size_t n; *label != '\0'; label += n) {
        n = char_length((const unsigned char *)label);
        if (l->columns + char_columns(n) > end) return;
        memcpy(l->text + l->length, label, n);
        l->length += n;
        l->columns += char_columns(n);
    }
}

/* ---- Figures --------------------------------------------------------------------------------- */

/* Appends `text`, whose characters are one byte and one column each. */
static void line_add(line *l, const char *text)
{
    size_t n = strlen(text);

    memcpy(l->text + l->length, text, n);
    l->length += n;
    l->columns += n;
}

/* Each of the functions put_...() appends to a string, whose end is `to`. Returns the new end,
 * where it has stored the terminating null. */

static char *put_text(char *to, const char *text)
{
    size_t n = strlen(text);

    memcpy(to, text, n + 1);
    return to + n;
}

/* Appends n in at least `width` characters, filled up with `pad` in front. */
static char *put_padded(char *to, uint64_t n, int width, char pad)
{
    char digits[20];
    int count = 0;

    do digits[count++] = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    for (; width > count; width--) *to++ = pad;
    while (count > 0) *to++ = digits[--count];
    *to = '\0';
    return to;
}

/* Appends the number x, x >= 0, in at most five characters: 9999, 12.3k, 456M. */
static char *put_number(char *to, double x)
{
    static const char unit[] = "kMGTPE";
    int u = -1;

    while (x >= 9999.5 || (u >= 0 && x >= 999.5)) {
        x /= 1000;
        u++;
    }
    int decimals = u < 0 ? 0 : x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
    uint64_t scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    uint64_t scaled = (uint64_t)(x * (double)scale + 0.5);
    to = put_padded(to, scaled / scale, 1, '0');
    if (decimals > 0) to = put_padded(put_text(to, "."), scaled % scale, decimals, '0');
    return u < 0 ? to : put_text(to, (const char[]){unit[u], '\0'});
}

/* Appends a time, given in seconds, as 0:07 (minutes and seconds), 1:02:03 (from one hour on) or
 * 12 d (days, from 48 hours on). */
static char *put_time(char *to, double seconds)
{
    uint64_t s = seconds < 1e9 ? (uint64_t)(seconds + 0.5) : 1000000000u;

    if (s >= 48 * 3600u) return put_text(put_padded(to, s / 86400, 1, '0'), " d");
    if (s >= 3600) {
        to = put_text(put_padded(to, s / 3600, 1, '0'), ":");
        to = put_padded(to, s / 60 % 60, 2, '0');
    } else {
        to = put_padded(to, s / 60, 1, '0');
    }
    return put_padded(put_text(to, ":"), s % 60, 2, '0');
}

/* The figures, texts that follow the bar, the most important one first: the percentage, the numbers
 * of done and all elements, the rate, and the remaining time. If the total is 0, the first text is
 * the number of done elements and the others are empty. The rate and the remaining time are also
 * empty while the rate is not measured. The remaining time is also empty if the rate is 0 or all
 * elements are done. */
typedef struct figures {
    char text[FIGURES][FIGURE_BYTES];
} figures;

static void figures_of(const fj_progress_bar *b, uint64_t done, uint64_t total, figures *f)
{
    memset(f, 0, sizeof *f);
    if (total == 0) {
        (void)put_number(put_text(f->text[0], " "), (double)done);
        return;
    }
    double share = done < total ? (double)done / (double)total : 1;
    (void)put_text(put_padded(put_text(f->text[0], " "), (uint64_t)(share * 100), 3, ' '), " %");
    char *end = put_number(put_text(f->text[1], "  "), (double)done);
    (void)put_number(put_text(end, "/"), (double)total);
    if (b->rate < 0) return;
    (void)put_text(put_number(put_text(f->text[2], "  "), b->rate), "/s");
    if (done < total && b->rate > 0)
        (void)put_time(put_text(f->text[3], "  "), (double)(total - done) / b->rate);
}

/* ---- The line -------------------------------------------------------------------------------- */

static void line_bar(line *l, size_t width, uint64_t done, uint64_t total)
{
    double share = done < total ? (double)done / (double)total : 1;
    size_t full = (size_t)(share * (double)width);

    l->text[l->length++] = '[';
    memset(l->text + l->length, '#', full);
    memset(l->text + l->length + full, '.', width - full);
    l->length += width;
    l->text[l->length++] = ']';
    l->columns += width + 2;
}

/* Composes the line in at most `max` columns: the label, the bar unless the total is 0, and the
 * figures. If not all figures fit beside LABEL_MIN columns of the label and BAR_MIN columns of the
 * bar, the last ones are left out. Columns that remain go to the label first, then to the bar. If
 * not even the first figure fits, the line is that figure alone, cut off after `max` columns. */
static void line_make(line *l, const fj_progress_bar *b, size_t max)
{
    uint64_t done = fj_progress_done(b->progress), total = fj_progress_total(b->progress);
    size_t label = label_columns(b->label), label_min = label < LABEL_MIN ? label : LABEL_MIN;
    size_t bar = total != 0 ? BAR_MIN + 3 : 0, used = label_min + bar;
    figures f;
    int shown = 0;

    figures_of(b, done, total, &f);
    while (shown < FIGURES && used + strlen(f.text[shown]) <= max) used += strlen(f.text[shown++]);
    if (shown == 0) {
        l->length = l->columns = strlen(f.text[0] + 1) < max ? strlen(f.text[0] + 1) : max;
        memcpy(l->text, f.text[0] + 1, l->columns);
        return;
    }
    size_t more = label - label_min < max - used ? label - label_min : max - used;
    line_label(l, b->label, label_min + more);
    used = used - label_min + l->columns;
    if (bar != 0) {
        more = max - used < BAR_MAX - BAR_MIN ? max - used : BAR_MAX - BAR_MIN;
        line_add(l, " ");
        line_bar(l, BAR_MIN + more, done, total);
    }
    for (int i = 0; i < shown; i++) line_add(l, f.text[i]);
}

static size_t bar_columns(const fj_progress_bar *b)
{
    size_t columns = fji_terminal_columns(&b->terminal);

    if (columns == 0) return COLUMNS_DEFAULT;
    return columns < COLUMNS_MAX ? columns : COLUMNS_MAX;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Writes the bytes of `out` that are not written yet. Each time the terminal accepts nothing, waits
 * for it for at most `ms` milliseconds. Returns whether all bytes are written, or discarded because
 * of an error. */
static bool bar_flush(fj_progress_bar *b, int ms)
{
    size_t rest = b->length - b->written;

    b->written += fji_terminal_write(&b->terminal, b->out + b->written, rest, ms);
    return b->written == b->length;
}

/* Composes a new line and writes as much of it as the terminal accepts at once. If a part of the
 * previous line is still not written, only continues to write that. */
static void bar_draw(fj_progress_bar *b)
{
    line l = {.text = b->out + 1};

    if (!bar_flush(b, 0)) return;
    b->out[0] = '\r';
    line_make(&l, b, bar_columns(b) - 1);
    memcpy(l.text + l.length, "\033[K", 3);
    b->written = 0;
    b->length = l.length + 4;
    b->drawn = true;
    (void)bar_flush(b, 0);
}

/* Erases the line, if one was drawn. Gives up if the terminal accepts nothing for LAST_WRITE_MS. */
static void bar_erase(fj_progress_bar *b)
{
    if (!b->drawn || !bar_flush(b, LAST_WRITE_MS)) return;
    memcpy(b->out, "\r\033[K", 4);
    b->written = 0;
    b->length = 4;
    (void)bar_flush(b, LAST_WRITE_MS);
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Updates b->rate, an average in which the weight of a measurement decreases with its age. Does
 * nothing if the last measurement is less than 0.01 s old. */
static void bar_measure(fj_progress_bar *b)
{
    int64_t now = fji_plat_now();
    uint64_t done = fj_progress_done(b->progress);
    double seconds = (double)(now - b->measured_at) * 1e-9;

    if (seconds < 0.01) return;
    double rate = done > b->measured_done ? (double)(done - b->measured_done) / seconds : 0;
    double weight = seconds / (seconds + SMOOTH_SECONDS);
    b->rate = b->rate < 0 ? rate : b->rate + (rate - b->rate) * weight;
    b->measured_at = now;
    b->measured_done = done;
}

/* Returns whether the thread has to end. relaxed: the flag orders no other data. */
static bool bar_stopped(const fj_progress_bar *b)
{
    return fji_load_relaxed(&b->stop) != 0;
}

/* Waits for one interval of REDRAW_MS, or until b->stop is 1. Returns false if the thread has to
 * end, otherwise true. */
static bool bar_wait(fj_progress_bar *b)
{
    int64_t deadline = fji_plat_now() + REDRAW_MS * (int64_t)1000000;

    while (!bar_stopped(b) && fji_plat_wait(&b->stop, 0, deadline)) continue;
    return !bar_stopped(b);
}

static void bar_run(void *arg)
{
    fj_progress_bar *b = arg;

    fji_plat_thread_block_all();
    b->thread = fji_plat_thread_self();
    /* [progress.thread] release -> acquire in bar_end(): the handle in b->thread becomes
     * visible. */
    fji_store_release(&b->ready, 1u);
    fji_plat_wake_one(&b->ready);
    while (bar_wait(b)) {
        bar_measure(b);
        bar_draw(b);
    }
    bar_erase(b);
}

/* ---- Start and stop -------------------------------------------------------------------------- */

static int bar_show(fj_progress_bar *b)
{
    const fji_creator defaults = {.stack_bytes = 0};

    b->measured_at = fji_plat_now();
    b->measured_done = fj_progress_done(b->progress);
    b->rate = -1;
    b->shown = fji_plat_thread_start(bar_run, b, &defaults, "fj-progress");
    if (b->shown) return FJ_OK;
    fji_terminal_close(&b->terminal);
    return FJ_EAGAIN;
}

int fj_progress_bar_start(fj_progress_bar **bar, const fj_progress *p, const char *label, int fd)
{
    if (bar == NULL || p == NULL || label == NULL) return FJ_EINVAL;
    size_t length = strlen(label);
    fj_progress_bar *b = fji_algo_alloc(sizeof *b + length + 1);
    if (b == NULL) return FJ_ENOMEM;
    memset(b, 0, sizeof *b);
    memcpy(b->label, label, length + 1);
    label_clean(b->label);
    b->progress = p;
    int err = fji_terminal_open(&b->terminal, fd) ? bar_show(b) : FJ_OK;
    if (err == FJ_OK)
        *bar = b;
    else
        fji_algo_free(b);
    return err;
}

static void bar_end(fj_progress_bar *b)
{
    if (fji_terminal_is_ours(&b->terminal)) {
        fji_store_relaxed(&b->stop, 1u); /* relaxed: as in bar_stopped() */
        fji_plat_wake_one(&b->stop);
        /* [progress.thread] acquire <- release in bar_run(): if `ready` is 1, b->thread is the
         * handle of the thread. */
        while (fji_load_acquire(&b->ready) == 0) (void)fji_plat_wait(&b->ready, 0, FJ_FOREVER);
        fji_plat_thread_join(b->thread);
    }
    fji_terminal_close(&b->terminal);
}

void fj_progress_bar_stop(fj_progress_bar *bar)
{
    if (bar == NULL) return;
    if (bar->shown) bar_end(bar);
    fji_algo_free(bar);
}
