/* SPDX-License-Identifier: MIT */
/*
 * listeners.c - calling the listeners of futures that are done, without recursion
 *
 * A listener may decide the outcome of another future, which has listeners too, and so on. If each
 * thread called such listeners at once, a chain of futures would need a stack as deep as the chain
 * is long. So each thread has a queue of the listeners that it has to call. A thread that sets DONE
 * in the state word of a future appends the listeners of the future to its queue. If the thread is
 * not in a listener, it then calls all listeners in its queue, also those that are appended
 * meanwhile. Otherwise it returns, and the listeners are called when the listener that the thread is
 * in has returned.
 *
 * Only the thread itself uses its queue. The queue owns the listeners in it. A listener is not
 * accessed any more when its function is called.
 */

#include "future/future.h"

static __thread struct {
    fj_listener *first; /* the listener to call next, or NULL if the queue is empty */
    fj_listener *last;  /* valid if `first` is not NULL */
    fji_listeners_end *end;
    bool calling; /* the thread is in a listener */
} listeners_here;

void fji_listeners_call_deferred(void)
{
    uint32_t generation = fji_fork_generation;

    while (listeners_here.first != NULL) {
        fj_listener l = *listeners_here.first;
        if ((l.flags & FJI_LISTENER_ALLOCATED) != 0) fji_plat_free(listeners_here.first);
        listeners_here.first = l.next;
        l.fn(l.future, l.arg);
        /* If the listener has called fork() and this is the child process, the futures must not be
         * accessed any more: their memory may belong to threads that exist only in the parent
         * process (pool/atfork.c). */
        if (generation != fji_fork_generation)
            listeners_here.first = NULL;
        else if ((l.flags & FJI_LISTENER_LAST) != 0)
            listeners_here.end(l.future, l.flags);
    }
}

void fji_listeners_call(fj_listener *last, uint32_t flags, fji_listeners_end *end)
{
    fj_listener *first = last->next;

    last->next = NULL;
    last->flags |= FJI_LISTENER_LAST | flags;
    if (listeners_here.first != NULL)
        listeners_here.last->next = first;
    else
        listeners_here.first = first;
    listeners_here.last = last;
    listeners_here.end = end;
    if (listeners_here.calling) return;
    listeners_here.calling = true;
    fji_listeners_call_deferred();
    listeners_here.calling = false;
}
