/* SPDX-License-Identifier: MIT */
/*
 * nocancel.h - system calls in which a thread that is cancelled would end
 *
 * Threads of callers may be cancelled (pthread_cancel()), and some calls of the system are places
 * where that takes effect. Around these it is put off: the library has to be left as it should be.
 */
#ifndef FJI_NOCANCEL_H
#define FJI_NOCANCEL_H

#include <forkjoin/attr.h>
#include <pthread.h>

FJI_INLINE int fji_nocancel_begin(void)
{
    int old;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return old;
}

/* With what fji_nocancel_begin() has returned. */
FJI_INLINE void fji_nocancel_end(int old)
{
    int ours;

    pthread_setcancelstate(old, &ours);
}

#endif /* FJI_NOCANCEL_H */
