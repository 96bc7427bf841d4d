/* SPDX-License-Identifier: MIT */
/*
 * 21_libuv_inbox.c - a libuv loop that gets results from the pool
 *
 * The loop polls the descriptor of the inbox with a uv_poll_t. Each job is one struct, which the
 * workers and the loop pass to each other, so that neither a submission nor a post allocates memory.
 * A timer of the loop ticks meanwhile: the loop is never blocked.
 */
#define _GNU_SOURCE
#include <forkjoin/inbox.h>
#include <stdio.h>
#include <uv.h>

#define JOBS 50

static struct {
    fj_inbox *inbox;
    uv_poll_t poll;
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

/* Runs in the thread of the loop. The last job closes the handles, which lets the loop end, and then
 * destroys the inbox. */
static void finished(void *arg)
{
    struct job *j = arg;

    app.sum += j->result;
    if (--app.left > 0) return;
    uv_close((uv_handle_t *)&app.poll, NULL);
    uv_close((uv_handle_t *)&app.timer, NULL);
    fj_inbox_destroy(app.inbox);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)poll, (void)status, (void)events;
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
    uv_loop_t *loop = uv_default_loop();

    if (fj_inbox_create(NULL, &app.inbox) != FJ_OK) return 1;
    if (uv_poll_init(loop, &app.poll, fj_inbox_fd(app.inbox)) != 0) return 1;
    if (uv_poll_start(&app.poll, UV_READABLE, on_readable) != 0) return 1;
    if (uv_timer_init(loop, &app.timer) != 0) return 1;
    if (uv_timer_start(&app.timer, on_tick, 0, 1) != 0) return 1;
    for (int i = 0; i < JOBS; i++) {
        jobs[i].n = 1 + i * 1000;
        fj_inbox_item_init(&jobs[i].item, finished, &jobs[i]);
        if (fj_execute(NULL, work, &jobs[i]) != FJ_OK) return 1;
    }

    uv_run(loop, UV_RUN_DEFAULT);
    printf("%d jobs, sum %.3f\n", JOBS - app.left, app.sum);
    return app.left != 0 || app.ticks == 0 || uv_loop_close(loop) != 0;
}
