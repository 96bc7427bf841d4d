/* SPDX-License-Identifier: MIT */
/*
 * listen.c - registering the functions that are called when a future is done
 *
 * A listener is a function that was registered for a future. The listeners of a future form a
 * circular list. The member `listeners` of the future points to the listener that was registered
 * last, and that one points to the first. The member has no value until the first listener is
 * registered, and it shares its memory with `external`, the result of a resolving thread. Three
 * bits of the state word (future.c) say what it contains:
 *
 *   LISTING    a thread adds a listener to the list. The thread runs no other code meanwhile. No
 *              other thread adds a listener, sets COMPLETING or sets DONE while the bit is set
 *   LISTENED   the list is not empty, or was not empty when the future became done
 *   CALLED     with DONE and LISTENED: all listeners have returned
 *
 *     adding thread                          thread that sets DONE (future.c)
 *     1 CAS: sets LISTING; not if DONE or    1 sets DONE, or COMPLETING and then DONE; waits first
 *       COMPLETING is set: it calls fn() or    while LISTING is set
 *       waits for DONE                       2 if the old word had LISTENED: takes the list
 *     2 adds the listener to the list        3 calls the listeners
 *     3 xor: clears LISTING, sets LISTENED   4 sets CALLED and wakes fj_future_fini()
 *
 * A completer may be COMPLETING for a long time, while its on_error runs. Then REPORTED is set too,
 * a listener may be added, and the thread that sets DONE waits while LISTING is set. The list stays
 * in `listeners` until DONE. In all other cases the resolving thread takes the list as soon as it
 * has set COMPLETING, before it writes `external`.
 *
 * The memory of the future is in use until CALLED is set: fj_future_fini() waits for CALLED, and a
 * resolving thread has a reference to an allocated future. fj_future_set_release_fn() promises one
 * call after the last access. If the finishing thread sets RELEASED while a resolving thread is
 * between DONE and CALLED, the resolving thread calls the release function. The state word decides
 * which of the two threads comes last. listeners.c calls the listeners.
 *
 * Edges             from                                 to                           carries
 *   future.listen   acq_rel xor, listen_add()            acq_rel CAS, future.c and    the list
 *                                                        listen_lock()
 *
 * Model: test/model/listen.pml.
 */

#include "future/future.h"
#include "plat/wait.h"

/* Returns whether the state word s allows a thread to set LISTING: no other thread has set it, and
 * no thread has taken the list or is about to. */
static bool listen_is_open(uint32_t s)
{
    return (s & FJI_LISTING) == 0 && (s & (FJI_COMPLETING | FJI_REPORTED)) != FJI_COMPLETING;
}

/* Sets LISTING in the state word of f and returns true, with the word before in *old. Returns false
 * if f is done, also if only the calling thread sees it as done (fji_future_is_held()). Waits while
 * another thread adds a listener or resolves f, but not while the on_error of f runs. */
static bool listen_lock(fj_future *f, uint32_t *old)
{
    uint32_t turn = 0;

    for (;;) {
        uint32_t s = fji_future_word(f);
        if ((s & FJI_DONE) != 0) return false;
        *old = s;
        /* [future.listen] acquire <- release in listen_add(): the list. */
        if (listen_is_open(s) && fji_cas_acq_rel_32(&f->task.state, &s, s | FJI_LISTING))
            return true;
        fji_spin(&turn, 1, 16);
    }
}

/* Adds l to the listeners of f and returns true. Returns false if f is done. */
static bool listen_add(fj_future *f, fj_listener *l)
{
    uint32_t old;

    if (!listen_lock(f, &old)) return false;
    bool first = (old & FJI_LISTENED) == 0;
    if (first) {
        l->next = l;
    } else {
        l->next = f->listeners->next;
        f->listeners->next = l;
    }
    f->listeners = l;
    /* [future.listen] release -> acquire in listen_lock(), and in the operations of future.c that
     * set COMPLETING or DONE: the list. */
    fji_xor_acq_rel(&f->task.state, first ? FJI_LISTING | FJI_LISTENED : FJI_LISTING);
    return true;
}

static bool listen_ok(const fj_future *f, fj_done_fn *fn)
{
    return f != NULL && fn != NULL && !fji_completer_is_child(f);
}

int fj_future_listen(fj_future *f, fj_listener *l, fj_done_fn *fn, void *arg)
{
    if (!listen_ok(f, fn) || l == NULL) return FJ_EINVAL;
    *l = (fj_listener){.fn = fn, .arg = arg, .future = f};
    if (!listen_add(f, l)) fn(f, arg);
    return FJ_OK;
}

int fj_future_on_done(fj_future *f, fj_done_fn *fn, void *arg)
{
    if (!listen_ok(f, fn)) return FJ_EINVAL;
    if (!fj_future_is_done(f)) {
        fj_listener *l = fji_plat_alloc(sizeof *l);
        if (l == NULL) return FJ_ENOMEM;
        *l = (fj_listener){.fn = fn, .arg = arg, .future = f, .flags = FJI_LISTENER_ALLOCATED};
        if (listen_add(f, l)) return FJ_OK;
        fji_plat_free(l);
    }
    fn(f, arg);
    return FJ_OK;
}
