/* SPDX-License-Identifier: MIT */
/*
 * memory.c - which value a load returns, and which accesses race
 *
 * Memory itself holds the last value stored (with tso, see below). For every location that is
 * accessed atomically, which is called a place, the simulator also keeps a short history of its
 * values. Each value has the thread that stored it, the time of the store on that thread's clock,
 * and the vector clock that an acquire load of it joins (`carries`). A thread knows a store if the
 * store happens before its next step, if it has read that store or a later one, or if fences have
 * made it visible. A load returns any value that is not older than the newest one that the thread
 * knows:
 *
 *     newest value that the thread knows  <=  returned value  <=  last value
 *
 * hb       A release store carries the clock of its thread, and an acquire load joins it. A
 *          read-modify-write also carries the clock of the value that it replaces (release
 *          sequence). Relaxed accesses do the same through fences, by `released` and `pending`.
 * view     hb, and what the thread has learned at its full fences. A full fence joins what the
 *          thread knows or has read into `fences`, and then joins `fences` into its view. So it
 *          learns what all threads knew at their earlier full fences.
 * barrier  The heavy fence is a full fence of every thread at that moment.
 *
 * With tso no load returns an older value. Instead, an atomic store is late, unless it is seq_cst
 * or goes to the stack of its own thread: it waits in the buffer of its thread, and other threads
 * do not see it yet. It reaches memory after the earlier late stores of that thread: at a random
 * point, or at the next full fence, heavy fence, locked instruction, wait, wake, or start or end of
 * a thread. While a thread runs, its late stores are written to memory, so that its plain loads see
 * them, too. When the simulator switches to another thread, it restores the values from before
 * these stores.
 *
 * Races: for each 8 bytes the simulator keeps a shadow: the last plain write and the last atomic
 * write of any thread, and for each thread its last plain read. A new access races with one of
 * these accesses if the old one does not happen before the new one, at least one of the two is
 * plain, and at least one is a write.
 *
 * Places and shadows are found by hash tables. An entry of an earlier run has another run number
 * and counts as free.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "engine.h"

#define S sim_engine
#define MEMORY_VALUES 6         /* largest number of values in the history of a place */
#define MEMORY_TABLE (1u << 20) /* entries of each hash table; unused pages take no memory */
#define MEMORY_MOST (MEMORY_TABLE / 4 * 3) /* largest number of places, and of shadows, of a run */
#define MEMORY_LATE 12                     /* largest number of late stores (tso) of a thread */
/* Largest number of consecutive loads of one place by one thread that return an older value. */
#define MEMORY_STALE 3

struct memory_value {
    uint64_t value;
    uint32_t time;     /* when thread `by` stored it, on that thread's clock; 0: initial value */
    uint8_t by;        /* id of the thread that stored it */
    sim_clock carries; /* the vector clock that an acquire load of the value joins */
};

struct memory_place {
    uintptr_t address;
    uint32_t last;             /* number of the last value, or 0 if there is no history */
    uint32_t first;            /* number of the oldest value in the history */
    uint32_t seen[SIM_CLOCKS]; /* number of the newest value that each thread has read or written */
    /* of each thread: how many of its loads of this place in a row returned an older value */
    uint8_t missed[SIM_CLOCKS];
    uint8_t size;                             /* of the accesses, bytes: 1, 2, 4 or 8 */
    struct memory_value value[MEMORY_VALUES]; /* value n is in element n % MEMORY_VALUES */
};

struct memory_shadow {
    /* When the last plain write and the last atomic write happened, on the clocks of their
     * threads. */
    uint32_t write, atomic;
    /* The ids of these threads, and which of the 8 bytes they wrote: bit i is byte i. */
    uint8_t writer, atomic_by, write_mask, atomic_mask;
    uint32_t readers;              /* bit i is set if read_mask[i] and read[i] are valid */
    const void *write_pc;          /* code address of the last plain write */
    uint8_t read_mask[SIM_CLOCKS]; /* of each thread: which bytes its last plain read has read */
    uint32_t read[SIM_CLOCKS];     /* of each thread: when its last plain read was, on its clock */
};

/* An entry of one of two hash tables. In place_of the key is an address that the program accesses
 * atomically, and place[at] has the history of its values. In shadow_of the key is the number of a
 * group of 8 bytes, and shadow[at] has the last accesses to these bytes. Each run fills the arrays
 * `place` and `shadow` from their beginning, so the used part stays in the processor's caches. */
struct memory_entry {
    uintptr_t key;
    uint32_t run, at; /* run: number of the run that made the entry; it is free in any other run */
};

/* A late store (memory model tso): a store that its thread has executed and other threads do not
 * see yet. */
struct memory_late {
    void *p;                /* where it stores */
    int size;               /* how many bytes */
    uint64_t value, before; /* before: the value that other threads still see */
    sim_clock carries;      /* the vector clock that an acquire load of `value` joins */
};

struct sim_memory {
    uint32_t run;                     /* number of the current run */
    int late_n[SIM_CLOCKS], late_all; /* number of late stores: of each thread, and of all */
    struct memory_late late[SIM_CLOCKS][MEMORY_LATE]; /* of each thread, the oldest first */
    sim_clock fences;         /* what threads knew at their full fences of this run */
    uint32_t places, shadows; /* elements of `place` and `shadow` in use */
    struct memory_entry place_of[MEMORY_TABLE], shadow_of[MEMORY_TABLE];
    struct memory_place place[MEMORY_MOST];
    struct memory_shadow shadow[MEMORY_MOST];
};

#define M (sim_engine->memory)

void sim_memory_reset(void)
{
    if (M == NULL) M = sim_map(sizeof *M);
    M->run++;
    M->places = M->shadows = 0;
    memset(M->late_n, 0, sizeof M->late_n);
    M->late_all = 0;
    memset(&M->fences, 0, sizeof M->fences);
    for (int i = 0; i < SIM_CLOCKS; i++) {
        struct sim_thread *t = &S->thread[i];
        memset(&t->hb, 0, sizeof t->hb);
        memset(&t->view, 0, sizeof t->view);
        memset(&t->pending, 0, sizeof t->pending);
        memset(&t->released, 0, sizeof t->released);
        t->hb.at[i] = t->view.at[i] = 1;
    }
}

/* ---- Raw memory ------------------------------------------------------------------------------ */

static uint64_t memory_read(const void *p, int size)
{
    switch (size) {
        case 1: return *(const volatile uint8_t *)p;
        case 2: return *(const volatile uint16_t *)p;
        case 4: return *(const volatile uint32_t *)p;
        default: return *(const volatile uint64_t *)p;
    }
}

static void memory_write(void *p, int size, uint64_t v)
{
    switch (size) {
        case 1: *(volatile uint8_t *)p = (uint8_t)v; break;
        case 2: *(volatile uint16_t *)p = (uint16_t)v; break;
        case 4: *(volatile uint32_t *)p = (uint32_t)v; break;
        default: *(volatile uint64_t *)p = v; break;
    }
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* Returns whether the run has a memory model in which loads may return older values (weak) or
 * stores may be late (tso). */
static bool memory_models(void)
{
    return S->o.model != SIM_SC && S->o.strategy != SIM_TIMED;
}

/* Returns the entry of this key in the hash table or, if there is none, the free entry for it. */
static struct memory_entry *memory_entry(struct memory_entry *table, uintptr_t key)
{
    for (uint32_t i = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 40);; i++) {
        struct memory_entry *e = &table[i % MEMORY_TABLE];
        if (e->run != M->run || e->key == key) return e;
    }
}

/* Returns the place of address p, which has the history of the values stored there. If p has no
 * place, makes one if `make` is true, otherwise returns NULL. */
static struct memory_place *memory_find(const void *p, bool make)
{
    struct memory_entry *e = memory_entry(M->place_of, (uintptr_t)p);

    if (e->run == M->run) return &M->place[e->at];
    if (!make) return NULL;
    if (M->places == MEMORY_MOST) sim_fail("too many atomic places for the simulator");
    *e = (struct memory_entry){(uintptr_t)p, M->run, M->places++};
    struct memory_place *l = &M->place[e->at];
    l->address = (uintptr_t)p;
    l->last = 0;
    return l;
}

/* Begins the history of the place l with one value, the one in memory, which all threads know. */
static void memory_begin(struct memory_place *l, int size)
{
    memset(l->seen, 0, sizeof l->seen);
    memset(l->missed, 0, sizeof l->missed);
    l->size = (uint8_t)size;
    l->first = l->last = 1;
    struct memory_value *v = &l->value[1];
    memset(v, 0, sizeof *v);
    v->value = memory_read((const void *)l->address, size);
}

static struct memory_value *memory_value(struct memory_place *l, uint32_t n)
{
    return &l->value[n % MEMORY_VALUES];
}

/* Returns the place for an atomic access to `size` bytes at p. */
static struct memory_place *memory_place(const void *p, int size)
{
    struct memory_place *l = memory_find(p, true);

    /* The history begins again if the place is new, if a plain store has changed the value, or if
     * the earlier accesses had another size. */
    if (l->last == 0 || l->size != size || memory_value(l, l->last)->value != memory_read(p, size))
        memory_begin(l, size);
    return l;
}

static bool memory_knows(const struct sim_thread *t, const struct memory_value *v)
{
    return v->time <= t->view.at[v->by];
}

/* Chooses which value of the place l a load of thread t returns. Returns its number. */
static uint32_t memory_choose(struct sim_thread *t, struct memory_place *l)
{
    uint32_t low = l->first > l->seen[t->id] ? l->first : l->seen[t->id];
    uint32_t n = l->last;

    while (n > low && !memory_knows(t, memory_value(l, n))) n--;
    if (n == l->last || S->o.model == SIM_TSO || l->missed[t->id] >= MEMORY_STALE ||
        sim_random() % (uint32_t)S->o.stale_in != 0) {
        l->missed[t->id] = 0;
        return l->last;
    }
    n += sim_random() % (l->last - n);
    l->missed[t->id]++;
    return n;
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static bool memory_acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

static bool memory_releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* Updates the vector clocks of the thread t after it has read the value v with this order. */
static void memory_learn(struct sim_thread *t, const struct memory_value *v, int order)
{
    if (memory_acquires(order)) {
        sim_clock_join(&t->hb, &v->carries);
        sim_clock_join(&t->view, &v->carries);
    }
    sim_clock_join(&t->pending, &v->carries);
    if (v->time > t->pending.at[v->by]) t->pending.at[v->by] = v->time;
}

/* Adds the value x, which thread t stores, to the history of l. Returns the new element, in which
 * the caller sets `carries`. */
static struct memory_value *memory_append(struct sim_thread *t, struct memory_place *l, uint64_t x)
{
    uint32_t n = ++l->last;

    if (n - l->first >= MEMORY_VALUES) l->first = n - MEMORY_VALUES + 1;
    struct memory_value *v = memory_value(l, n);
    v->value = x;
    v->by = (uint8_t)t->id;
    v->time = ++t->hb.at[t->id];
    t->view.at[t->id] = v->time;
    l->seen[t->id] = n;
    return v;
}

/* Advances the clock of t after a release, so that its later steps do not count as released. */
static void memory_tick(struct sim_thread *t)
{
    t->view.at[t->id] = ++t->hb.at[t->id];
}

static void memory_full_fence(struct sim_thread *t)
{
    sim_clock known = t->view;

    sim_clock_join(&known, &t->pending);
    sim_clock_join(&M->fences, &known);
    sim_clock_join(&t->view, &M->fences);
    sim_clock_join(&t->hb, &t->pending);
    t->released = t->hb;
    memory_tick(t);
}

/* ---- Late stores (tso) ----------------------------------------------------------------------- */

static bool memory_late(void)
{
    return S->o.model == SIM_TSO && S->o.strategy != SIM_TIMED;
}

/* Makes the oldest late store of thread i reach memory: all threads see it from now on. */
static void memory_arrive(int i)
{
    struct memory_late *late = M->late[i], first = late[0];
    struct sim_thread *t = &S->thread[i];

    M->late_all--;
    memmove(late, late + 1, (size_t)--M->late_n[i] * sizeof *late);
    sim_heap_check(first.p, (size_t)first.size, NULL);
    if (t == S->now) { /* undoes the late stores of t, so that memory is as other threads see it */
        for (int j = M->late_n[i]; j-- > 0;) memory_write(late[j].p, late[j].size, late[j].before);
        memory_write(first.p, first.size, first.before);
    }
    struct memory_value *v = memory_append(t, memory_place(first.p, first.size), first.value);
    v->carries = first.carries;
    memory_write(first.p, first.size, first.value);
    if (t != S->now) return;
    sim_memory_resume(t);
}

void sim_memory_leave(struct sim_thread *t)
{
    if (M->late_all == 0) return;
    struct memory_late *late = M->late[t->id];
    for (int i = M->late_n[t->id]; i-- > 0;) memory_write(late[i].p, late[i].size, late[i].before);
}

void sim_memory_resume(struct sim_thread *t)
{
    if (M->late_all == 0) return;
    struct memory_late *late = M->late[t->id];
    for (int i = 0; i < M->late_n[t->id]; i++) {
        late[i].before = memory_read(late[i].p, late[i].size);
        memory_write(late[i].p, late[i].size, late[i].value);
    }
}

void sim_memory_drain(struct sim_thread *t)
{
    if (t == NULL || t->id >= SIM_CLOCKS) return;
    while (M->late_n[t->id] > 0) memory_arrive(t->id);
}

void sim_memory_tick(void)
{
    if (M->late_all == 0 || sim_random() % 3 != 0) return;
    int skip = (int)(sim_random() % (uint32_t)S->highest);
    for (int k = 0; k < S->highest; k++) {
        int i = (skip + k) % S->highest;
        if (M->late_n[i] == 0) continue;
        memory_arrive(i);
        return;
    }
}

static void memory_store_late(struct sim_thread *t, void *p, int size, uint64_t x, int order)
{
    if (M->late_n[t->id] == MEMORY_LATE) memory_arrive(t->id);
    struct memory_late *l = &M->late[t->id][M->late_n[t->id]++];
    M->late_all++;
    l->p = p;
    l->size = size;
    l->value = x;
    l->before = memory_read(p, size);
    l->carries = memory_releases(order) ? t->hb : t->released;
    memory_tick(t);
    memory_write(p, size, x);
}

/* Returns whether t has a late store to at least one of the `size` bytes at p. */
static bool memory_is_late(const struct sim_thread *t, const void *p, size_t size)
{
    for (int i = 0; i < M->late_n[t->id]; i++) {
        const struct memory_late *l = &M->late[t->id][i];
        if ((uintptr_t)l->p < (uintptr_t)p + size &&
            (uintptr_t)p < (uintptr_t)l->p + (size_t)l->size)
            return true;
    }
    return false;
}

/* ---- Races ----------------------------------------------------------------------------------- */

/* Returns the shadow of the 8 bytes with this number (address / 8). If they have none, makes one if
 * `make` is true and there is space, otherwise returns NULL. */
static struct memory_shadow *memory_shadow(uintptr_t granule, bool make)
{
    struct memory_entry *e = memory_entry(M->shadow_of, granule);

    if (e->run == M->run) return &M->shadow[e->at];
    if (!make || M->shadows == MEMORY_MOST) return NULL;
    *e = (struct memory_entry){granule, M->run, M->shadows++};
    struct memory_shadow *s = &M->shadow[e->at];
    /* `readers` is 0, which says that read_mask and read have no valid elements. */
    memset(s, 0, offsetof(struct memory_shadow, read_mask));
    return s;
}

/* Returns whether an access that thread `by` made at `time` (on its clock) happens before the next
 * step of t. */
static bool memory_after(const struct sim_thread *t, uint8_t by, uint32_t time)
{
    return by == t->id || time <= t->hb.at[by];
}

/* Fails the run because of a race at p: `what` is the access of the running thread at pc, and
 * `other` the thread that made the earlier access. */
static void memory_race(const void *p, const char *what, int other, const void *pc,
                        const void *other_pc)
{
    char buffer[64];

    sim_trace(other_pc, "the other access was here, at %u, and thread %d knows %u",
              other_pc != NULL ? memory_shadow((uintptr_t)p >> 3, true)->write : 0, S->now->id,
              S->now->hb.at[other]);
    sim_trace(pc, "%s of %s", what, sim_where(p, buffer, sizeof buffer));
    sim_fail("data race: %s of %s with thread %d", what, sim_where(p, buffer, sizeof buffer),
             other);
}

static void memory_check_one(const void *p, struct memory_shadow *s, uint8_t mask, bool write,
                             bool plain, const void *pc)
{
    struct sim_thread *t = S->now;

    if ((s->write_mask & mask) != 0 && !memory_after(t, s->writer, s->write))
        memory_race(p, write ? "write" : "read", s->writer, pc, s->write_pc);
    if (plain && (s->atomic_mask & mask) != 0 && !memory_after(t, s->atomic_by, s->atomic))
        memory_race(p, write ? "plain write" : "plain read", s->atomic_by, pc, NULL);
    if (!write) return;
    for (uint32_t left = s->readers; left != 0; left &= left - 1) {
        int i = __builtin_ctz(left);
        if ((s->read_mask[i] & mask) != 0 && !memory_after(t, (uint8_t)i, s->read[i]))
            memory_race(p, "write after read", i, pc, NULL);
    }
}

static void memory_note(struct memory_shadow *s, uint8_t mask, bool write, bool plain,
                        const void *pc)
{
    struct sim_thread *t = S->now;
    uint32_t time = t->hb.at[t->id];

    if (plain && write) {
        s->writer = (uint8_t)t->id;
        s->write = time;
        s->write_mask = mask;
        s->write_pc = pc;
    } else if (plain) {
        if (s->read[t->id] != time || (s->readers >> t->id & 1) == 0) s->read_mask[t->id] = 0;
        s->read[t->id] = time;
        s->read_mask[t->id] |= mask;
        s->readers |= 1u << t->id;
    } else if (write) {
        s->atomic_by = (uint8_t)t->id;
        s->atomic = time;
        s->atomic_mask = mask;
    }
}

static void memory_races(const void *p, size_t size, bool write, bool plain, const void *pc)
{
    uintptr_t at = (uintptr_t)p, end = at + size;

    /* Without a memory model the vector clocks are not complete. */
    if (!S->o.races || !memory_models()) return;
    /* A known race that is not checked: a thief copies words of a cell with atomic loads while the
     * owner may store arguments there with plain stores; see docs/memory-model.md. */
    if (!plain && !write && sim_in_range(p) && (at & 63) >= 16) return;
    while (at < end) {
        uintptr_t next = (at | 7) + 1;
        if (next > end) next = end;
        uint8_t mask = (uint8_t)(((1u << (next - at)) - 1) << (at & 7));
        struct memory_shadow *s = memory_shadow(at >> 3, true);
        if (s != NULL) {
            memory_check_one((const void *)at, s, mask, write, plain, pc);
            memory_note(s, mask, write, plain, pc);
        }
        at = next;
    }
}

/* ---- Accesses -------------------------------------------------------------------------------- */

static void memory_enter(const void *p, int size, bool write, bool locked, const void *pc)
{
    sim_point();
    if (S->o.strategy == SIM_TIMED) {
        sim_cost_access(p, (size_t)size, write, locked);
        return;
    }
    sim_heap_check(p, (size_t)size, pc);
    memory_races(p, (size_t)size, write, false, pc);
}

uint64_t sim_load(const void *p, int size, int order, const void *pc)
{
    struct sim_thread *t;
    char buffer[64];

    memory_enter(p, size, false, false, pc);
    if (!memory_models()) return memory_read(p, size);
    t = S->now;
    if (memory_late() && memory_is_late(t, p, (size_t)size)) return memory_read(p, size);
    struct memory_place *l = memory_place(p, size);
    uint32_t n = memory_choose(t, l);
    struct memory_value *v = memory_value(l, n);
    l->seen[t->id] = n;
    memory_learn(t, v, order);
    sim_trace(pc, "load  %s = 0x%llx%s", sim_where(p, buffer, sizeof buffer),
              (unsigned long long)v->value, n == l->last ? "" : "  (older)");
    return v->value;
}

void sim_store(void *p, int size, uint64_t x, int order, const void *pc)
{
    struct sim_thread *t;
    char buffer[64];

    memory_enter(p, size, true, order == __ATOMIC_SEQ_CST, pc);
    /* The compiler does not report all accesses to the stack. They would miss a late store, so
     * stores to the stack of the running thread are not late. */
    bool own = (uintptr_t)p - (uintptr_t)S->now->stack < SIM_STACK;
    if (memory_late() && order != __ATOMIC_SEQ_CST && !own) {
        memory_store_late(S->now, p, size, x, order);
        sim_trace(pc, "store %s = 0x%llx  (late)", sim_where(p, buffer, sizeof buffer),
                  (unsigned long long)x);
        return;
    }
    if (memory_models()) {
        t = S->now;
        sim_memory_drain(t);
        if (order == __ATOMIC_SEQ_CST) memory_full_fence(t);
        struct memory_value *v = memory_append(t, memory_place(p, size), x);
        v->carries = memory_releases(order) ? t->hb : t->released;
        memory_tick(t);
        sim_trace(pc, "store %s = 0x%llx", sim_where(p, buffer, sizeof buffer),
                  (unsigned long long)x);
        if (order == __ATOMIC_SEQ_CST) memory_full_fence(t);
    }
    memory_write(p, size, x);
}

static uint64_t memory_apply(enum sim_rmw op, uint64_t old, uint64_t v)
{
    switch (op) {
        case SIM_SWAP: return v;
        case SIM_ADD: return old + v;
        case SIM_SUB: return old - v;
        case SIM_AND: return old & v;
        case SIM_OR: return old | v;
        default: return old ^ v;
    }
}

/* Adds the value x to the history of l: the store of a read-modify-write of t, which has just read
 * the last value. */
static void memory_replace(struct sim_thread *t, struct memory_place *l, uint64_t x, int order)
{
    sim_clock before = memory_value(l, l->last)->carries;
    struct memory_value *v = memory_append(t, l, x);

    v->carries = memory_releases(order) ? t->hb : t->released;
    sim_clock_join(&v->carries, &before);
    memory_tick(t);
}

static uint64_t memory_cut(uint64_t v, int size)
{
    return size == 8 ? v : v & (((uint64_t)1 << (8 * size)) - 1);
}

uint64_t sim_rmw(void *p, int size, enum sim_rmw op, uint64_t v, int order, const void *pc)
{
    char buffer[64];

    memory_enter(p, size, true, true, pc);
    sim_memory_drain(S->now);
    uint64_t old = memory_read(p, size);
    uint64_t x = memory_cut(memory_apply(op, old, v), size);
    if (memory_models()) {
        struct sim_thread *t = S->now;
        struct memory_place *l = memory_place(p, size);
        bool fence = order == __ATOMIC_SEQ_CST;
        if (fence) memory_full_fence(t);
        memory_learn(t, memory_value(l, l->last), order);
        memory_replace(t, l, x, order);
        if (fence) memory_full_fence(t);
        sim_trace(pc, "rmw   %s = 0x%llx -> 0x%llx", sim_where(p, buffer, sizeof buffer),
                  (unsigned long long)old, (unsigned long long)x);
    }
    memory_write(p, size, x);
    return old;
}

bool sim_cas(void *p, int size, uint64_t *old, uint64_t x, int order, const void *pc)
{
    char buffer[64];

    memory_enter(p, size, true, true, pc);
    sim_memory_drain(S->now);
    uint64_t is = memory_read(p, size);
    bool same = is == memory_cut(*old, size);
    if (memory_models()) {
        struct sim_thread *t = S->now;
        struct memory_place *l = memory_place(p, size);
        bool fence = order == __ATOMIC_SEQ_CST;
        if (fence) memory_full_fence(t);
        memory_learn(t, memory_value(l, l->last), order);
        l->seen[t->id] = l->last;
        if (same) memory_replace(t, l, x, order);
        if (fence) memory_full_fence(t);
        sim_trace(pc, "cas   %s = 0x%llx -> 0x%llx%s", sim_where(p, buffer, sizeof buffer),
                  (unsigned long long)is, (unsigned long long)x, same ? "" : "  (fails)");
    }
    if (same)
        memory_write(p, size, x);
    else
        *old = is;
    return same;
}

void sim_fence(int order, const void *pc)
{
    sim_point();
    sim_trace(pc, "fence");
    if (S->o.strategy == SIM_TIMED) {
        sim_cost_access(NULL, 0, true, true);
        return;
    }
    struct sim_thread *t = S->now;
    if (order == __ATOMIC_SEQ_CST) {
        sim_memory_drain(t);
        memory_full_fence(t);
        return;
    }
    if (order != __ATOMIC_RELEASE) {
        sim_clock_join(&t->hb, &t->pending);
        sim_clock_join(&t->view, &t->pending);
    }
    if (order == __ATOMIC_ACQUIRE) return;
    t->released = t->hb;
    memory_tick(t);
}

/* fji_fence_thief(): a full fence with weak. With sc and tso it does nothing: x86-64, which tso
 * stands for, does not reorder loads with loads. */
void sim_fence_thief(const void *pc)
{
    if (S->o.model == SIM_WEAK) sim_fence(__ATOMIC_SEQ_CST, pc);
}

void sim_barrier(const void *pc)
{
    sim_point();
    sim_trace(pc, "heavy fence");
    if (S->o.strategy == SIM_TIMED) {
        sim_cost_barrier();
        return;
    }
    for (int i = 0; i < S->highest; i++) sim_memory_drain(&S->thread[i]);
    /* The first turn collects in `fences` what each thread knows. After the second turn every
     * thread knows all of it. */
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < S->highest; i++)
            if (S->thread[i].state != SIM_NONE) memory_full_fence(&S->thread[i]);
}

void sim_plain(const void *p, size_t size, bool write, const void *pc)
{
    if (S->o.strategy == SIM_TIMED) {
        sim_cost_access(p, size, write, false);
        return;
    }
    /* All simulated threads have their thread-local variables and errno at the same addresses, so
     * accesses to them are not checked. */
    if (size == 0 || (uintptr_t)p - (uintptr_t)S->tls < S->tls_bytes || p == &errno) return;
    sim_heap_check(p, size, pc);
    memory_races(p, size, write, true, pc);
    if (!write || !memory_models()) return;
    if (memory_late() && memory_is_late(S->now, p, size)) sim_memory_drain(S->now);
    for (uintptr_t a = (uintptr_t)p & ~(uintptr_t)3; a < (uintptr_t)p + size; a += 4) {
        struct memory_place *l = memory_find((const void *)a, false);
        if (l != NULL) l->last = 0;
    }
}

void sim_memory_forget(const void *p, size_t size)
{
    for (uintptr_t a = (uintptr_t)p; a < (uintptr_t)p + size; a += 4) {
        struct memory_place *l = memory_find((const void *)a, false);
        if (l != NULL) l->last = 0;
        struct memory_shadow *s = memory_shadow(a >> 3, false);
        if (s == NULL) continue;
        s->write_mask = s->atomic_mask = 0;
        s->readers = 0;
    }
}

/* ---- Threads --------------------------------------------------------------------------------- */

void sim_memory_inherit(struct sim_thread *child, const struct sim_thread *from)
{
    if (child->id >= SIM_CLOCKS || from->id >= SIM_CLOCKS) return;
    /* The clocks of an ended thread with the same id are kept and joined with those of `from`. The
     * new thread uses the stack of the ended thread, and must not race with it there. */
    sim_clock_join(&child->hb, &from->hb);
    sim_clock_join(&child->view, &from->view);
    memset(&child->pending, 0, sizeof child->pending);
    memset(&child->released, 0, sizeof child->released);
    /* Advances the clock of `from`, so that its later steps do not count as known to the new
     * thread. */
    struct sim_thread *parent = &S->thread[from->id];
    parent->view.at[from->id] = ++parent->hb.at[from->id];
}

void sim_memory_join(struct sim_thread *t, const struct sim_thread *ended)
{
    if (t->id >= SIM_CLOCKS || ended->id >= SIM_CLOCKS) return;
    sim_clock_join(&t->hb, &ended->hb);
    sim_clock_join(&t->view, &ended->view);
}
