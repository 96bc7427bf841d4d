/* SPDX-License-Identifier: MIT */
/*
 * nocancel.h - system calls that are cancellation points
 *
 * A program may cancel its own threads with pthread_cancel(). If such a thread is inside the
 * library at a cancellation point, for example nanosleep(), it would end there and leave locks held
 * and counts wrong. So the library disables cancellation around these calls. Worker threads have it
 * disabled for their whole life (fji_plat_thread_start()).
 */
#ifndef FJI_NOCANCEL_H
#define FJI_NOCANCEL_H

#include <forkjoin/attr.h>
#include <pthread.h>

/* Disables cancellation of the calling thread. Returns the state before, for fji_nocancel_end(). */
FJI_INLINE int fji_nocancel_begin(void)
{
    int old;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return old;
}

/* Restores the state that fji_nocancel_begin() returned. */
FJI_INLINE void fji_nocancel_end(int old)
{
    int ours;

    pthread_setcancelstate(old, &ours);
}

#endif /* FJI_NOCANCEL_H */
