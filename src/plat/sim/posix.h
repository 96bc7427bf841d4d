/* SPDX-License-Identifier: MIT */
/*
 * posix.h - replaces POSIX threads, locks, sleep, malloc() and others in the simulated program
 *
 * test/sim/simbuild.py includes this header before every source that runs on the simulator
 * (-include). It redirects POSIX calls to the simulator. The types are those of the system. Of an
 * object, for example a pthread_mutex_t, the simulator uses only the first one to three words.
 */
#ifndef FJI_SIM_POSIX_H
#define FJI_SIM_POSIX_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int sim_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*main)(void *),
                       void *arg);
int sim_pthread_join(pthread_t t, void **result);
int sim_pthread_detach(pthread_t t);
pthread_t sim_pthread_self(void);
int sim_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr);
int sim_mutex_lock(pthread_mutex_t *m);
int sim_mutex_trylock(pthread_mutex_t *m);
int sim_mutex_unlock(pthread_mutex_t *m);
int sim_cond_init(pthread_cond_t *c, const pthread_condattr_t *attr);
int sim_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int sim_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                       const struct timespec *at);
int sim_cond_wake(pthread_cond_t *c);
int sim_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr, unsigned n);
int sim_barrier_wait(pthread_barrier_t *b);
int sim_sem_init(sem_t *s, int shared, unsigned value);
int sim_sem_wait(sem_t *s);
int sim_sem_trywait(sem_t *s);
int sim_sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *at);
int sim_sem_post(sem_t *s);
int sim_nothing(void *object);
int sim_nanosleep(const struct timespec *t, struct timespec *left);
int sim_sched_yield(void);
void *sim_malloc(size_t n);
void *sim_calloc(size_t n, size_t each);
void *sim_aligned_alloc(size_t align, size_t n);
void sim_free(void *p);
void *sim_memset(void *p, int c, size_t n);
void *sim_memcpy(void *to, const void *from, size_t n);

/* The C library is not compiled with -fsanitize=thread. So memset(), memcpy() and memmove() are
 * replaced by functions that report their accesses to the simulator. */
#define memset sim_memset
#define memcpy sim_memcpy
#define memmove sim_memcpy
#define pthread_create sim_pthread_create
#define pthread_join sim_pthread_join
#define pthread_detach sim_pthread_detach
#define pthread_self sim_pthread_self
#define pthread_mutex_init sim_mutex_init
#define pthread_mutex_lock sim_mutex_lock
#define pthread_mutex_trylock sim_mutex_trylock
#define pthread_mutex_unlock sim_mutex_unlock
#define pthread_mutex_destroy sim_nothing
#define pthread_cond_init sim_cond_init
#define pthread_cond_wait sim_cond_wait
#define pthread_cond_clockwait sim_cond_clockwait
#define pthread_cond_signal sim_cond_wake
#define pthread_cond_broadcast sim_cond_wake
#define pthread_cond_destroy sim_nothing
#define pthread_barrier_init sim_barrier_init
#define pthread_barrier_wait sim_barrier_wait
#define pthread_barrier_destroy sim_nothing
#define sem_init sim_sem_init
#define sem_wait sim_sem_wait
#define sem_trywait sim_sem_trywait
#define sem_clockwait sim_sem_clockwait
#define sem_post sim_sem_post
#define sem_destroy sim_nothing
#define nanosleep sim_nanosleep
#define sched_yield sim_sched_yield
#define malloc sim_malloc
#define calloc sim_calloc
#define aligned_alloc sim_aligned_alloc
#define free sim_free

#endif /* FJI_SIM_POSIX_H */
