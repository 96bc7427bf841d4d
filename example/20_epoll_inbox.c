/* SPDX-License-Identifier: MIT */
/*
 * 20_epoll_inbox.c - an epoll loop that gives work to the pool and gets the results back
 *
 * Requests arrive through a pipe, as they would through sockets. The loop reads a request and gives
 * it to the workers. When a worker has finished it, the inbox of the loop becomes readable, and the
 * loop runs answered() in its own thread. So `server` needs no lock, and the loop waits only in
 * epoll_wait().
 */
#define _GNU_SOURCE
#include <forkjoin/inbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define REQUESTS 40

static struct {
    fj_inbox *inbox;
    int requests[2]; /* the pipe */
    int answers;     /* requests that were answered so far */
    long sum;        /* of their results */
} server;

/* Runs on a worker: counts the primes below n. */
static int count_primes(void *arg, void **result)
{
    long primes = 0;

    for (long i = 2; i < (long)(intptr_t)arg; i++) {
        long d = 2;
        while (d * d <= i && i % d != 0) d++;
        primes += d * d > i;
    }
    *result = (void *)(intptr_t)primes;
    return FJ_OK;
}

/* Runs in the thread of the loop. */
static void answered(fj_future *f, void *arg)
{
    void *primes = NULL;

    (void)arg;
    if (fj_future_result(f, &primes) != FJ_OK) exit(1);
    server.sum += (long)(intptr_t)primes;
    server.answers++;
}

/* Runs in the thread of the loop, when a request has arrived. */
static void receive(void)
{
    fj_future *f;
    int n;

    if (read(server.requests[0], &n, sizeof n) != sizeof n) exit(1);
    if (fj_submit_call(NULL, count_primes, (void *)(intptr_t)n, &f) != FJ_OK) exit(1);
    if (fj_future_notify(f, server.inbox, answered, NULL) != FJ_OK) exit(1);
    fj_future_unref(f); /* the library has references until answered() has returned */
}

static int watch(int epoll, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

int main(void)
{
    struct epoll_event e;
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (fj_inbox_create(NULL, &server.inbox) != FJ_OK || pipe(server.requests) != 0) return 1;
    if (watch(epoll, server.requests[0]) != 0) return 1;
    if (watch(epoll, fj_inbox_fd(server.inbox)) != 0) return 1;
    for (int i = 1; i <= REQUESTS; i++) {
        int n = 1000 * i;
        if (write(server.requests[1], &n, sizeof n) != sizeof n) return 1;
    }

    while (server.answers < REQUESTS) {
        if (epoll_wait(epoll, &e, 1, -1) != 1) continue;
        if (e.data.fd == server.requests[0])
            receive();
        else
            fj_inbox_run(server.inbox, 0);
    }
    printf("%d answers, %ld primes\n", server.answers, server.sum);
    close(epoll);
    fj_inbox_destroy(server.inbox);
    return server.sum != 91034;
}
