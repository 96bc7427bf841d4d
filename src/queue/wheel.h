/* SPDX-License-Identifier: MIT */
/*
 * wheel.h - a set of moments: add, remove, and what is due, none of which needs memory
 *
 * Far moments are kept roughly, near ones exactly. Time is counted in ticks of 2^20 ns. Eight
 * wheels of 64 slots: a slot of wheel 0 is one tick, one of wheel k is 64^k ticks. A moment
 * that is not in the present tick goes to the wheel of the highest digit (to base 64) in which
 * its tick differs from the present one, into the slot of that digit: to add or remove it is
 * to link or unlink it in a list. When the present reaches the beginning of a slot, what is in
 * it is spread over the wheels below; what is in the present tick is in a heap, from which it
 * comes in the order of its time. So a moment is moved at most once for each wheel below its
 * own, and never looked at otherwise.
 *
 * Invariants
 *   W1  tick of a moment in the heap <= present; of one in a wheel > present.
 *   W2  in wheel k the digit k of its tick is greater than that of the present, the digits
 *       above are the same.
 *   W3  bit s of filled[k] == slot s of wheel k is not empty.
 *   W4  pairing heap: no node is due after its child.
 *
 * It knows no clock and no lock: whoever uses it gives the time and keeps others out.
 */
#ifndef FJI_WHEEL_H
#define FJI_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define FJI_WHEELS 8
#define FJI_WHEEL_SLOTS 64
#define FJI_WHEEL_TICK_BITS 20

/* One moment. In a slot: next and prev are a ring through the slot's head. In the heap: next is
 * the sibling, prev the elder sibling or, for the first child, the parent. */
typedef struct fji_moment {
    int64_t when; /* ns; INT64_MAX: never due */
    struct fji_moment *next, *prev, *child;
    uint32_t place; /* 0: nowhere; 1: heap; else 2 + wheel * 64 + slot */
} fji_moment;

typedef struct fji_wheel {
    int64_t tick; /* the present */
    uint64_t filled[FJI_WHEELS];
    fji_moment *heap;
    fji_moment slot[FJI_WHEELS][FJI_WHEEL_SLOTS]; /* heads of rings */
} fji_wheel;

void fji_wheel_init(fji_wheel *w, int64_t now);

/* m->when is set. A moment that has passed is due at once. */
void fji_wheel_add(fji_wheel *w, fji_moment *m);

/* m is in it. */
void fji_wheel_remove(fji_wheel *w, fji_moment *m);

static inline bool fji_moment_waits(const fji_moment *m)
{
    return m->place != 0;
}

/* Takes out the earliest moment that is due at `now`; NULL if none is. Time does not go back. */
fji_moment *fji_wheel_take(fji_wheel *w, int64_t now);

/* When there is something to do: no later than the earliest moment; INT64_MAX: never. */
int64_t fji_wheel_next(const fji_wheel *w);

/* Takes out any one, in no order; NULL when it is empty. */
fji_moment *fji_wheel_take_any(fji_wheel *w);

/* For tests: the invariants. */
bool fji_wheel_valid(const fji_wheel *w);

#endif /* FJI_WHEEL_H */
