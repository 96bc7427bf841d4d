/* SPDX-License-Identifier: MIT */
/*
 * 21_libuv_inbox.c - a libuv loop that gets results from the pool
 *
 * libuv has its own way to wake a loop: uv_async_send(). It is the notifier of the inbox, which
 * therefore has no file descriptor. Each job is one struct, which the workers and the loop pass to
 * each other, so that neither a submission nor a post allocates memory. A timer of the loop ticks
 * meanwhile: the loop is never blocked.
 */
#define _GNU_SOURCE
#include <forkjoin/inbox.h>
#include <stdio.h>
#include <uv.h>

#define JOBS 50

static struct {
    fj_inbox *inbox;
    uv_async_t wake;
    uv_timer_t timer;
    int left, ticks;
    double sum;
} app = {.left = JOBS};

struct job {
    fj_inbox_item item;
    int n;
    double result;
};

/* Runs on a worker: a partial sum of the harmonic series. */
static int work(void *arg)
{
    struct job *j = arg;

    for (int i = 1; i <= j->n; i++) j->result += 1.0 / i;
    return fj_inbox_post_item(app.inbox, &j->item);
}

/* Runs in the thread of the loop. The last job closes the inbox and then the handles, which lets the
 * loop end. After fj_inbox_close() the inbox does not call uv_async_send() any more. */
static void finished(void *arg)
{
    struct job *j = arg;

    app.sum += j->result;
    if (--app.left > 0) return;
    fj_inbox_destroy(app.inbox);
    uv_close((uv_handle_t *)&app.wake, NULL);
    uv_close((uv_handle_t *)&app.timer, NULL);
}

/* Called by any thread that posts. */
static void wake_loop(void *wake)
{
    uv_async_send(wake);
}

static void on_wake(uv_async_t *wake)
{
    (void)wake;
    fj_inbox_run(app.inbox, 0);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
    app.ticks++;
}

int main(void)
{
    static struct job jobs[JOBS];
    fj_inbox_options options = {.notify = wake_loop, .notify_arg = &app.wake};
    uv_loop_t *loop = uv_default_loop();

    if (uv_async_init(loop, &app.wake, on_wake) != 0 || uv_timer_init(loop, &app.timer) != 0)
        return 1;
    if (uv_timer_start(&app.timer, on_tick, 0, 1) != 0) return 1;
    if (fj_inbox_create(&options, &app.inbox) != FJ_OK) return 1;
    for (int i = 0; i < JOBS; i++) {
        jobs[i].n = 1 + i * 1000;
        fj_inbox_item_init(&jobs[i].item, finished, &jobs[i]);
        if (fj_execute(NULL, work, &jobs[i]) != FJ_OK) return 1;
    }

    uv_run(loop, UV_RUN_DEFAULT);
    printf("%d jobs, sum %.3f\n", JOBS - app.left, app.sum);
    return app.left != 0 || app.ticks == 0 || uv_loop_close(loop) != 0;
}
