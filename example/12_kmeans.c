/* SPDX-License-Identifier: MIT */
/*
 * 12_kmeans.c - k-means clustering: one reduction in each round
 *
 * Each round finds the nearest centre of every point and then moves each centre to the mean of its
 * points. The accumulator of fj_reduce() holds the sums of all centres.
 *
 * The coordinates are integers, so the sums do not depend on how the points are divided into
 * chunks. With floating-point numbers the last bits could differ from run to run.
 * fj_reduce_deterministic() has the same arguments and always adds in the same order.
 */
#include <forkjoin/algo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIMENSIONS = 8, CLUSTERS = 16, ROUNDS = 10, RANGE = 4096 };

struct point {
    int32_t x[DIMENSIONS];
};

struct cloud {
    size_t n;
    struct point *point;
    struct point centre[CLUSTERS];
};

struct sums {
    int64_t x[CLUSTERS][DIMENSIONS];
    int64_t count[CLUSTERS];
    int64_t distance; /* sum of the squared distances of all points from their centres */
};

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int32_t distance(const struct point *a, const struct point *b)
{
    int32_t sum = 0;

    for (int d = 0; d < DIMENSIONS; d++) sum += (a->x[d] - b->x[d]) * (a->x[d] - b->x[d]);
    return sum;
}

/* Adds each point i with begin <= i < end to the sums of its nearest centre. */
static int assign(size_t begin, size_t end, void *acc, void *arg)
{
    const struct cloud *c = arg;
    struct sums *s = acc;

    for (size_t i = begin; i < end; i++) {
        int nearest = 0;
        int32_t least = INT32_MAX;
        for (int k = 0; k < CLUSTERS; k++) {
            int32_t far = distance(&c->point[i], &c->centre[k]);
            if (far < least) {
                least = far;
                nearest = k;
            }
        }
        for (int d = 0; d < DIMENSIONS; d++) s->x[nearest][d] += c->point[i].x[d];
        s->count[nearest]++;
        s->distance += least;
    }
    return FJ_OK;
}

static int add_sums(void *left, const void *right, void *arg)
{
    struct sums *a = left;
    const struct sums *b = right;

    (void)arg;
    for (int k = 0; k < CLUSTERS; k++) {
        for (int d = 0; d < DIMENSIONS; d++) a->x[k][d] += b->x[k][d];
        a->count[k] += b->count[k];
    }
    a->distance += b->distance;
    return FJ_OK;
}

static void move_centres(struct cloud *c, const struct sums *s)
{
    for (int k = 0; k < CLUSTERS; k++)
        for (int d = 0; d < DIMENSIONS && s->count[k] != 0; d++)
            c->centre[k].x[d] = (int32_t)(s->x[k][d] / s->count[k]);
}

/* Runs all rounds, beginning with the first points as centres. Stores the sums of the last round in
 * *s. */
static int cluster(struct cloud *c, int in_parallel, struct sums *s)
{
    static const struct sums none;
    int err = FJ_OK;

    memcpy(c->centre, c->point, sizeof c->centre);
    for (int round = 0; round < ROUNDS && err == FJ_OK; round++) {
        *s = none;
        err = in_parallel ? fj_reduce(0, c->n, assign, add_sums, &none, sizeof none, c, s, NULL)
                          : assign(0, c->n, s, c);
        if (err == FJ_OK) move_centres(c, s);
    }
    return err;
}

/* Generates points whose coordinates are concentrated around 16 values. It generates the same
 * points in every run. */
static void cloud_make(struct cloud *c, size_t n)
{
    uint64_t random = 88172645463325252u;

    c->n = n;
    c->point = malloc(n * sizeof *c->point);
    if (c->point == NULL) exit(1);
    for (size_t i = 0; i < n; i++)
        for (int d = 0; d < DIMENSIONS; d++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            int32_t middle = (int32_t)((random >> 60) + (uint64_t)d * 3) % 16 * (RANGE / 16);
            int32_t spread = (int32_t)(random >> 40 & 255) + (int32_t)(random >> 32 & 255);
            c->point[i].x[d] = (middle + spread) % RANGE;
        }
}

int main(int argc, char **argv)
{
    int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    struct sums one, all;
    struct cloud c;

    cloud_make(&c, quick ? 20000 : 600000);
    double start = seconds();
    int err = cluster(&c, 0, &one);
    double middle = seconds();
    if (err == FJ_OK) err = cluster(&c, 1, &all);
    double serial = middle - start, parallel = seconds() - middle;
    if (err != FJ_OK) {
        fprintf(stderr, "k-means: %s\n", fj_strerror(err));
        return 1;
    }

    int same = memcmp(&one, &all, sizeof one) == 0;
    printf("%zu points of %d dimensions, %d clusters, %d rounds, mean squared distance %lld\n", c.n,
           DIMENSIONS, CLUSTERS, ROUNDS, (long long)(all.distance / (int64_t)c.n));
    printf("serial %.1f ms, parallel %.1f ms, speedup %.2f\n", serial * 1e3, parallel * 1e3,
           serial / parallel);
    if (!same) fprintf(stderr, "the clusters differ\n");
    free(c.point);
    return same ? 0 : 1;
}
