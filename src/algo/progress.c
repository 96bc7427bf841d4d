/* SPDX-License-Identifier: MIT */
/*
 * progress.c - counting what is done, and a line on a terminal that shows it
 *
 * The line is drawn by a thread of its own, so that nobody who computes ever waits for a
 * terminal. The thread in turn does not wait for it either: it writes to a description of the
 * terminal that it has opened for itself and that does not block. What does not fit is kept
 * and written later, so that no escape sequence is torn; nothing new is drawn before that is
 * through. Where the terminal cannot be opened again, it writes to the given descriptor
 * whenever that is said to take something.
 *
 * The first line comes after one interval: a computation that is shorter than that shows
 * nothing. The line is one column shorter than the terminal, where many would otherwise wrap.
 *
 * After fork() there is no bar in the child: its thread is the parent's. Stopping it there
 * frees its memory and touches no terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <forkjoin/algo.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../atomic.h"
#include "../plat/keep.h"
#include "scratch.h"

/* ---- The counts --------------------------------------------------------------------------------- */

void fj_progress_init(fj_progress *p, uint64_t total)
{
    if (p == NULL) return;
    /* relaxed: nothing but the numbers is told, here and below. */
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

/* ---- The bar ------------------------------------------------------------------------------------ */

enum {
    REDRAW_MS = 100,
    PATIENCE_MS = 100, /* how long the end waits for a terminal to take its last bytes */
    COLUMNS = 80,      /* of a terminal that does not say it */
    COLUMNS_MOST = 500,
    BAR_LEAST = 10,
    BAR_MOST = 40,
    LABEL_LEAST = 8, /* columns of a longer label that figures do not take */
};

#define SMOOTH_SECONDS 3.0 /* the rate is that of about this time */

struct fj_progress_bar {
    const fj_progress *progress;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool shown; /* there is a thread */
    bool stop;
    bool drawn; /* there is a line to remove */
    pid_t home; /* the process it belongs to */
    int fd;
    bool own_fd;
    struct timespec when; /* the rate was taken, */
    uint64_t done;        /* and so much was done */
    double rate;          /* for each second; negative: not known */
    size_t at, length;    /* what is still to be written of `out` */
    char out[5 * COLUMNS_MOST];
    char label[]; /* clean */
};

/* A line as it grows: bytes, and the columns they take. */
typedef struct line {
    char *text;
    size_t length, columns;
} line;

/* ---- Labels ------------------------------------------------------------------------------------- */

/* The length of the character at s, 0 if it is none that may be shown. */
static size_t char_length(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (s[0] < 0x20 || s[0] == 0x7f || s[0] > 0xf4) return 0;
    if (s[0] == 0xc2 && s[1] < 0xa0) return 0; /* the control characters above 127 */
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return n;
}

/* Columns of a character of so many bytes: one too many rather than one too few. */
static size_t char_columns(size_t length)
{
    return length < 3 ? 1 : 2;
}

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

    for (size_t n; *label != '\0' && columns < COLUMNS_MOST; label += n) {
        n = char_length((const unsigned char *)label);
        columns += char_columns(n);
    }
    return columns;
}

/* As many characters of the label as fit. */
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

/* ---- Figures ------------------------------------------------------------------------------------ */

/* Appends to `text`, all one byte a column. */
static void line_add(line *l, const char *text)
{
    size_t n = strlen(text);

    memcpy(l->text + l->length, text, n);
    l->length += n;
    l->columns += n;
}

/* A number in at most six characters: 9999, 12.3k, 456M. */
static void number_text(char text[16], double x)
{
    static const char unit[] = "kMGTPE";
    int u = -1;

    while (x >= 9999.5 || (u >= 0 && x >= 999.5)) {
        x /= 1000;
        u++;
    }
    if (u < 0)
        (void)snprintf(text, 16, "%.0f", x);
    else
        (void)snprintf(text, 16, "%.*f%c", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x, unit[u]);
}

/* Seconds as 0:07, 1:02:03, 12 d. */
static void time_text(char text[24], double seconds)
{
    unsigned long s = seconds < 1e9 ? (unsigned long)(seconds + 0.5) : 1000000000ul;

    if (s >= 48 * 3600ul)
        (void)snprintf(text, 24, "%lu d", s / 86400);
    else if (s >= 3600)
        (void)snprintf(text, 24, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        (void)snprintf(text, 24, "%lu:%02lu", s / 60, s % 60);
}

/* What follows the bar, the more important first. */
typedef struct figures {
    char text[4][48];
} figures;

static void figures_of(const fj_progress_bar *b, uint64_t done, uint64_t total, figures *f)
{
    char a[16];

    memset(f, 0, sizeof *f);
    number_text(a, (double)done);
    if (total != 0) {
        char z[16];
        number_text(z, (double)total);
        uint64_t shown = done < total ? done : total;
        (void)snprintf(f->text[0], 48, " %3d %%", (int)((double)shown / (double)total * 100));
        (void)snprintf(f->text[1], 48, "  %s/%s", a, z);
    } else {
        (void)snprintf(f->text[0], 48, " %s", a);
    }
    if (b->rate < 0 || total == 0) return;
    number_text(a, b->rate);
    (void)snprintf(f->text[2], 48, "  %s/s", a);
    if (done < total && b->rate > 0) {
        char left[24];
        time_text(left, (double)(total - done) / b->rate);
        (void)snprintf(f->text[3], 48, "  %s", left);
    }
}

/* ---- The line ----------------------------------------------------------------------------------- */

static void line_bar(line *l, size_t width, uint64_t done, uint64_t total)
{
    double part = done < total ? (double)done / (double)total : 1;
    size_t full = (size_t)(part * (double)width);

    l->text[l->length++] = '[';
    memset(l->text + l->length, '#', full);
    memset(l->text + l->length + full, '.', width - full);
    l->length += width;
    l->text[l->length++] = ']';
    l->columns += width + 2;
}

/* Composes the line in at most `room` columns. Figures go first when there is too little. */
static void line_make(line *l, const fj_progress_bar *b, size_t room)
{
    uint64_t done = fj_progress_done(b->progress), total = fj_progress_total(b->progress);
    size_t label = label_columns(b->label), least = label < LABEL_LEAST ? label : LABEL_LEAST;
    size_t bar = total != 0 ? BAR_LEAST + 3 : 0, used = least + bar;
    figures f;
    int shown = 0;

    figures_of(b, done, total, &f);
    while (shown < 4 && used + strlen(f.text[shown]) <= room) used += strlen(f.text[shown++]);
    if (shown == 0) { /* not even that: the first figure, as far as it goes */
        l->length = l->columns = strlen(f.text[0] + 1) < room ? strlen(f.text[0] + 1) : room;
        memcpy(l->text, f.text[0] + 1, l->columns);
        return;
    }
    size_t more = label - least < room - used ? label - least : room - used;
    line_label(l, b->label, least + more);
    used = used - least + l->columns;
    if (bar != 0) {
        more = room - used < BAR_MOST - BAR_LEAST ? room - used : BAR_MOST - BAR_LEAST;
        line_add(l, " ");
        line_bar(l, BAR_LEAST + more, done, total);
    }
    for (int i = 0; i < shown; i++) line_add(l, f.text[i]);
}

static size_t bar_columns(const fj_progress_bar *b)
{
    struct winsize size;

    if (ioctl(b->fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return COLUMNS;
    return size.ws_col < COLUMNS_MOST ? size.ws_col : COLUMNS_MOST;
}

/* ---- Writing ------------------------------------------------------------------------------------ */

/* Writes what it can within `ms`; true if nothing is left of it. Any error is the end of it. */
static bool bar_flush(fj_progress_bar *b, int ms)
{
    while (b->at < b->length) {
        struct pollfd ready = {.fd = b->fd, .events = POLLOUT};
        int polled = poll(&ready, 1, ms);
        if (polled < 0 && errno == EINTR) continue;
        if (polled == 0) return false;
        ssize_t n = polled < 0 ? -1 : write(b->fd, b->out + b->at, b->length - b->at);
        if (n >= 0)
            b->at += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return false;
        else if (errno != EINTR)
            b->at = b->length;
    }
    return true;
}

static void bar_draw(fj_progress_bar *b)
{
    line l = {.text = b->out + 1};

    if (!bar_flush(b, 0)) return;
    b->out[0] = '\r';
    line_make(&l, b, bar_columns(b) - 1);
    memcpy(l.text + l.length, "\033[K", 3);
    b->at = 0;
    b->length = l.length + 4;
    b->drawn = true;
    (void)bar_flush(b, 0);
}

static void bar_erase(fj_progress_bar *b)
{
    if (!b->drawn || !bar_flush(b, PATIENCE_MS)) return;
    memcpy(b->out, "\r\033[K", 4);
    b->at = 0;
    b->length = 4;
    (void)bar_flush(b, PATIENCE_MS);
}

/* ---- The thread --------------------------------------------------------------------------------- */

static double seconds_between(const struct timespec *a, const struct timespec *b)
{
    return (double)(b->tv_sec - a->tv_sec) + (double)(b->tv_nsec - a->tv_nsec) * 1e-9;
}

/* The rate of the last time, the older the less. */
static void bar_measure(fj_progress_bar *b)
{
    struct timespec now;
    uint64_t done = fj_progress_done(b->progress);

    clock_gettime(CLOCK_MONOTONIC, &now);
    double took = seconds_between(&b->when, &now);
    if (took < 0.01) return;
    double rate = done > b->done ? (double)(done - b->done) / took : 0;
    b->rate = b->rate < 0 ? rate : b->rate + (rate - b->rate) * took / (took + SMOOTH_SECONDS);
    b->when = now;
    b->done = done;
}

/* Waits one interval, or until it is stopped: false. */
static bool bar_wait(fj_progress_bar *b)
{
    struct timespec next;
    int err = 0;

    clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_nsec += REDRAW_MS * 1000000l;
    next.tv_sec += next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
    pthread_mutex_lock(&b->lock);
    while (!b->stop && err == 0) err = pthread_cond_timedwait(&b->woken, &b->lock, &next);
    bool on = !b->stop;
    pthread_mutex_unlock(&b->lock);
    return on;
}

static void *bar_run(void *arg)
{
    fj_progress_bar *b = arg;

    while (bar_wait(b)) {
        bar_measure(b);
        bar_draw(b);
    }
    bar_erase(b);
    return NULL;
}

/* ---- Beginning and end -------------------------------------------------------------------------- */

/* A description of the terminal that does not block, if there can be one. */
static void bar_open(fj_progress_bar *b, int fd)
{
    char name[256];
    int own = -1;

    if (ttyname_r(fd, name, sizeof name) == 0)
        own = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    b->own_fd = own >= 0;
    b->fd = own >= 0 ? own : fd;
}

static int bar_thread(fj_progress_bar *b)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&b->thread, NULL, bar_run, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err == 0 ? FJ_OK : FJ_EAGAIN;
}

static int bar_show(fj_progress_bar *b, int fd)
{
    pthread_condattr_t monotonic;

    if (pthread_mutex_init(&b->lock, NULL) != 0) return FJ_ENOMEM;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    int err = pthread_cond_init(&b->woken, &monotonic) == 0 ? FJ_OK : FJ_ENOMEM;
    pthread_condattr_destroy(&monotonic);
    if (err != FJ_OK) goto no_cond;

    clock_gettime(CLOCK_MONOTONIC, &b->when);
    bar_open(b, fd);
    b->shown = true;
    err = bar_thread(b);
    if (err == FJ_OK) return FJ_OK;
    if (b->own_fd) close(b->fd);
    pthread_cond_destroy(&b->woken);
no_cond:
    pthread_mutex_destroy(&b->lock);
    return err;
}

int fj_progress_bar_start(fj_progress_bar **bar, const fj_progress *p, const char *label, int fd)
{
    int saved = errno, err = FJ_OK;

    if (bar == NULL || p == NULL || label == NULL) return FJ_EINVAL;
    size_t length = strlen(label);
    fj_progress_bar *b = fji_algo_alloc(sizeof *b + length + 1);
    if (b == NULL) {
        err = FJ_ENOMEM;
        goto out;
    }
    memset(b, 0, sizeof *b);
    memcpy(b->label, label, length + 1);
    label_clean(b->label);
    b->progress = p;
    b->home = getpid();
    b->done = fj_progress_done(p);
    b->rate = -1;
    int old = fji_keep();
    if (isatty(fd)) err = bar_show(b, fd);
    fji_let_go(old);
    if (err == FJ_OK)
        *bar = b;
    else
        fji_algo_free(b);
out:
    errno = saved;
    return err;
}

static void bar_end(fj_progress_bar *b)
{
    if (b->home == getpid()) {
        pthread_mutex_lock(&b->lock);
        b->stop = true;
        pthread_cond_signal(&b->woken);
        pthread_mutex_unlock(&b->lock);
        pthread_join(b->thread, NULL);
        pthread_cond_destroy(&b->woken);
        pthread_mutex_destroy(&b->lock);
    }
    if (b->own_fd) close(b->fd);
}

void fj_progress_bar_stop(fj_progress_bar *bar)
{
    int saved = errno;

    if (bar == NULL) return;
    int old = fji_keep();
    if (bar->shown) bar_end(bar);
    fji_algo_free(bar);
    fji_let_go(old);
    errno = saved;
}
