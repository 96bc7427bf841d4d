/* SPDX-License-Identifier: MIT */
/*
 * record.h - the records of the workers of a pool
 */
#ifndef FJI_RECORD_H
#define FJI_RECORD_H

#include "sched/pool.h"

/* With the lock: takes a record that no thread has, or makes one. as: FJI_ALIVE_WORKER or _GUEST. Returns
 * NULL if there is no memory. */
fji_worker *fji_record_take(fj_pool *p, uint32_t as);

/* The record is free again. */
void fji_record_give_back(fji_worker *w);

/* With the lock: makes the first record. */
bool fji_record_reserve(fj_pool *p);

/* Notes where the stack of the calling thread is. */
void fji_record_set_stack(fji_worker *w);

/* Frees all records. No thread may have one. */
void fji_records_free(fj_pool *p);

#endif /* FJI_RECORD_H */
