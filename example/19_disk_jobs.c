/* SPDX-License-Identifier: MIT */
/*
 * 19_disk_jobs.c - lanes: at most 3 disk jobs at a time, a bounded queue, and a request that
 * overtakes background work
 *
 * The disk lane runs at most 3 jobs at the same time. A job sleeps as if it waited for the disk, and
 * still counts. At most 10 jobs wait; a producer that is faster waits until there is room. The index
 * lane has background priority: workers run its actions when no other work waits. A request goes
 * through a lane of high priority, so it begins before the rest of the index, although it came last.
 */
#include <forkjoin/block.h>
#include <forkjoin/lane.h>
#include <stdatomic.h>
#include <stdio.h>

enum { JOBS = 60, PARTS = 200 };

static atomic_int jobs, reading, most_reading, parts, parts_at_request;

static int disk_job(void *arg)
{
    int now = atomic_fetch_add(&reading, 1) + 1, most = atomic_load(&most_reading);

    (void)arg;
    while (now > most && !atomic_compare_exchange_weak(&most_reading, &most, now)) {}
    int err = fj_sleep_ns(100000);
    atomic_fetch_sub(&reading, 1);
    atomic_fetch_add(&jobs, 1);
    return err;
}

/* The first part occupies the only worker until the request is there. */
static int index_part(void *arg)
{
    atomic_int *request_sent = arg;

    while (atomic_load(request_sent) == 0) {}
    atomic_fetch_add(&parts, 1);
    return FJ_OK;
}

static int request(void *arg)
{
    (void)arg;
    atomic_store(&parts_at_request, atomic_load(&parts));
    return FJ_OK;
}

static int run_disk_jobs(fj_pool *pool)
{
    fj_lane *disk = NULL;
    int err = fj_lane_create(
        &disk, &(fj_lane_options){.pool = pool, .width = 3, .capacity = 10, .full = FJ_LANE_WAITS});

    for (int i = 0; i < JOBS && err == FJ_OK; i++) err = fj_lane_execute(disk, disk_job, NULL);
    fj_lane_destroy(disk); /* runs the jobs that wait */
    return err;
}

static int run_index(fj_pool *pool)
{
    fj_lane *index = NULL, *urgent = NULL;
    atomic_int request_sent = 0;
    int err;

    err = fj_lane_create(&index,
                         &(fj_lane_options){.pool = pool, .priority = FJ_PRIORITY_BACKGROUND});
    if (err == FJ_OK)
        err = fj_lane_create(&urgent,
                             &(fj_lane_options){.pool = pool, .priority = FJ_PRIORITY_HIGH});
    for (int i = 0; i < PARTS && err == FJ_OK; i++)
        err = fj_lane_execute(index, index_part, &request_sent);
    if (err == FJ_OK) err = fj_lane_execute(urgent, request, NULL);
    atomic_store(&request_sent, 1);
    fj_lane_destroy(index);
    fj_lane_destroy(urgent);
    return err;
}

int main(void)
{
    fj_pool *pool;

    if (fj_pool_create(&pool, &(fj_pool_options){.parallelism = 1}) != FJ_OK) return 1;
    if (run_disk_jobs(pool) != FJ_OK || run_index(pool) != FJ_OK) return 1;
    fj_pool_destroy(pool);
    printf("%d disk jobs, at most %d at a time\n", jobs, most_reading);
    printf("%d parts of the index, %s before the request\n", parts,
           parts_at_request <= 1 ? "at most one" : "several");
    return jobs == JOBS && most_reading <= 3 && parts == PARTS && parts_at_request <= 1 ? 0 : 1;
}
