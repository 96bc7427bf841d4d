/* SPDX-License-Identifier: MIT */
/*
 * spurious.c - events that the system may produce at any time, although nothing has failed
 *
 * A wait may return without a reason or begin late, a wake-up may come late or twice, a clock may
 * jump or stand still. None of these events is an error, so no call of the library may return an
 * error because of one. A program first gets one event of a kind: in the first run at the first
 * call of that kind, in the next run at the second call, and so on. Then it gets the event at every
 * call, up to the number of consecutive events in the table.
 */
#include "programs.h"

static const struct {
    enum fji_fault kind;
    long in_a_row;
} kinds[] = {
    {FJI_FAULT_WAIT, FOR_EVER},      {FJI_FAULT_WAIT_LATE, 100}, {FJI_FAULT_WAKE_LATE, 100},
    {FJI_FAULT_WAKE_MORE, FOR_EVER}, {FJI_FAULT_JUMP, 50},       {FJI_FAULT_STILL, 2},
};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

static bool run_with_event(void (*run)(int), enum fji_fault kind, long n, long count)
{
    int threads = threads_alive();
    long before = fji_fault_calls(kind);

    set_fault(kind, n, count);
    run((int)n);
    calm();
    await_threads(threads);
    return fji_fault_calls(kind) - before >= n;
}

static void run_with_all(const char *name, void (*run)(int))
{
    long points = 0;

    need_faults();
    for (size_t i = 0; i < N_KINDS; i++) {
        long most = fjt_rounds(kinds[i].kind == FJI_FAULT_STILL ? 4 : 10);
        for (long n = 1; n <= most; n++) points += run_with_event(run, kinds[i].kind, n, 1);
        points += run_with_event(run, kinds[i].kind, 1, kinds[i].in_a_row);
    }
    CHECK(points > 0);
    printf("# %s: %ld spurious events\n", name, points);
    fflush(stdout);
}

#define TAKE(p)                                   \
    FJ_TEST(p##_whatever_waits_and_clocks_do, 60) \
    {                                             \
        run_with_all(#p, run_##p);                \
    }

PROGRAMS(TAKE)
