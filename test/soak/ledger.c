/* SPDX-License-Identifier: MIT */
/*
 * ledger.c - every task has a number; each issued number must be run exactly once
 *
 * There are two accounts, one of the issued numbers and one of the numbers done. Each holds a
 * count, the sum of the numbers, the sum of their squares and the xor of their hashes. They differ
 * if a task is lost, run twice, or run with the data of another task. Each thread writes to a page
 * of its own, so that the accounts do not synchronise threads and hide a race. If there are more
 * than 1024 threads, some share a page.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "soak.h"

#define PAGES 1024

struct account {
    _Atomic uint64_t count, sum, squares, hashes;
};

static struct page {
    _Alignas(128) struct account issued, done;
} pages[PAGES];

static _Atomic uint64_t threads;
static _Thread_local struct page *mine;
static _Thread_local uint64_t next;

static struct page *page_of_thread(void)
{
    if (mine == NULL) {
        uint64_t n = atomic_fetch_add(&threads, 1);
        mine = &pages[n % PAGES];
        next = (n + 1) << 36;
    }
    return mine;
}

/* The function is invertible, so two numbers never have the same hash. */
static uint64_t hash(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0xd6e8feb86659fd93u;
    return x ^ (x >> 27);
}

static void account_add(struct account *a, uint64_t id)
{
    atomic_fetch_add_explicit(&a->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->sum, id, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->squares, id * id, memory_order_relaxed);
    atomic_fetch_xor_explicit(&a->hashes, hash(id), memory_order_relaxed);
}

uint64_t ledger_issue(void)
{
    struct page *p = page_of_thread();
    uint64_t id = next++;

    account_add(&p->issued, id);
    return id;
}

void ledger_done(uint64_t id)
{
    account_add(&page_of_thread()->done, id);
}

struct total {
    uint64_t count, sum, squares, hashes;
};

static void total_add(struct total *t, struct account *a)
{
    t->count += atomic_load(&a->count);
    t->sum += atomic_load(&a->sum);
    t->squares += atomic_load(&a->squares);
    t->hashes ^= atomic_load(&a->hashes);
}

static void totals(struct total *issued, struct total *done)
{
    for (int i = 0; i < PAGES; i++) {
        total_add(issued, &pages[i].issued);
        total_add(done, &pages[i].done);
    }
}

uint64_t ledger_count(void)
{
    struct total issued = {0}, done = {0};

    totals(&issued, &done);
    return issued.count;
}

bool ledger_balanced(char *why, size_t cap)
{
    struct total issued = {0}, done = {0};

    totals(&issued, &done);
    bool same = issued.count == done.count && issued.sum == done.sum &&
                issued.squares == done.squares && issued.hashes == done.hashes;
    snprintf(why, cap,
             "issued %" PRIu64 ", done %" PRIu64 ", sums differ by %" PRId64 ", squares by %" PRId64
             ", hashes by %" PRIx64,
             issued.count, done.count, (int64_t)(done.sum - issued.sum),
             (int64_t)(done.squares - issued.squares), done.hashes ^ issued.hashes);
    return same;
}
