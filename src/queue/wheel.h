/* SPDX-License-Identifier: MIT */
/*
 * wheel.h - a set of times: adding, removing and taking those that are due, without allocation
 *
 * Most timers are cancelled long before they are due, so adding and removing have to be cheap at
 * any number of timers. Far times are therefore kept coarsely and near times exactly.
 *
 * A tick is 2^20 ns. The present is the tick up to which the set has advanced. There are 8 wheels
 * of 64 slots; a slot of wheel k covers 64^k ticks. A time in the present tick or before it is in a
 * pairing heap, which orders it exactly. Every other time is in the wheel of the highest digit (in
 * base 64) in which its tick differs from the present, in the slot of that digit:
 *
 *     present  ... 3 . 17 . 40     (digits 2, 1, 0)
 *     time A   ... 3 . 17 . 41     differs first in digit 0: wheel 0, slot 41
 *     time B   ... 3 . 19 . 02     differs first in digit 1: wheel 1, slot 19
 *
 * A slot is a ring of linked times, so adding and removing link or unlink one element. When the
 * present reaches the first tick of a slot, the times of the slot are spread over the wheels below
 * and the heap. So a time is moved at most once for each wheel below its own.
 *
 * Invariants
 *   W1  The tick of a time in the heap is <= present, the tick of a time in a wheel is > present.
 *   W2  In wheel k, digit k of the tick is greater than digit k of the present, and all higher
 *       digits are equal.
 *   W3  Bit s of filled[k] is set if and only if slot s of wheel k is not empty.
 *   W4  No node of the heap is due after one of its children.
 *
 * The functions read no clock and take no lock. The caller passes the time, and ensures that only
 * one thread at a time uses the set.
 */
#ifndef FJI_WHEEL_H
#define FJI_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define FJI_WHEELS 8
#define FJI_WHEEL_SLOTS 64
#define FJI_WHEEL_TICK_BITS 20

/* One time, a member of the caller's struct. In a slot, next and prev form a ring with the head of
 * the slot. In the heap, next is the next sibling; prev is the previous sibling or, of a first
 * child, the parent. */
typedef struct fji_moment {
    int64_t when; /* ns; INT64_MAX is never due */
    struct fji_moment *next, *prev, *child;
    uint32_t place; /* 0: in no set; 1: in the heap; otherwise 2 + wheel * 64 + slot */
} fji_moment;

typedef struct fji_wheel {
    int64_t tick;                                 /* the present */
    uint64_t filled[FJI_WHEELS];                  /* bit s: slot s is not empty */
    fji_moment *heap;                             /* the root, which has no siblings, or NULL */
    fji_moment slot[FJI_WHEELS][FJI_WHEEL_SLOTS]; /* the heads of the rings */
} fji_wheel;

/* Initialises an empty set at the time `now`, ns, which is not negative. */
void fji_wheel_init(fji_wheel *w, int64_t now);

/* Adds m, which is in no set, with the time m->when. A time that has passed is due at once. */
void fji_wheel_add(fji_wheel *w, fji_moment *m);

/* Removes m, which is in the set. */
void fji_wheel_remove(fji_wheel *w, fji_moment *m);

/* Returns whether m is in a set. The memory of m was zeroed before it was first added. */
static inline bool fji_moment_waits(const fji_moment *m)
{
    return m->place != 0;
}

/* Removes and returns the earliest time if it is due at `now`, otherwise returns NULL. `now` does
 * not decrease from call to call. */
fji_moment *fji_wheel_take(fji_wheel *w, int64_t now);

/* Returns when the next fji_wheel_take() can have an effect: a time that is not later than the
 * earliest in the set, or INT64_MAX if the set is empty. */
int64_t fji_wheel_next(const fji_wheel *w);

/* Removes and returns any time, in no particular order, or NULL if the set is empty. */
fji_moment *fji_wheel_take_any(fji_wheel *w);

/* For tests. Returns whether the invariants hold. */
bool fji_wheel_valid(const fji_wheel *w);

#endif /* FJI_WHEEL_H */
