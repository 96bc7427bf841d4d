/* SPDX-License-Identifier: MIT */
/*
 * safepoint.h - safepoints: where a worker takes part in a broadcast
 *
 * safepoint.c explains the protocol. forkjoin/every.h has the public functions.
 */
#ifndef FJI_SAFEPOINT_H
#define FJI_SAFEPOINT_H

#include <forkjoin/every.h>

#include "sched/compensate.h"
#include "sched/pool.h"

/* A broadcast that a thread asks for. The thread keeps it in its frame until the broadcast has
 * ended. */
typedef struct fji_request {
    fj_pool *pool;
    fj_action_fn *fn;
    void *arg;
    int code; /* the first code other than FJ_OK that a call of fn has returned */
} fji_request;

/* Returns whether the record w is called to a broadcast and its thread has not arrived. */
static inline bool fji_worker_called(const fji_worker *w)
{
    /* relaxed: a hint. The thread takes the lock before it arrives. */
    return fji_load_relaxed(&w->call) > FJI_CALL_GONE;
}

/* Returns whether a record of the calling thread is called: w, or a record that the thread had
 * before it became the guest w. w may be NULL. */
static inline bool fji_called(const fji_worker *w)
{
    for (; w != NULL; w = fji_worker_outer(w))
        if (fji_worker_called(w)) return true;
    return false;
}

/* Called by the thread of w, which may be NULL, where it can wait and holds no lock of the library.
 * If the thread is called to a broadcast, takes part in it. */
void fji_safepoint_take(fji_worker *w);

/* Called at the safepoints of the library: as fji_safepoint_take(), and cheap if w is not called. */
static inline void fji_safepoint(fji_worker *w)
{
    if (FJI_UNLIKELY(fji_called(w))) fji_safepoint_take(w);
}

/* Called by the blocked worker or guest w during a wait. If its thread is called, ends the
 * compensation c, takes part, and begins a new compensation. Returns the compensation that is
 * valid then. w may be NULL. */
fji_compensation fji_safepoint_blocked(fji_worker *w, fji_compensation c);

/* Sleeps as fji_plat_wait(), but not if the thread of w is called. A broadcast that begins
 * meanwhile ends the sleep. w: the calling worker or guest, or NULL if the calling thread works for
 * no pool. */
bool fji_safepoint_sleep(fji_worker *w, uint32_t *word, uint32_t value, int64_t deadline);

/* Called by the thread of the record w, which it has just taken, before it runs a task or a
 * callback for the pool. If the pool is in a broadcast to which w is not called, waits until that
 * broadcast has ended, unless the thread takes part in it with another record. */
void fji_safepoint_enter(fji_worker *w);

/* Called by the thread of the worker w, or by the thread that could not start one for w, before the
 * record is given back. w runs no further task. If w is called, the broadcast does not wait for w
 * any more. */
void fji_safepoint_leave(fji_worker *w);

/* Called by the thread of a called record that has left and has changed `call`: the broadcast does
 * not wait for the record any more. */
void fji_safepoint_uncount(void);

/* Runs a broadcast. Returns FJ_OK if it has ended; FJ_EDEADLK if the calling thread takes part in a
 * broadcast at present; FJ_EREJECTED if the pool has stopped. Waits until the broadcasts that other
 * threads have begun before have ended, and takes part in them if it is called. */
int fji_safepoint_broadcast(fji_request *r);

/* Called in the child process after fork(), where no other thread exists: no broadcast is in
 * progress there. */
void fji_safepoint_in_child(void);

/* Called in the child process for each record. own: whether the record belongs to the calling
 * thread. */
void fji_safepoint_reset(fji_worker *w, bool own);

#endif /* FJI_SAFEPOINT_H */
