/* SPDX-License-Identifier: MIT */
/*
 * progress.c - a progress bar on the terminal
 */
#define _POSIX_C_SOURCE 200809L

#include "progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "demo.h"

enum { BAR = 40 };

#define REDRAW_NS 100000000

/* The counter has a cache line of its own, because every worker writes to it. */
static struct {
    FJI_ALIGNAS(64) uint64_t done;
    FJI_ALIGNAS(64) const char *label;
    uint64_t steps;
    bool shown;
    bool stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER, .stopped = PTHREAD_COND_INITIALIZER};

void demo_step(uint64_t n)
{
    /* relaxed: the drawing thread reads only the number, no data that belong to a step. */
    __atomic_fetch_add(&progress.done, n, __ATOMIC_RELAXED);
}

static void draw_bar(void)
{
    uint64_t done = __atomic_load_n(&progress.done, __ATOMIC_RELAXED);
    uint64_t steps = progress.steps > 0 ? progress.steps : 1;
    char bar[BAR + 1];

    if (done > steps) done = steps;
    for (int i = 0; i < BAR; i++) bar[i] = (uint64_t)i < done * BAR / steps ? '#' : '.';
    bar[BAR] = '\0';
    fprintf(stderr, "\r\033[K%-28s [%s] %3d %%", progress.label, bar, (int)(done * 100 / steps));
    fflush(stderr);
}

static void *draw_bars(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&progress.lock);
    while (!progress.stop) {
        struct timespec next;
        draw_bar();
        clock_gettime(CLOCK_REALTIME, &next);
        next.tv_nsec += REDRAW_NS;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        pthread_cond_timedwait(&progress.stopped, &progress.lock, &next);
    }
    pthread_mutex_unlock(&progress.lock);
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
    return NULL;
}

void progress_start(const char *label, uint64_t steps)
{
    __atomic_store_n(&progress.done, 0, __ATOMIC_RELAXED);
    progress.label = label;
    progress.steps = steps;
    progress.stop = false;
    progress.shown = isatty(STDERR_FILENO) &&
                     pthread_create(&progress.thread, NULL, draw_bars, NULL) == 0;
}

void progress_stop(void)
{
    if (!progress.shown) return;
    pthread_mutex_lock(&progress.lock);
    progress.stop = true;
    pthread_cond_signal(&progress.stopped);
    pthread_mutex_unlock(&progress.lock);
    pthread_join(progress.thread, NULL);
}
