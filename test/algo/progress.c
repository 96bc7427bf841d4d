/* SPDX-License-Identifier: MIT */
/*
 * progress.c - progress counts, which any thread may read, and the progress bar on a terminal
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <forkjoin/algo.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "algo/scratch.h"
#include "fjtest.h"
#include "plat/plat.h"

/* ---- Counts --------------------------------------------------------------------------------- */

FJ_TEST(counts_are_what_was_added, 10)
{
    fj_progress p;

    fj_progress_init(&p, 100);
    CHECK_EQ(fj_progress_total(&p), 100);
    CHECK_EQ(fj_progress_done(&p), 0);
    fj_progress_add(&p, 30);
    fj_progress_add(&p, UINT64_MAX - 100);
    CHECK(fj_progress_done(&p) == UINT64_MAX - 70);
    CHECK_EQ(fj_progress_total(&p), 100);
}

static int nothing(size_t begin, size_t end, void *arg)
{
    (void)begin;
    (void)end;
    (void)arg;
    return FJ_OK;
}

FJ_TEST(total_is_given_or_added_up, 10)
{
    fj_progress given, added;

    fj_progress_init(&given, 1000);
    fj_progress_init(&added, 0);
    for (size_t n = 0; n < 5; n++) {
        CHECK_EQ(fj_for(0, 100 * n, nothing, NULL, &(fj_algo_options){.progress = &given}), FJ_OK);
        CHECK_EQ(fj_for(0, 100 * n, nothing, NULL, &(fj_algo_options){.progress = &added}), FJ_OK);
    }
    CHECK_EQ(fj_progress_done(&given), 1000);
    CHECK_EQ(fj_progress_total(&given), 1000);
    CHECK_EQ(fj_progress_done(&added), 1000);
    CHECK_EQ(fj_progress_total(&added), 1000);
}

static int add_ones(size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++) fj_progress_add(arg, 1);
    return FJ_OK;
}

FJ_TEST(counts_lose_nothing, 10)
{
    fj_pool *pool = fjt_pool(4, 0);
    fj_progress p;

    fj_progress_init(&p, 0);
    CHECK_EQ(fj_for(0, 50000, add_ones, &p, &(fj_algo_options){.pool = pool, .grain = 10}), FJ_OK);
    CHECK_EQ(fj_progress_done(&p), 50000);
    fjt_destroy(pool);
}

/* ---- A pseudoterminal ----------------------------------------------------------------------- */

struct screen {
    int master, slave;
    char text[65536]; /* all output so far */
    size_t length;
};

static void screen_open(struct screen *s, int columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};

    memset(s, 0, sizeof *s);
    s->master = posix_openpt(O_RDWR | O_NOCTTY);
    if (s->master < 0 || grantpt(s->master) != 0 || unlockpt(s->master) != 0)
        fjt_skip("no pseudoterminal");
    s->slave = open(ptsname(s->master), O_RDWR | O_NOCTTY);
    if (s->slave < 0) fjt_skip("no pseudoterminal");
    CHECK(ioctl(s->master, TIOCSWINSZ, &size) == 0);
}

static void screen_close(struct screen *s)
{
    close(s->slave);
    close(s->master);
}

/* Reads the available output, or waits up to `ms` milliseconds for some. */
static void screen_read(struct screen *s, int ms)
{
    struct pollfd ready = {.fd = s->master, .events = POLLIN};

    if (poll(&ready, 1, ms) <= 0) return;
    ssize_t n = read(s->master, s->text + s->length, sizeof s->text - 1 - s->length);
    if (n > 0) s->length += (size_t)n;
    s->text[s->length] = '\0';
}

/* Waits until `n` lines that begin at `from` or later are complete. Returns the last of them. */
static char *screen_line(struct screen *s, size_t from, int n)
{
    for (;;) {
        char *at = s->text + from, *end;
        for (int i = 0;; i++) {
            at = strchr(at, '\r');
            end = at == NULL ? NULL : strstr(at, "\033[K");
            if (end == NULL) break;
            if (i + 1 == n) {
                static char line[4096];
                snprintf(line, sizeof line, "%.*s", (int)(end - at - 1), at + 1);
                return line;
            }
            at = end;
        }
        screen_read(s, 1000);
    }
}

/* The number of columns of a line. A character of three or more bytes counts as two columns. */
static size_t columns_of(const char *line)
{
    size_t n = 0;

    for (; *line != '\0'; line++) {
        unsigned char c = (unsigned char)*line;
        CHECK(c >= 0x20 && c != 0x7f);
        n += (c & 0xc0) == 0x80 ? 0 : c < 0xe0 ? 1 : 2;
    }
    return n;
}

static fj_progress_bar *bar_on(struct screen *s, const fj_progress *p, const char *label)
{
    fj_progress_bar *bar = NULL;

    CHECK_EQ(fj_progress_bar_start(&bar, p, label, s->slave), FJ_OK);
    CHECK(bar != NULL);
    return bar;
}

/* ---- The progress line ---------------------------------------------------------------------- */

FJ_TEST(line_shows_label_bar_percent_and_count, 10)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 100);
    fj_progress_init(&p, 200);
    fj_progress_add(&p, 50);
    fj_progress_bar *bar = bar_on(&s, &p, "pictures");
    const char *line = screen_line(&s, 0, 1);
    CHECK(strncmp(line, "pictures [", 10) == 0);
    CHECK(strstr(line, "[##########..............................]") != NULL);
    CHECK(strstr(line, " 25 %") != NULL && strstr(line, " 50/200") != NULL);
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

FJ_TEST(line_goes_on_and_is_removed_at_the_end, 10)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 100);
    fj_progress_init(&p, 200);
    fj_progress_bar *bar = bar_on(&s, &p, "pictures");
    CHECK(strstr(screen_line(&s, 0, 1), "  0 %") != NULL);
    for (uint64_t at = 0; at < 200; at += 100) {
        fj_progress_add(&p, 100);
        const char *wanted = at == 0 ? " 50 %" : " 100 %";
        while (strstr(screen_line(&s, s.length, 1), wanted) == NULL) continue;
    }
    fj_progress_bar_stop(bar);
    while (s.length < 4 || strcmp(s.text + s.length - 4, "\r\033[K") != 0) screen_read(&s, 100);
    screen_close(&s);
}

/* The remaining time is computed from the rate so far. The test checks only that a time is
 * shown. */
FJ_TEST(line_shows_the_rate_and_the_time_left, 10)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 120);
    fj_progress_init(&p, UINT64_MAX / 2);
    fj_progress_bar *bar = bar_on(&s, &p, "x");
    for (const char *line = "";;) {
        const char *rate = strstr(line, "/s  ");
        if (rate != NULL) {
            CHECK(strchr(rate, ':') != NULL || strstr(rate, " d") != NULL);
            break;
        }
        fj_progress_add(&p, UINT64_MAX / 1000000);
        line = screen_line(&s, s.length, 1);
    }
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

FJ_TEST(what_takes_long_is_told_in_days, 20)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 120);
    fj_progress_init(&p, UINT64_MAX / 2);
    fj_progress_bar *bar = bar_on(&s, &p, "x");
    for (const char *line = ""; strstr(line, " d") == NULL; line = screen_line(&s, s.length, 1))
        fj_progress_add(&p, 1);
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

FJ_TEST(more_than_all_is_100_percent, 10)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 80);
    fj_progress_init(&p, 10);
    fj_progress_add(&p, UINT64_MAX);
    fj_progress_bar *bar = bar_on(&s, &p, "x");
    CHECK(strstr(screen_line(&s, 0, 1), "#] 100 %") != NULL);
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

FJ_TEST(without_a_total_only_the_count_is_shown, 10)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 80);
    fj_progress_init(&p, 0);
    fj_progress_add(&p, 4321);
    fj_progress_bar *bar = bar_on(&s, &p, "files");
    CHECK(strcmp(screen_line(&s, 0, 1), "files 4321") == 0);
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

FJ_TEST(control_characters_do_not_reach_the_terminal, 10)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 100);
    fj_progress_init(&p, 0);
    fj_progress_bar *bar = bar_on(&s, &p, "a\n\033[2J\x7f\xc2\x9b\xff\xc3\xa9\xe2\x82z");
    CHECK(strcmp(screen_line(&s, 0, 1), "a??[2J????\xc3\xa9??z 0") == 0);
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

/* Checks the line on a new terminal with `width` columns. */
static void check_width(int width)
{
    static const char label[] = "a l\xc3\xb6ng label \xe6\xbc\xa2\xe5\xad\x97 that is cut to fit";
    struct screen s;
    fj_progress p;

    screen_open(&s, width);
    fj_progress_init(&p, 123456789);
    fj_progress_add(&p, 12345678);
    fj_progress_bar *bar = bar_on(&s, &p, label);
    size_t columns = columns_of(screen_line(&s, 0, 1));
    CHECK(columns < (size_t)(width == 0 ? 80 : width));
    CHECK(width < 9 || columns >= 4);
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

FJ_TEST(line_never_wraps, 20)
{
    static const int widths[] = {1, 2, 5, 9, 20, 33, 47, 60, 500, 2000, 0};

    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) check_width(widths[i]);
}

FJ_TEST(line_follows_the_width_of_the_terminal, 20)
{
    static const int widths[] = {90, 30, 50};
    struct screen s;
    fj_progress p;

    screen_open(&s, 70);
    fj_progress_init(&p, 123456789);
    fj_progress_bar *bar = bar_on(&s, &p,
                                  "a label that makes every line as long as it can be, and longer");
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)widths[i]};
        CHECK(ioctl(s.master, TIOCSWINSZ, &size) == 0);
        while (columns_of(screen_line(&s, s.length, 1)) != (size_t)widths[i] - 1) continue;
    }
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

/* ---- Without a usable terminal -------------------------------------------------------------- */

FJ_TEST(nothing_is_written_to_what_is_no_terminal, 10)
{
    int fds[2];
    char byte;
    fj_progress p;
    fj_progress_bar *bar = NULL;

    CHECK(pipe(fds) == 0);
    fj_progress_init(&p, 10);
    CHECK_EQ(fj_progress_bar_start(&bar, &p, "x", fds[1]), FJ_OK);
    CHECK(bar != NULL);
    fjt_sleep_us(250000);
    fj_progress_bar_stop(bar);
    close(fds[1]);
    CHECK_EQ(read(fds[0], &byte, 1), 0);
    close(fds[0]);
    CHECK_EQ(fj_progress_bar_start(&bar, &p, "x", -1), FJ_OK);
    fj_progress_bar_stop(bar);
}

/* Even if a bar is stopped at once, what it drew is removed. */
FJ_TEST(bars_may_be_stopped_at_once, 10)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 80);
    fj_progress_init(&p, 10);
    for (long i = fjt_rounds(200); i > 0; i--) fj_progress_bar_stop(bar_on(&s, &p, "x"));
    screen_read(&s, 0);
    CHECK(s.length == 0 || strcmp(s.text + s.length - 4, "\r\033[K") == 0);
    screen_close(&s);
}

FJ_TEST(terminal_that_takes_nothing_holds_nobody_up, 20)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 80);
    int flags = fcntl(s.slave, F_GETFL);
    CHECK(fcntl(s.slave, F_SETFL, flags | O_NONBLOCK) == 0);
    while (write(s.slave, "........", 8) > 0) continue;
    CHECK(fcntl(s.slave, F_SETFL, flags) == 0);
    fj_progress_init(&p, 10);
    fj_progress_bar *bar = bar_on(&s, &p, "x");
    fjt_sleep_us(300000);
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

FJ_TEST(terminal_may_go_away, 10)
{
    struct screen s;
    fj_progress p;

    screen_open(&s, 80);
    fj_progress_init(&p, 10);
    fj_progress_bar *bar = bar_on(&s, &p, "x");
    (void)screen_line(&s, 0, 1);
    signal(SIGHUP, SIG_IGN);
    screen_close(&s);
    fjt_sleep_us(250000);
    fj_progress_bar_stop(bar);
}

/* ---- Process state: errno, signals, fork(), threads ----------------------------------------- */

FJ_TEST(label_is_copied, 10)
{
    struct screen s;
    fj_progress p;
    char label[] = "mine";

    screen_open(&s, 80);
    fj_progress_init(&p, 0);
    fj_progress_bar *bar = bar_on(&s, &p, label);
    memset(label, 'x', 4);
    CHECK(strncmp(screen_line(&s, 0, 1), "mine ", 5) == 0);
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

FJ_TEST(misuse_and_lack_of_memory_are_told, 10)
{
    fj_progress p;
    fj_progress_bar *bar = NULL;

    fj_progress_init(&p, 0);
    CHECK_EQ(fj_progress_bar_start(NULL, &p, "", 1), FJ_EINVAL);
    CHECK_EQ(fj_progress_bar_start(&bar, NULL, "", 1), FJ_EINVAL);
    CHECK_EQ(fj_progress_bar_start(&bar, &p, NULL, 1), FJ_EINVAL);
    if (!FJI_FAULTS) fjt_skip("built without faults");
    fji_algo_fail_after(0);
    CHECK_EQ(fj_progress_bar_start(&bar, &p, "", 1), FJ_ENOMEM);
    fji_algo_fail_after(-1);
    CHECK(bar == NULL);
    fj_progress_bar_stop(NULL);
}

FJ_TEST(without_a_thread_there_is_no_bar, 10)
{
    struct screen s;
    fj_progress p;
    fj_progress_bar *bar = NULL;

    if (!FJI_FAULTS) fjt_skip("built without faults");
    screen_open(&s, 80);
    fj_progress_init(&p, 0);
    fji_fault_set(FJI_FAULT_THREAD, 1, 1);
    CHECK_EQ(fj_progress_bar_start(&bar, &p, "x", s.slave), FJ_EAGAIN);
    CHECK(bar == NULL);
    fj_progress_bar_stop(bar_on(&s, &p, "x")); /* the next one is started */
    screen_close(&s);
}

FJ_TEST(errno_is_left_alone, 10)
{
    fj_progress p;
    fj_progress_bar *bar = NULL;
    int fds[2];

    CHECK(pipe(fds) == 0);
    fj_progress_init(&p, 0);
    errno = 1234;
    CHECK_EQ(fj_progress_bar_start(&bar, &p, "", fds[1]), FJ_OK);
    CHECK_EQ(errno, 1234);
    fj_progress_bar_stop(bar);
    CHECK_EQ(errno, 1234);
}

/* Counts the threads that block every signal that can be blocked, as /proc reports them. */
static int deaf_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    if (d == NULL) fjt_skip("no /proc");
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[300], line[256];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "r");
        if (f == NULL) continue;
        while (fgets(line, sizeof line, f) != NULL) {
            unsigned long long mask;
            /* Signals 1 to 31 except SIGKILL (9) and SIGSTOP (19). */
            if (sscanf(line, "SigBlk: %llx", &mask) == 1) n += (mask & 0x7ffbfeff) == 0x7ffbfeff;
        }
        fclose(f);
    }
    closedir(d);
    return n;
}

FJ_TEST(thread_of_the_bar_blocks_all_signals, 10)
{
    struct screen s;
    fj_progress p;
    sigset_t before, after;

    sigfillset(&after);
    pthread_sigmask(SIG_BLOCK, &after, &before);
    int seen = deaf_threads();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (seen == 0) fjt_skip("signal masks cannot be read here"); /* for example under an emulator */
    screen_open(&s, 80);
    fj_progress_init(&p, 0);
    int deaf = deaf_threads();
    fj_progress_bar *bar = bar_on(&s, &p, "x");
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < 32; i++) CHECK_EQ(sigismember(&before, i), sigismember(&after, i));
    (void)screen_line(&s, 0, 1);
    CHECK_EQ(deaf_threads(), deaf + 1);
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

/* The thread has a pending cancellation. The bar must start and stop before the thread acts on
 * it. */
static void *shows_and_ends(void *arg)
{
    struct screen *s = arg;
    fj_progress p;

    pthread_cancel(pthread_self());
    fj_progress_init(&p, 10);
    fj_progress_bar_stop(bar_on(s, &p, "x"));
    s->length = 1; /* tells the joining thread that the bar was stopped */
    pthread_testcancel();
    return NULL;
}

FJ_TEST(thread_about_to_be_cancelled_takes_its_bar_down, 10)
{
    struct screen s;
    pthread_t thread;
    void *result = NULL;

    if (fjt_sanitized()) fjt_skip("the sanitizers do not support threads that are cancelled");
    screen_open(&s, 80);
    s.length = 0;
    CHECK_EQ(pthread_create(&thread, NULL, shows_and_ends, &s), 0);
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK_EQ(s.length, 1);
    screen_close(&s);
}

FJ_TEST(child_of_fork_may_stop_what_it_has_not, 10)
{
    struct screen s;
    fj_progress p;
    int status;

    screen_open(&s, 80);
    fj_progress_init(&p, 0);
    fj_progress_bar *bar = bar_on(&s, &p, "x");
    (void)screen_line(&s, 0, 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        fj_progress_bar_stop(bar);
        _exit(7);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    (void)screen_line(&s, s.length, 1); /* the bar of the parent continues */
    fj_progress_bar_stop(bar);
    screen_close(&s);
}

FJ_TEST(several_bars_at_once, 10)
{
    struct screen s[3];
    fj_progress p;
    fj_progress_bar *bar[3];

    fj_progress_init(&p, 0);
    for (int i = 0; i < 3; i++) {
        screen_open(&s[i], 80);
        bar[i] = bar_on(&s[i], &p, i == 0 ? "a" : i == 1 ? "b" : "c");
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(screen_line(&s[i], 0, 2)[0], "abc"[i]);
    for (int i = 0; i < 3; i++) {
        fj_progress_bar_stop(bar[i]);
        screen_close(&s[i]);
    }
}
