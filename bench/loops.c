/* SPDX-License-Identifier: MIT */
/*
 * loops.c - an event loop that gives work to a pool and gets completions back
 *
 * The program is called as `loops RUNTIME WORKERS PART`. The runtimes are
 *
 *   fj         fj_execute() and fj_inbox_post_item(), with an epoll loop
 *   fj-future  fj_submit_call() and fj_future_notify(), with an epoll loop
 *   fj-uv      as fj, with a libuv loop that polls the descriptor
 *   fj-async   as fj, with a libuv loop and uv_async_send() as notifier
 *   uv         uv_queue_work()
 *
 * Each work adds 1 to its job. Its completion is a callback in the thread of the loop. The program
 * prints one line for each figure:
 *
 *     result RUNTIME NAME VALUE
 *
 * The figures of the part trip, with WORKERS in place of W
 *   trip_W_p50_us, trip_W_p99_us    one round trip: from the submission of a work until its
 *                                   callback; the loop submits the next work in the callback
 *   pause_W_p50_us, pause_W_p99_us  the same, but the loop sleeps for 1 ms between the trips
 * The figures of the parts 100000 and 1000000
 *   flight_W_N_ns                   time for one work, if the loop submits N works at once
 */
#define _GNU_SOURCE
#include <forkjoin/inbox.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#ifdef BENCH_UV
#include <uv.h>
#endif

enum { TRIPS = 20000, PAUSES = 500 };

/* The job of each runtime: what a program would allocate for it. */
struct post_job {
    fj_inbox_item item;
    long value;
};

#ifdef BENCH_UV
struct uv_job {
    uv_work_t work;
    long value;
};
#endif

/* How a runtime submits a work, and runs one turn of its loop. Completions call job_done(). */
struct runtime {
    const char *name;
    size_t job; /* size of a job */
    void (*start)(int workers);
    void (*submit)(void *job);
    void (*turn)(void);
    void (*stop)(void);
};

static const char *name;
static char *jobs;
static long done;
static fj_pool *pool;
static fj_inbox *inbox;
static int epoll_fd;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void must(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "loops: %s failed\n", what);
    exit(1);
}

static void job_done(long *value)
{
    must(*value == 1, "a work");
    *value = 0;
    done++;
}

/* ---- fj, fj-future: an epoll loop ---- */

static void pool_start(int workers)
{
    fj_pool_options o = {0};

    o.parallelism = workers;
    must(fj_pool_create(&pool, &o) == FJ_OK, "fj_pool_create");
}

static void fj_start(int workers)
{
    struct epoll_event e = {.events = EPOLLIN};

    pool_start(workers);
    must(fj_inbox_create(NULL, &inbox) == FJ_OK, "fj_inbox_create");
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    must(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fj_inbox_fd(inbox), &e) == 0, "epoll_ctl");
}

static void fj_stop(void)
{
    must(fj_inbox_destroy(inbox) == FJ_OK, "fj_inbox_destroy");
    must(fj_pool_destroy(pool) == FJ_OK, "fj_pool_destroy");
}

static void fj_turn(void)
{
    struct epoll_event e;

    if (epoll_wait(epoll_fd, &e, 1, -1) == 1) fj_inbox_run(inbox, 0);
}

static int fj_work(void *arg)
{
    struct post_job *j = arg;

    j->value++;
    return fj_inbox_post_item(inbox, &j->item);
}

static void fj_done(void *arg)
{
    job_done(&((struct post_job *)arg)->value);
}

static void fj_submit_job(void *job)
{
    struct post_job *j = job;

    fj_inbox_item_init(&j->item, fj_done, j);
    must(fj_execute(pool, fj_work, j) == FJ_OK, "fj_execute");
}

static int future_work(void *arg, void **result)
{
    (void)result;
    ++*(long *)arg;
    return FJ_OK;
}

static void future_done(fj_future *f, void *arg)
{
    (void)f;
    job_done(arg);
}

static void future_submit_job(void *job)
{
    fj_future *f;

    must(fj_submit_call(pool, future_work, job, &f) == FJ_OK, "fj_submit_call");
    must(fj_future_notify(f, inbox, future_done, job) == FJ_OK, "fj_future_notify");
    fj_future_unref(f);
}

/* ---- uv, fj-uv: a libuv loop ---- */

#ifdef BENCH_UV
static uv_async_t async;
static uv_poll_t poll_handle;

static void peer_start(int workers)
{
    char text[16];

    snprintf(text, sizeof text, "%d", workers);
    setenv("UV_THREADPOOL_SIZE", text, 1); /* libuv reads it at the first uv_queue_work() */
}

static void peer_stop(void)
{
}

static void peer_turn(void)
{
    uv_run(uv_default_loop(), UV_RUN_ONCE);
}

static void peer_work(uv_work_t *w)
{
    ((struct uv_job *)w)->value++;
}

static void peer_done(uv_work_t *w, int status)
{
    must(status == 0, "uv_queue_work");
    job_done(&((struct uv_job *)w)->value);
}

static void peer_submit_job(void *job)
{
    must(uv_queue_work(uv_default_loop(), job, peer_work, peer_done) == 0, "uv_queue_work");
}

static void async_wake(void *arg)
{
    uv_async_send(arg);
}

static void on_async(uv_async_t *handle)
{
    (void)handle;
    fj_inbox_run(inbox, 0);
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)handle, (void)events;
    must(status == 0, "uv_poll");
    fj_inbox_run(inbox, 0);
}

static void fj_uv_start(int workers)
{
    pool_start(workers);
    must(fj_inbox_create(NULL, &inbox) == FJ_OK, "fj_inbox_create");
    must(uv_poll_init(uv_default_loop(), &poll_handle, fj_inbox_fd(inbox)) == 0, "uv_poll_init");
    must(uv_poll_start(&poll_handle, UV_READABLE, on_readable) == 0, "uv_poll_start");
}

static void fj_async_start(int workers)
{
    fj_inbox_options o = {.notify = async_wake, .notify_arg = &async};

    pool_start(workers);
    must(uv_async_init(uv_default_loop(), &async, on_async) == 0, "uv_async_init");
    must(fj_inbox_create(&o, &inbox) == FJ_OK, "fj_inbox_create");
}
#endif

static const struct runtime runtimes[] = {
    {"fj", sizeof(struct post_job), fj_start, fj_submit_job, fj_turn, fj_stop},
    {"fj-future", sizeof(long), fj_start, future_submit_job, fj_turn, fj_stop},
#ifdef BENCH_UV
    {"fj-uv", sizeof(struct post_job), fj_uv_start, fj_submit_job, peer_turn, fj_stop},
    {"fj-async", sizeof(struct post_job), fj_async_start, fj_submit_job, peer_turn, fj_stop},
    {"uv", sizeof(struct uv_job), peer_start, peer_submit_job, peer_turn, peer_stop},
#endif
};

/* ---- Measuring ---- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void result(const char *figure, int workers, const char *end, double value)
{
    printf("result %s %s_%d_%s %.3f\n", name, figure, workers, end, value);
}

static void run_works(const struct runtime *r, long n)
{
    long before = done;

    for (long i = 0; i < n; i++) r->submit(jobs + (size_t)i * r->job);
    while (done < before + n) r->turn();
}

static void measure_trips(const struct runtime *r, const char *figure, int workers, int n, int us)
{
    int64_t *took = malloc((size_t)n * sizeof *took);

    for (int i = 0; i < n; i++) {
        if (us > 0) usleep((useconds_t)us);
        int64_t began = now_ns();
        run_works(r, 1);
        took[i] = now_ns() - began;
    }
    qsort(took, (size_t)n, sizeof *took, compare);
    result(figure, workers, "p50_us", (double)took[n / 2] / 1000);
    result(figure, workers, "p99_us", (double)took[n - n / 100 - 1] / 1000);
    free(took);
}

static void measure_flight(const struct runtime *r, int workers, long n)
{
    char end[32];

    int64_t began = now_ns();
    run_works(r, n);
    int64_t took = now_ns() - began;
    snprintf(end, sizeof end, "%ld_ns", n);
    result("flight", workers, end, (double)took / (double)n);
}

int main(int argc, char **argv)
{
    const struct runtime *r = NULL;

    for (size_t i = 0; argc == 4 && i < sizeof runtimes / sizeof runtimes[0]; i++)
        if (strcmp(argv[1], runtimes[i].name) == 0) r = &runtimes[i];
    if (r == NULL) {
        fprintf(stderr,
                "usage: loops fj|fj-future|fj-uv|fj-async|uv WORKERS trip|100000|1000000\n");
        return 2;
    }
    int workers = atoi(argv[2]);
    long n = strcmp(argv[3], "trip") == 0 ? 0 : atol(argv[3]);
    long size = n > 1000 ? n : 1000;
    name = r->name;
    jobs = calloc((size_t)size, r->job);
    must(jobs != NULL, "calloc");
    memset(jobs, 0, (size_t)size * r->job); /* so that no page fault is measured */
    r->start(workers);
    run_works(r, 1000);
    if (n == 0) {
        measure_trips(r, "trip", workers, TRIPS, 0);
        measure_trips(r, "pause", workers, PAUSES, 1000);
    } else {
        run_works(r, n); /* memory that grows to this size once is not measured */
        measure_flight(r, workers, n);
    }
    r->stop();
    free(jobs);
    return 0;
}
