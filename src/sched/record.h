/* SPDX-License-Identifier: MIT */
/*
 * record.h - the records of the workers of a pool
 */
#ifndef FJI_RECORD_H
#define FJI_RECORD_H

#include "sched/pool.h"

/* Takes a record of p that no thread uses, or creates a record. as: FJI_ALIVE_WORKER for a new
 * worker, FJI_ALIVE_GUEST for a new guest. Called with the lock of p. Returns NULL if there is no
 * free record, and either there is no memory for one or p already has FJ_MAX_WORKERS records. */
fji_worker *fji_record_take(fj_pool *p, uint32_t as);

/* Gives record w back, so that another thread may take it. Called by the worker or guest w, or by
 * the thread that has taken the record for a worker thread and failed to start that thread. */
void fji_record_give_back(fji_worker *w);

/* Creates the first record when p is created, so that a guest that runs the tasks of p while p has
 * no threads needs no memory for its record. Called with the lock of p. Returns false if there is
 * no memory. */
bool fji_record_reserve(fj_pool *p);

/* Frees all worker records of p. No thread may use one of them any more. */
void fji_records_free(fj_pool *p);

#endif /* FJI_RECORD_H */
