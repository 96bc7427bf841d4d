/* SPDX-License-Identifier: MIT */
/*
 * wheel.h - a timing wheel: a set of times, from which the times that are due are taken
 *
 * Most timers are cancelled long before they are due, so adding and removing a time have to be
 * cheap at any number of timers. The set therefore keeps times that are far in the future only
 * roughly ordered, and near times exactly. No function allocates memory.
 *
 * A tick is 2^20 ns. The present is the tick up to which the set has advanced. There are 8 wheels
 * of 64 slots; a slot of wheel k covers 64^k ticks. A time whose tick is the present or earlier is
 * in a pairing heap, which orders its times exactly. For every other time, let k be the highest
 * digit (in base 64) in which the tick of the time differs from the present. The time is then in
 * wheel k, in the slot whose number is digit k of its tick:
 *
 *     present  ... 3 . 17 . 40     (digits 2, 1, 0)
 *     time A   ... 3 . 17 . 41     differs first in digit 0: wheel 0, slot 41
 *     time B   ... 3 . 19 . 02     differs first in digit 1: wheel 1, slot 19
 *
 * A slot is a ring of linked times, so adding and removing link or unlink one element. When the
 * present reaches the first tick of a slot, the times of the slot are spread over the wheels below
 * and the heap. So a time that was added to wheel k is moved at most k + 1 times.
 *
 * Invariants
 *   W1  The tick of a time in the heap is <= present, the tick of a time in a wheel is > present.
 *   W2  In wheel k, digit k of the tick is greater than digit k of the present, and all higher
 *       digits are equal.
 *   W3  Bit s of filled[k] is set if and only if slot s of wheel k is not empty.
 *   W4  No node of the heap is due after one of its children.
 *
 * The functions read no clock and take no lock. The caller passes the current time as `now`, and
 * ensures that only one thread at a time uses the set.
 */
#ifndef FJI_WHEEL_H
#define FJI_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define FJI_WHEELS 8
#define FJI_WHEEL_SLOTS 64
#define FJI_WHEEL_TICK_BITS 20

/* One time of a set, a member of the caller's struct. In a slot, next and prev form a ring with the
 * head of the slot, and child is NULL. In the heap, next is the next sibling or NULL, prev is the
 * previous sibling or, of a first child, the parent, and child is the first child or NULL. */
typedef struct fji_moment {
    int64_t when; /* the time, ns; INT64_MAX: never due */
    struct fji_moment *next, *prev, *child;
    uint32_t place; /* 0: in no set; 1: in the heap; 2 + k * 64 + s: in slot s of wheel k */
} fji_moment;

typedef struct fji_wheel {
    int64_t tick;                /* the present, in ticks */
    uint64_t filled[FJI_WHEELS]; /* bit s of filled[k]: slot s of wheel k is not empty */
    fji_moment *heap;            /* the root, which has no siblings, or NULL */
    fji_moment slot[FJI_WHEELS][FJI_WHEEL_SLOTS]; /* the heads of the rings */
} fji_wheel;

/* Initialises an empty set whose present is the tick of `now`, ns. `now` is not negative. */
void fji_wheel_init(fji_wheel *w, int64_t now);

/* Adds m, which is in no set, with the time m->when. If m->when has passed, m is due at once, and
 * fji_wheel_take() may return it at its next call. */
void fji_wheel_add(fji_wheel *w, fji_moment *m);

/* Removes m, which is in the set *w. fji_moment_waits(m) is false afterwards. */
void fji_wheel_remove(fji_wheel *w, fji_moment *m);

/* Returns whether m is in a set. The caller must set m->place to 0 before it adds m for the first
 * time. */
static inline bool fji_moment_waits(const fji_moment *m)
{
    return m->place != 0;
}

/* Removes and returns the earliest time of the set if it is at or before `now`. Returns NULL if it
 * is later, or if the set is empty. `now`, ns, does not decrease from one call to the next. */
fji_moment *fji_wheel_take(fji_wheel *w, int64_t now);

/* Returns the time, ns, at which the caller has to call fji_wheel_take() next. It is not later than
 * the earliest time in the set. Returns INT64_MAX if the set is empty. */
int64_t fji_wheel_next(const fji_wheel *w);

/* Removes and returns some time of the set, not necessarily the earliest. Returns NULL if the set
 * is empty. */
fji_moment *fji_wheel_take_any(fji_wheel *w);

/* For tests. Returns whether the invariants W1 to W4 of the head of this file hold. */
bool fji_wheel_valid(const fji_wheel *w);

#endif /* FJI_WHEEL_H */
