/* SPDX-License-Identifier: MIT */
/*
 * sim/event.c - events on the simulator: words that are 1 if the event is set
 *
 * plat.h says what each function does. The accesses are relaxed, because an event implies no memory
 * order.
 */
#include "../plat.h"
#include "engine.h"

#define HERE __builtin_return_address(0)

/* The descriptors are EVENT_FIRST and the following numbers. The simulator restores the array before
 * every run. */
#define EVENT_FIRST 1000
#define EVENTS 8

static struct {
    bool open;
    uint32_t word;
} event[EVENTS];

static uint32_t *event_word(int fd)
{
    int i = fd - EVENT_FIRST;

    if (i < 0 || i >= EVENTS || !event[i].open) sim_fail("event %d is not open", fd);
    return &event[i].word;
}

bool fji_plat_event_open(fji_event *e)
{
    sim_point();
    if (fji_fault_now(FJI_FAULT_EVENT)) return false;
    for (int i = 0; i < EVENTS; i++) {
        if (event[i].open) continue;
        event[i].open = true;
        sim_store(&event[i].word, 4, 0, __ATOMIC_RELAXED, HERE);
        *e = (fji_event){EVENT_FIRST + i, EVENT_FIRST + i};
        return true;
    }
    sim_fail("too many events for the simulator");
}

void fji_plat_event_set(const fji_event *e)
{
    uint32_t *word = event_word(e->writer);

    (void)sim_rmw(word, 4, SIM_SWAP, 1, __ATOMIC_RELAXED, HERE);
    sim_wake(word, true);
}

void fji_plat_event_clear(const fji_event *e)
{
    (void)sim_rmw(event_word(e->fd), 4, SIM_SWAP, 0, __ATOMIC_RELAXED, HERE);
}

void fji_plat_event_close(const fji_event *e)
{
    (void)event_word(e->fd);
    event[e->fd - EVENT_FIRST].open = false;
}

void sim_event_await(int fd)
{
    while (!sim_event_is_set(fd)) sim_wait(event_word(fd), 0, INT64_MAX);
}

bool sim_event_is_set(int fd)
{
    return sim_rmw(event_word(fd), 4, SIM_OR, 0, __ATOMIC_RELAXED, HERE) != 0;
}
