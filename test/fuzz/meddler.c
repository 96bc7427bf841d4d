/* SPDX-License-Identifier: MIT */
/*
 * meddler.c - an outside thread that completes, fails and cancels futures and cancels tokens
 */
#include <forkjoin/block.h>
#include <pthread.h>

#include "fuzz/node.h"

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    fjp_deed *first, **last;
    bool there;
} meddler = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL, false};

void fjp_do(fjp_deed *d)
{
    switch (d->kind) {
        case FJP_COMPLETE: d->won = fj_future_complete(d->future, d->result); break;
        case FJP_COMPLETE_QUIETLY: d->won = fj_future_complete_quietly(d->future); break;
        case FJP_FAIL: d->won = fj_future_fail(d->future, d->code); break;
        case FJP_CANCEL: d->won = fj_future_cancel(d->future, 0); break;
        case FJP_INTERRUPT: d->won = fj_future_cancel(d->future, 1); break;
        case FJP_CANCEL_TOKEN: fj_token_cancel(d->token); break;
        case FJP_DEEDS:
        case FJP_NOTHING: break;
    }
}

static void *meddler_main(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&meddler.mutex);
    for (;;) {
        fjp_deed *d;
        while ((d = meddler.first) == NULL) pthread_cond_wait(&meddler.cond, &meddler.mutex);
        meddler.first = d->next;
        pthread_mutex_unlock(&meddler.mutex);
        fjp_do(d);
        sem_post(&d->done);
        pthread_mutex_lock(&meddler.mutex);
    }
    return NULL;
}

void fjp_have_done(fjp_deed *d)
{
    pthread_t thread;

    sem_init(&d->done, 0, 0);
    d->next = NULL;
    pthread_mutex_lock(&meddler.mutex);
    if (!meddler.there) {
        FJP_CHECK_EQ(pthread_create(&thread, NULL, meddler_main, NULL), 0);
        pthread_detach(thread);
        meddler.there = true;
    }
    if (meddler.first == NULL)
        meddler.first = d;
    else
        *meddler.last = d;
    meddler.last = &d->next;
    pthread_cond_signal(&meddler.cond);
    pthread_mutex_unlock(&meddler.mutex);
}

void fjp_await_done(fjp_deed *d)
{
    FJP_CHECK_EQ(fj_block_sem_wait(&d->done, FJ_FOREVER), FJ_OK);
    sem_destroy(&d->done);
}
