/* SPDX-License-Identifier: MIT */
/*
 * nocancel.h - disables cancellation around system calls that are cancellation points
 *
 * A program may cancel its own threads with pthread_cancel(). If such a thread were cancelled
 * inside the library at a cancellation point, for example in nanosleep(), it would end there and
 * leave locks held and counters wrong. So the library disables cancellation around its
 * cancellation points, except around the system calls of blocking.h. In the threads that
 * fji_plat_thread_start() starts, cancellation is always disabled.
 */
#ifndef FJI_NOCANCEL_H
#define FJI_NOCANCEL_H

#include <forkjoin/attr.h>
#include <pthread.h>

/* Disables cancellation of the calling thread. Returns the previous cancellation state, for
 * fji_nocancel_end(). */
FJI_INLINE int fji_nocancel_begin(void)
{
    int old;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return old;
}

/* Restores the cancellation state `old`, which fji_nocancel_begin() has returned. */
FJI_INLINE void fji_nocancel_end(int old)
{
    int ours;

    pthread_setcancelstate(old, &ours);
}

#endif /* FJI_NOCANCEL_H */
