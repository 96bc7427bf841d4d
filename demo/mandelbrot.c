/* SPDX-License-Identifier: MIT */
/*
 * mandelbrot.c - a picture; a task halves its range of rows until at most four are left
 *
 * The cost of the rows differs widely. A worker that has finished cheap rows steals tasks from a
 * worker that draws expensive ones.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"
#include "png.h"

enum { LIMIT = 2000, ROWS_OF_A_LEAF = 4 };

/* The picture shows a small region at the border of the set, between its two largest discs. */
static const double centre_x = -0.7436, centre_y = 0.1318, span_x = 0.0092;

static struct picture {
    int width, height;
    uint8_t *serial, *parallel;
} picture;

/* Returns 0 for a point in the set, otherwise 1 to 255, by the number of iterations after which the
 * point escapes. */
static uint8_t colour_of(double cx, double cy)
{
    double x = 0, y = 0, xx = 0, yy = 0;
    int n = 0;

    while (xx + yy <= 256 && n < LIMIT) {
        y = 2 * x * y + cy;
        x = xx - yy + cx;
        xx = x * x;
        yy = y * y;
        n++;
    }
    if (n == LIMIT) return 0;
    /* Adds a fraction to the number of iterations, so that the colours change smoothly. */
    double escape = n + 1 - log2(log2(xx + yy) / 2);
    return (uint8_t)(1 + (int)(log2(escape + 1) * 62) % 255);
}

static void draw_rows(uint8_t *pixels, int from, int to)
{
    double step = span_x / picture.width;

    for (int row = from; row < to; row++) {
        double cy = centre_y - step * (row - picture.height / 2);
        uint8_t *p = pixels + (size_t)row * (size_t)picture.width;
        for (int col = 0; col < picture.width; col++)
            *p++ = colour_of(centre_x + step * (col - picture.width / 2), cy);
        demo_step(1);
    }
}

FJ_VOID_TASK(draw, uint8_t *, pixels, int, from, int, to)
{
    if (to - from <= ROWS_OF_A_LEAF) {
        draw_rows(pixels, from, to);
        return;
    }
    int half = from + (to - from) / 2;
    draw_task upper;
    draw_fork(FJ, &upper, pixels, from, half);
    draw_call(FJ, pixels, half, to);
    draw_join(FJ, &upper);
}

static uint64_t prepare(const demo_options *o, char *what, size_t cap)
{
    picture.width = o->quick ? 1200 : 2400;
    picture.height = o->quick ? 800 : 1600;
    size_t pixels = (size_t)picture.width * (size_t)picture.height;
    picture.serial = demo_alloc(pixels, 1);
    picture.parallel = demo_alloc(pixels, 1);
    /* Touches all pages, so that no timed run has page faults. */
    memset(picture.serial, 0, pixels);
    memset(picture.parallel, 0, pixels);
    snprintf(what, cap, "%d x %d", picture.width, picture.height);
    return (uint64_t)picture.height;
}

static void run_serial(void)
{
    draw_rows(picture.serial, 0, picture.height);
}

static int run_parallel(void)
{
    return draw_invoke(NULL, picture.parallel, 0, picture.height);
}

static uint8_t wave(double x, double phase)
{
    return (uint8_t)(127.5 - 127.5 * cos(6.283185307179586 * (x + phase)));
}

static bool save(const demo_options *o, char *note, size_t cap)
{
    png_colour palette[256] = {{0, 0, 0}};
    char path[4096];

    for (int i = 1; i < 256; i++) {
        double x = (i - 1) / 255.0;
        palette[i] = (png_colour){wave(x, 0.20), wave(x, 0.10), wave(x, -0.02)};
    }
    int n = snprintf(path, sizeof path, "%s/mandelbrot.png", o->out);
    if (n >= (int)sizeof path) return false;
    bool written = png_write(path, picture.parallel, (uint32_t)picture.width,
                             (uint32_t)picture.height, palette);
    snprintf(note, cap, "%s %s", written ? "wrote" : "cannot write", path);
    return written;
}

static bool finish(const demo_options *o, char *note, size_t cap)
{
    size_t pixels = (size_t)picture.width * (size_t)picture.height;
    bool equal = memcmp(picture.serial, picture.parallel, pixels) == 0;

    equal = save(o, note, cap) && equal;
    free(picture.serial);
    free(picture.parallel);
    return equal;
}

const demo demo_mandelbrot = {"mandelbrot", prepare, run_serial, run_parallel, finish};
