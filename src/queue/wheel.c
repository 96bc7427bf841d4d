/* SPDX-License-Identifier: MIT */
/*
 * wheel.c - a timing wheel: a set of times, in wheels of slots and a heap; see wheel.h
 */
#include "queue/wheel.h"

#include <stddef.h>
#include <string.h>

/* Values of fji_moment.place; PLACE_SLOTS + k * FJI_WHEEL_SLOTS + s: in slot s of wheel k. */
#define PLACE_NOWHERE 0u
#define PLACE_HEAP 1u
#define PLACE_SLOTS 2u

static int64_t tick_of(int64_t when)
{
    return when >> FJI_WHEEL_TICK_BITS;
}

static unsigned digit_of(int64_t tick, unsigned wheel)
{
    return (unsigned)((uint64_t)tick >> (6 * wheel)) % FJI_WHEEL_SLOTS;
}

void fji_wheel_init(fji_wheel *w, int64_t now)
{
    memset(w, 0, sizeof *w);
    w->tick = tick_of(now);
    for (unsigned k = 0; k < FJI_WHEELS; k++)
        for (unsigned s = 0; s < FJI_WHEEL_SLOTS; s++)
            w->slot[k][s].next = w->slot[k][s].prev = &w->slot[k][s];
}

/* ---- The heap -------------------------------------------------------------------------------- */

/* Merges the heaps with the roots a and b, which have no siblings. Either may be NULL. Returns the
 * root of the merged heap. */
static fji_moment *heap_meld(fji_moment *a, fji_moment *b)
{
    if (a == NULL) return b;
    if (b == NULL) return a;
    if (b->when < a->when) {
        fji_moment *other = a;
        a = b;
        b = other;
    }
    b->next = a->child;
    if (b->next != NULL) b->next->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

/* Merges a list of siblings into one heap: first each pair of neighbours, from left to right, then
 * the resulting heaps, from right to left. Returns the root, or NULL if the list is empty. */
static fji_moment *heap_merge_siblings(fji_moment *first)
{
    fji_moment *pairs = NULL, *all = NULL;

    while (first != NULL) {
        fji_moment *a = first, *b = a->next;
        first = b != NULL ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b != NULL) b->next = b->prev = NULL;
        a = heap_meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        fji_moment *a = pairs;
        pairs = a->next;
        a->next = NULL;
        all = heap_meld(a, all);
    }
    return all;
}

static void heap_add(fji_wheel *w, fji_moment *m)
{
    m->next = m->prev = m->child = NULL;
    m->place = PLACE_HEAP;
    w->heap = heap_meld(w->heap, m);
}

static void heap_remove(fji_wheel *w, fji_moment *m)
{
    fji_moment *below = heap_merge_siblings(m->child);

    if (m == w->heap) {
        w->heap = below;
    } else {
        if (m->prev->child == m)
            m->prev->child = m->next;
        else
            m->prev->next = m->next;
        if (m->next != NULL) m->next->prev = m->prev;
        w->heap = heap_meld(w->heap, below);
    }
    m->next = m->prev = m->child = NULL;
    m->place = PLACE_NOWHERE;
}

/* ---- The wheels ------------------------------------------------------------------------------ */

void fji_wheel_add(fji_wheel *w, fji_moment *m)
{
    int64_t tick = tick_of(m->when);

    if (tick <= w->tick) {
        heap_add(w, m);
        return;
    }
    /* Neither tick nor present is negative: w->tick starts at 0 or later, so a negative tick is
     * before the present, and its time was added to the heap above. */
    int64_t present = w->tick >= 0 ? w->tick : 0;
    unsigned k = tick == present ? 0
                                 : (63 - (unsigned)__builtin_clzll((uint64_t)(tick ^ present))) / 6;
    unsigned s = digit_of(tick, k);
    fji_moment *head = &w->slot[k][s];

    m->next = head;
    m->prev = head->prev;
    head->prev->next = m;
    head->prev = m;
    m->child = NULL;
    m->place = PLACE_SLOTS + k * FJI_WHEEL_SLOTS + s;
    w->filled[k] |= (uint64_t)1 << s;
}

static void slot_remove(fji_wheel *w, fji_moment *m)
{
    unsigned at = m->place - PLACE_SLOTS, k = at / FJI_WHEEL_SLOTS, s = at % FJI_WHEEL_SLOTS;

    m->prev->next = m->next;
    m->next->prev = m->prev;
    if (w->slot[k][s].next == &w->slot[k][s]) w->filled[k] &= ~((uint64_t)1 << s);
    m->next = m->prev = NULL;
    m->place = PLACE_NOWHERE;
}

void fji_wheel_remove(fji_wheel *w, fji_moment *m)
{
    if (m->place == PLACE_HEAP)
        heap_remove(w, m);
    else
        slot_remove(w, m);
}

/* Finds the non-empty slot whose first tick the present reaches first. Sets *wheel and *slot to its
 * numbers, and *tick to its first tick. Returns false if all slots are empty. */
static bool wheel_first(const fji_wheel *w, unsigned *wheel, unsigned *slot, int64_t *tick)
{
    for (unsigned k = 0; k < FJI_WHEELS; k++) {
        if (w->filled[k] == 0) continue;
        unsigned s = (unsigned)__builtin_ctzll(w->filled[k]);
        unsigned low = 6 * k;
        int64_t present = w->tick >= 0 ? w->tick : 0;
        /* By invariant W2 of wheel.h, all digits above digit k of a tick in wheel k are equal to
         * those of the present. */
        uint64_t above = (((uint64_t)present >> low) >> 6) << 6;
        *wheel = k;
        *slot = s;
        *tick = (int64_t)((above | s) << low);
        return true;
    }
    return false;
}

int64_t fji_wheel_next(const fji_wheel *w)
{
    unsigned k, s;
    int64_t tick;

    if (w->heap != NULL) return w->heap->when; /* W1 (wheel.h): before the times in wheels */
    if (!wheel_first(w, &k, &s, &tick)) return INT64_MAX;
    return tick << FJI_WHEEL_TICK_BITS;
}

/* Advances the present to `tick`, the first tick of slot s of wheel k. Moves the times of this slot
 * to the wheels below k and to the heap. */
static void wheel_turn(fji_wheel *w, unsigned k, unsigned s, int64_t tick)
{
    fji_moment *head = &w->slot[k][s], *m = head->next;

    w->tick = tick;
    w->filled[k] &= ~((uint64_t)1 << s);
    head->next = head->prev = head;
    while (m != head) {
        fji_moment *next = m->next;
        fji_wheel_add(w, m);
        m = next;
    }
}

fji_moment *fji_wheel_take(fji_wheel *w, int64_t now)
{
    unsigned k, s;
    int64_t tick;

    while (w->heap == NULL && wheel_first(w, &k, &s, &tick) && tick <= tick_of(now))
        wheel_turn(w, k, s, tick);
    fji_moment *m = w->heap;
    if (m != NULL) {
        if (m->when > now) return NULL;
        heap_remove(w, m);
        return m;
    }
    /* The heap is empty, and all non-empty slots begin after `now`. So W1 and W2 also hold with the
     * tick of `now` as the present. With a later present, the times that are added next go to lower
     * wheels and are moved less often. */
    if (tick_of(now) > w->tick) w->tick = tick_of(now);
    return NULL;
}

fji_moment *fji_wheel_take_any(fji_wheel *w)
{
    unsigned k, s;
    int64_t tick;
    fji_moment *m = w->heap;

    if (m == NULL && wheel_first(w, &k, &s, &tick)) m = w->slot[k][s].next;
    if (m != NULL) fji_wheel_remove(w, m);
    return m;
}

/* ---- For tests ------------------------------------------------------------------------------- */

static bool heap_valid(const fji_wheel *w, const fji_moment *m, const fji_moment *parent)
{
    const fji_moment *prev = parent;

    for (; m != NULL; prev = m, m = m->next) {
        if (m->place != PLACE_HEAP || m->prev != prev) return false;
        if (tick_of(m->when) > w->tick) return false;
        if (parent != NULL && m->when < parent->when) return false;
        if (!heap_valid(w, m->child, m)) return false;
    }
    return true;
}

static bool slot_valid(const fji_wheel *w, unsigned k, unsigned s)
{
    const fji_moment *head = &w->slot[k][s];
    int64_t present = w->tick >= 0 ? w->tick : 0;

    if ((head->next != head) != ((w->filled[k] >> s & 1) != 0)) return false;
    for (const fji_moment *m = head->next; m != head; m = m->next) {
        int64_t tick = tick_of(m->when);
        if (m->place != PLACE_SLOTS + k * FJI_WHEEL_SLOTS + s || m->next->prev != m) return false;
        if (tick <= w->tick || digit_of(tick, k) != s || s <= digit_of(present, k)) return false;
        if (((uint64_t)tick >> (6 * k)) >> 6 != ((uint64_t)present >> (6 * k)) >> 6) return false;
    }
    return true;
}

bool fji_wheel_valid(const fji_wheel *w)
{
    if (w->heap != NULL && w->heap->next != NULL) return false;
    if (!heap_valid(w, w->heap, NULL)) return false;
    for (unsigned k = 0; k < FJI_WHEELS; k++)
        for (unsigned s = 0; s < FJI_WHEEL_SLOTS; s++)
            if (!slot_valid(w, k, s)) return false;
    return true;
}
