/* SPDX-License-Identifier: MIT */
/*
 * 18_serial_queue.c - a lane of width 1: actions that share data need no lock
 *
 * Tasks of a parallel loop report what they find to a journal. The journal is a plain struct. Its
 * lane runs one action at a time, so the actions use the struct without a lock. Each action sees
 * what the one before it did, although different workers run them.
 */
#include <forkjoin/algo.h>
#include <forkjoin/lane.h>
#include <stdint.h>
#include <stdio.h>

static struct {
    fj_lane *lane;
    long entries, sum; /* only actions of the lane use them */
} journal;

static int journal_add(void *arg)
{
    journal.entries++;
    journal.sum += (long)(intptr_t)arg;
    return FJ_OK;
}

static int journal_total(void *arg, void **result)
{
    (void)arg;
    *result = (void *)(intptr_t)journal.sum;
    return FJ_OK;
}

/* Reports the multiples of 1000 in a part of the range. */
static int report(size_t begin, size_t end, void *arg)
{
    int err = FJ_OK;

    (void)arg;
    for (size_t i = begin; i < end && err == FJ_OK; i++)
        if (i % 1000 == 0) err = fj_lane_execute(journal.lane, journal_add, (void *)i);
    return err;
}

int main(void)
{
    fj_future *total;
    void *sum;

    if (fj_lane_create(&journal.lane, &(fj_lane_options){.width = 1}) != FJ_OK) return 1;
    if (fj_for(0, 1000000, report, NULL, NULL) != FJ_OK) return 1;
    /* The lane keeps the order: the total comes after all entries. */
    if (fj_lane_call(journal.lane, journal_total, NULL, &total) != FJ_OK) return 1;
    if (fj_future_get(total, FJ_FOREVER, &sum) != FJ_OK) return 1;
    fj_future_unref(total);
    printf("%ld entries, sum %ld\n", journal.entries, (long)(intptr_t)sum);
    fj_lane_destroy(journal.lane);
    return journal.entries == 1000 && (intptr_t)sum == 499500000 ? 0 : 1;
}
