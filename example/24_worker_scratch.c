/* SPDX-License-Identifier: MIT */
/*
 * 24_worker_scratch.c - scratch memory for each worker
 *
 * The edit distance of two words needs a row of numbers as scratch memory. Each worker gets one row
 * for all its calls, made on first use, and also keeps its own minimum, so that the workers share
 * nothing while they compute. At the end the minima are folded into one.
 */
#include <forkjoin/algo.h>
#include <forkjoin/worker_local.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 600, LENGTH = 12 };

static char word[WORDS][LENGTH + 1];

/* ---- What each worker has -------------------------------------------------------------------- */

struct scratch {
    int *row;    /* LENGTH + 1 numbers */
    long sum;    /* of all distances that this worker has computed */
    int minimum; /* the smallest of them */
};

static int scratch_make(void *value, void *arg)
{
    struct scratch *s = value;

    (void)arg;
    s->minimum = LENGTH;
    s->row = malloc((LENGTH + 1) * sizeof *s->row);
    return s->row != NULL ? FJ_OK : FJ_ENOMEM;
}

static void scratch_drop(void *value, void *arg)
{
    (void)arg;
    free(((struct scratch *)value)->row);
}

static int scratch_fold(void *value, void *arg)
{
    struct scratch *s = value, *all = arg;

    all->sum += s->sum;
    if (s->minimum < all->minimum) all->minimum = s->minimum;
    return FJ_OK;
}

/* ---- The work -------------------------------------------------------------------------------- */

static int distance(const char *a, const char *b, int *row)
{
    for (int j = 0; j <= LENGTH; j++) row[j] = j;
    for (int i = 1; i <= LENGTH; i++) {
        int diagonal = row[0]++;
        for (int j = 1; j <= LENGTH; j++) {
            int replace = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int insert = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = replace < insert ? replace : insert;
        }
    }
    return row[LENGTH];
}

/* Adds the distances of word i to all words before it. */
static void compare(size_t i, struct scratch *s)
{
    for (size_t k = 0; k < i; k++) {
        int d = distance(word[i], word[k], s->row);
        s->sum += d;
        if (d < s->minimum) s->minimum = d;
    }
}

static int compare_chunk(size_t begin, size_t end, void *arg)
{
    struct scratch *s = fj_local_get(arg); /* the scratch memory of this worker */

    if (s == NULL) return FJ_ENOMEM;
    for (size_t i = begin; i < end; i++) compare(i, s);
    return FJ_OK;
}

int main(void)
{
    fj_local_options o = {
        .bytes = sizeof(struct scratch), .make = scratch_make, .drop = scratch_drop};
    struct scratch all = {.minimum = LENGTH}, serial = {0};
    unsigned seed = 1;
    fj_local local;

    for (int i = 0; i < WORDS; i++)
        for (int k = 0; k < LENGTH; k++) {
            seed = seed * 1103515245u + 12345u;
            word[i][k] = (char)('a' + (seed >> 16) % 4);
        }

    int err = fj_local_init(&local, &o);
    if (err != FJ_OK) return 1;
    err = fj_for(0, WORDS, compare_chunk, &local, NULL);
    if (err == FJ_OK) err = fj_local_each(&local, scratch_fold, &all);
    if (fj_local_fini(&local) != FJ_OK || err != FJ_OK) return 1;
    printf("sum of the distances %ld, smallest distance %d\n", all.sum, all.minimum);

    if (scratch_make(&serial, NULL) != FJ_OK) return 1;
    for (size_t i = 0; i < WORDS; i++) compare(i, &serial);
    scratch_drop(&serial, NULL);
    return serial.sum == all.sum && serial.minimum == all.minimum ? 0 : 1;
}
