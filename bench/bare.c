/* SPDX-License-Identifier: MIT */
/*
 * bare.c - one thread and two semaphores, the least that a round trip needs
 *
 * The main thread posts the semaphore `go` and waits for the semaphore `done`. The other thread
 * does the opposite. The program has no queue and no pool, and the number of workers has no effect.
 * It supports only the workloads with a round trip: trip-PAUSE, first and create.
 */
#include "harness.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_t thread;
static sem_t go, done;
static bench_body *body; /* of the next task; NULL ends the thread */
static void *body_arg;

static void wait_for(sem_t *s)
{
    while (sem_wait(s) != 0) continue;
}

static void *serve(void *arg)
{
    (void)arg;
    for (;;) {
        wait_for(&go);
        if (body == NULL) return NULL;
        body(body_arg);
        sem_post(&done);
    }
}

static void start(int workers, bool outside)
{
    (void)workers;
    (void)outside;
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    if (pthread_create(&thread, NULL, serve, NULL) == 0) return;
    fprintf(stderr, "bare: cannot create the thread\n");
    exit(1);
}

static void stop(void)
{
    body = NULL;
    sem_post(&go);
    pthread_join(thread, NULL);
    sem_destroy(&go);
    sem_destroy(&done);
}

static void round_trip(bench_body *b, void *arg)
{
    body = b;
    body_arg = arg;
    sem_post(&go);
    wait_for(&done);
}

int main(int argc, char **argv)
{
    static const bench_entry entries[] = {{NULL, NULL}};
    static const bench_runtime bare = {"bare", entries, start, stop, NULL, round_trip};

    return bench_main(argc, argv, &bare);
}
