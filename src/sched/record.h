/* SPDX-License-Identifier: MIT */
/*
 * record.h - the records of the workers of a pool
 */
#ifndef FJI_RECORD_H
#define FJI_RECORD_H

#include "sched/pool.h"

/* Takes a record that no thread has, or creates one, for a new worker (as: FJI_ALIVE_WORKER) or
 * guest (FJI_ALIVE_GUEST). Called with the lock of p. Returns NULL if there is no memory, or if p
 * already has FJ_MAX_WORKERS records. */
fji_worker *fji_record_take(fj_pool *p, uint32_t as);

/* Gives the record of w back. Called by the thread that has it, or that has failed to start its
 * thread. Afterwards another thread may take the record. */
void fji_record_give_back(fji_worker *w);

/* Creates the first record when p is created, so that a thread that has to run the tasks of p
 * itself always finds a record. Called with the lock of p. Returns false if there is no memory. */
bool fji_record_reserve(fj_pool *p);

/* Stores in w where the stack of the calling thread is. Called by the thread that becomes w. */
void fji_record_set_stack(fji_worker *w);

/* Frees all records. No thread may use one any more. */
void fji_records_free(fj_pool *p);

#endif /* FJI_RECORD_H */
