/* SPDX-License-Identifier: MIT */
/*
 * 22_glib_inbox.c - a GLib main loop that gets results from the pool, as a GTK program would
 *
 * The main loop polls the descriptor of the inbox as a GLib source. Each turn runs at most 10
 * callbacks, so that other sources, such as the drawing of a window, get their turn too. The
 * descriptor stays readable while callbacks are left.
 */
#include <forkjoin/inbox.h>
#include <glib-unix.h>
#include <stdio.h>

#define TILES 100
#define SIZE 32

struct tile {
    fj_future future; /* first */
    int index, inside;
};

static struct {
    fj_inbox *inbox;
    GMainLoop *loop;
    struct tile tile[TILES];
    int done, inside, most;
} app;

/* Runs on a worker: counts the points of a tile that belong to the Mandelbrot set. */
static int tile_run(fj_task *task)
{
    struct tile *t = (struct tile *)task;

    for (int k = 0; k < SIZE * SIZE; k++) {
        double x0 = -2 + 0.25 * (t->index % 10 + (double)(k % SIZE) / SIZE);
        double y0 = -1.25 + 0.25 * (t->index / 10 + (double)(k / SIZE) / SIZE), x = 0, y = 0;
        int steps = 0;
        for (; steps < 200 && x * x + y * y < 4; steps++) {
            double next = x * x - y * y + x0;
            y = 2 * x * y + y0;
            x = next;
        }
        t->inside += steps == 200;
    }
    return FJ_OK;
}

/* Runs in the thread of the main loop. A program with a window would draw the tile here. */
static void tile_done(fj_future *f, void *arg)
{
    struct tile *t = arg;

    fj_future_fini(f);
    app.inside += t->inside;
    if (++app.done == TILES) g_main_loop_quit(app.loop);
}

static gboolean on_inbox(gint fd, GIOCondition condition, gpointer arg)
{
    (void)fd, (void)condition, (void)arg;
    int n = fj_inbox_run(app.inbox, 10);
    if (n > app.most) app.most = n;
    return G_SOURCE_CONTINUE;
}

int main(void)
{
    if (fj_inbox_create(NULL, &app.inbox) != FJ_OK) return 1;
    app.loop = g_main_loop_new(NULL, FALSE);
    guint source = g_unix_fd_add(fj_inbox_fd(app.inbox), G_IO_IN, on_inbox, NULL);
    for (int i = 0; i < TILES; i++) {
        struct tile *t = &app.tile[i];
        t->index = i;
        fj_future_init(&t->future, tile_run);
        if (fj_future_notify(&t->future, app.inbox, tile_done, t) != FJ_OK) return 1;
        if (fj_future_submit(NULL, &t->future) != FJ_OK) return 1;
    }

    g_main_loop_run(app.loop);
    printf("%d tiles, %d points inside\n", app.done, app.inside);
    g_source_remove(source);
    fj_inbox_destroy(app.inbox);
    g_main_loop_unref(app.loop);
    return app.done != TILES || app.most > 10 || app.inside < 24000 || app.inside > 26000;
}
