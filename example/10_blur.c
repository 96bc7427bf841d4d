/* SPDX-License-Identifier: MIT */
/*
 * 10_blur.c - a blur of an image: loops over rows and over tiles
 *
 * The blur has two passes. The first pass blurs along the rows and writes to a second image;
 * fj_for() divides it into ranges of rows. The second pass blurs along the columns; fj_for_2d()
 * divides it into tiles, so that the rows that a tile needs stay in the cache. The bodies are plain
 * loops. The serial program calls each of them once, for the whole image.
 */
#include <forkjoin/algo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RADIUS = 8, TAPS = 2 * RADIUS + 1 };

struct image {
    size_t rows, columns;
    float *pixel;
};

struct blur {
    struct image in, between, out;
    float weight[TAPS];
};

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the index of the pixel for one tap. Outside the image, the pixel at the edge is used. */
static size_t inside(size_t at, size_t tap, size_t n)
{
    size_t k = at + tap;
    return k < RADIUS ? 0 : k - RADIUS >= n ? n - 1 : k - RADIUS;
}

static int blur_rows(size_t begin, size_t end, void *arg)
{
    const struct blur *b = arg;
    size_t columns = b->in.columns;

    for (size_t r = begin; r < end; r++) {
        const float *in = b->in.pixel + r * columns;
        float *out = b->between.pixel + r * columns;
        for (size_t c = 0; c < columns; c++) {
            float sum = 0;
            if (c >= RADIUS && c + RADIUS < columns)
                for (size_t k = 0; k < TAPS; k++) sum += b->weight[k] * in[c - RADIUS + k];
            else
                for (size_t k = 0; k < TAPS; k++) sum += b->weight[k] * in[inside(c, k, columns)];
            out[c] = sum;
        }
    }
    return FJ_OK;
}

static int blur_columns(size_t r0, size_t r1, size_t c0, size_t c1, void *arg)
{
    const struct blur *b = arg;
    size_t columns = b->in.columns;

    for (size_t r = r0; r < r1; r++) {
        float *out = b->out.pixel + r * columns;
        for (size_t c = c0; c < c1; c++) out[c] = 0;
        for (size_t k = 0; k < TAPS; k++) {
            const float *in = b->between.pixel + inside(r, k, b->in.rows) * columns;
            for (size_t c = c0; c < c1; c++) out[c] += b->weight[k] * in[c];
        }
    }
    return FJ_OK;
}

static int blur_serial(struct blur *b)
{
    int err = blur_rows(0, b->in.rows, b);
    return err != FJ_OK ? err : blur_columns(0, b->in.rows, 0, b->in.columns, b);
}

static int blur_parallel(struct blur *b)
{
    int err = fj_for(0, b->in.rows, blur_rows, b, NULL);
    return err != FJ_OK ? err : fj_for_2d(b->in.rows, b->in.columns, blur_columns, b, NULL);
}

/* Returns the best time of `runs` runs, or -1 after an error. */
static double best_of(int runs, int (*blur)(struct blur *b), struct blur *b)
{
    double best = 1e9;

    for (int i = 0; i < runs; i++) {
        double start = seconds();
        int err = blur(b);
        double took = seconds() - start;
        if (err != FJ_OK) {
            fprintf(stderr, "blur: %s\n", fj_strerror(err));
            return -1;
        }
        if (took < best) best = took;
    }
    return best;
}

static struct image image_new(size_t rows, size_t columns)
{
    struct image i = {rows, columns, malloc(rows * columns * sizeof(float))};

    if (i.pixel == NULL) exit(1);
    return i;
}

/* Draws rings and a chess board. */
static void image_draw(const struct image *i)
{
    for (size_t r = 0; r < i->rows; r++)
        for (size_t c = 0; c < i->columns; c++) {
            size_t ring = (r * r + c * c) / 65536 % 2, square = (r / 32 + c / 32) % 2;
            i->pixel[r * i->columns + c] = (float)ring + (float)square / 2;
        }
}

/* The weights are a row of Pascal's triangle, which is close to a Gaussian curve. */
static void weights_set(float weight[TAPS])
{
    float sum = 0, w = 1;

    for (int k = 0; k < TAPS; k++) {
        sum += weight[k] = w;
        w = w * (float)(TAPS - 1 - k) / (float)(k + 1);
    }
    for (int k = 0; k < TAPS; k++) weight[k] /= sum;
}

int main(int argc, char **argv)
{
    int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    size_t rows = quick ? 480 : 3072, columns = quick ? 640 : 4096;
    struct blur one = {
        image_new(rows, columns), image_new(rows, columns), image_new(rows, columns), {0}};

    weights_set(one.weight);
    image_draw(&one.in);
    struct blur all = one;
    all.out = image_new(rows, columns);

    double serial = best_of(3, blur_serial, &one);
    double parallel = best_of(3, blur_parallel, &all);
    int same = memcmp(one.out.pixel, all.out.pixel, rows * columns * sizeof(float)) == 0;

    printf("%zu x %zu pixels, %d taps: serial %.1f ms, parallel %.1f ms, speedup %.2f\n", columns,
           rows, TAPS, serial * 1e3, parallel * 1e3, serial / parallel);
    if (!same) fprintf(stderr, "the images differ\n");
    free(one.in.pixel);
    free(one.between.pixel);
    free(one.out.pixel);
    free(all.out.pixel);
    return same && serial >= 0 && parallel >= 0 ? 0 : 1;
}
