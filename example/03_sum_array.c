/* SPDX-License-Identifier: MIT */
/*
 * 03_sum_array.c - a parallel loop: one task for each chunk of an array
 *
 * fj_invoke_array() runs an array of structs whose first member is an fj_task, and waits for all of
 * them. There are many more chunks than workers, so that a slow worker does not delay the others.
 */
#include <forkjoin.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 4 * 1000 * 1000, CHUNKS = 64 };

struct chunk {
    fj_task task;
    const int *from, *to;
    long long sum;
};

static int chunk_run(fj_task *t)
{
    struct chunk *c = (struct chunk *)t;
    long long sum = 0;

    for (const int *p = c->from; p < c->to; p++) sum += *p;
    c->sum = sum; /* one write per chunk: the next chunk may be on the same cache line */
    return FJ_OK;
}

int main(void)
{
    struct chunk chunk[CHUNKS];
    long long sum = 0;
    int *items = malloc(ITEMS * sizeof *items);

    if (items == NULL) return 1;
    for (int i = 0; i < ITEMS; i++) items[i] = i;
    for (int i = 0; i < CHUNKS; i++) {
        chunk[i].from = items + (size_t)ITEMS * (size_t)i / CHUNKS;
        chunk[i].to = items + (size_t)ITEMS * (size_t)(i + 1) / CHUNKS;
        fj_task_init(&chunk[i].task, chunk_run);
    }

    int err = fj_invoke_array(chunk, CHUNKS, sizeof chunk[0]);
    free(items);
    if (err != FJ_OK) {
        fprintf(stderr, "sum: %s\n", fj_strerror(err));
        return 1;
    }
    for (int i = 0; i < CHUNKS; i++) sum += chunk[i].sum;
    printf("sum of 0 .. %d = %lld\n", ITEMS - 1, sum);
    return sum == (long long)ITEMS * (ITEMS - 1) / 2 ? 0 : 1;
}
