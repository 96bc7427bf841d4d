/* SPDX-License-Identifier: MIT */
/*
 * gather.c - a future that follows from several other futures: all of them, or one
 *
 * The derived future is the first member of a struct gather, which also contains a listener for each
 * input. `missing` is the number of inputs whose listener was not called yet. Each listener writes
 * the outcome of its input, and then decrements `missing`. The listener that finds 1 is the last
 * one: it decides the derived future and drops the reference that the listeners share.
 *
 *   all of   listener i writes slot[i].code. The last one reads the codes of all slots.
 *   any of   the listener of an input that has succeeded completes the derived future at once, and
 *            the first such call decides. The listener of an input that has failed stores its code
 *            in `failure`, so the code that was stored last stays. The last listener makes the
 *            derived future fail with it, which has no effect if the future is done.
 *
 * Edges            from                             to                           carries
 *   gather.missing acq_rel add, gather_was_last()   the same, the last listener  codes, `failure`
 */
#include <forkjoin/then.h>

#include "compose/inputs.h"
#include "plat/atomic.h"

struct gather_slot {
    fj_listener listener;
    struct gather *gather;
    int code;
};

struct gather {
    fj_future derived; /* the first member */
    size_t n;
    size_t missing;
    int failure; /* any of: the code of the last failure */
    struct gather_slot slot[];
};

/* Called by a listener when it has written its outcome. Returns true in the last listener. */
static bool gather_was_last(struct gather *g)
{
    /* [gather.missing] release -> acquire in the last listener: the outcome that this listener has
     * written.
     * [gather.missing] both ends are here. */
    return fji_add_acq_rel(&g->missing, (size_t)-1) == 1;
}

static void gather_decide(struct gather *g, int code)
{
    if (code == FJ_OK)
        (void)fj_future_complete(&g->derived, NULL);
    else
        (void)fj_future_fail(&g->derived, code); /* FJ_ECANCELED: a cancel */
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void all_ready(fj_future *f, void *arg)
{
    struct gather_slot *s = arg;
    struct gather *g = s->gather;
    int code = FJ_OK;

    s->code = fj_future_error(f);
    if (!gather_was_last(g)) return;
    for (size_t i = 0; i < g->n && code == FJ_OK; i++) code = g->slot[i].code;
    gather_decide(g, code);
    fj_future_unref(&g->derived);
}

/* ---- One of them ----------------------------------------------------------------------------- */

static void any_ready(fj_future *f, void *arg)
{
    struct gather_slot *s = arg;
    struct gather *g = s->gather;
    int code = fj_future_error(f);

    if (code == FJ_OK)
        (void)fj_future_complete(&g->derived, (void *)(uintptr_t)(s - g->slot));
    else if (code != FJ_ECANCELED)
        fji_store_relaxed(&g->failure, code); /* relaxed: `missing` publishes it */
    if (!gather_was_last(g)) return;
    /* relaxed: all stores happen before this load, so it reads the last one. */
    gather_decide(g, fji_load_relaxed(&g->failure));
    fj_future_unref(&g->derived);
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* Returns whether f is an array of n futures that can have listeners. */
static bool inputs_ok(fj_future *const *f, size_t n)
{
    if (n != 0 && f == NULL) return false;
    if (n > (SIZE_MAX / 2 - sizeof(struct gather)) / sizeof(struct gather_slot)) return false;
    for (size_t i = 0; i < n; i++) {
        if (!fji_input_ok(f[i])) return false;
    }
    return true;
}

/* Makes a derived future of n inputs, each with the listener `ready`, and stores it in *derived. n
 * is not 0. `failure` is the code of the derived future if no listener stores another one. Returns
 * FJ_OK or FJ_ENOMEM. */
static int gather_make(fj_future *const *f, size_t n, fj_done_fn *ready, int failure,
                       fj_future **derived)
{
    fj_future *made;
    int err = fj_future_new(sizeof(struct gather) + n * sizeof(struct gather_slot), NULL, &made);

    if (err != FJ_OK) return err;
    struct gather *g = (struct gather *)made;
    g->n = n;
    g->missing = n;
    g->failure = failure;
    (void)fj_future_ref(made); /* for the listeners */
    *derived = made;
    for (size_t i = 0; i < n; i++) {
        struct gather_slot *s = &g->slot[i];
        s->gather = g;
        int ok = fj_future_listen(f[i], &s->listener, ready, s);
        (void)ok; /* FJ_OK: see fji_input_ok() */
    }
    return FJ_OK;
}

int fj_future_all_of(fj_future *const *f, size_t n, fj_future **all)
{
    if (all == NULL || !inputs_ok(f, n)) return FJ_EINVAL;
    if (n != 0) return gather_make(f, n, all_ready, FJ_OK, all);
    int err = fj_future_new(sizeof(fj_future), NULL, all);
    if (err == FJ_OK) (void)fj_future_complete(*all, NULL);
    return err;
}

int fj_future_any_of(fj_future *const *f, size_t n, fj_future **any)
{
    if (any == NULL || n == 0 || !inputs_ok(f, n)) return FJ_EINVAL;
    return gather_make(f, n, any_ready, FJ_ECANCELED, any);
}
