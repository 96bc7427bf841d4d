/* SPDX-License-Identifier: MIT */
/*
 * liberties.c - what a system may do although nobody likes it: waits that return for no reason
 * or begin late, wakes that come late or twice, a clock that jumps or stands still
 *
 * None of this is an error, so that no call may return one. Each comes once, at the first such
 * call, the second and so on, and then all the time, as long as a clock can do that.
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

static bool take_liberty(void (*run)(int), enum fji_fault kind, long n, long count)
{
    int threads = threads_alive();
    long before = fji_fault_calls(kind);

    set_fault(kind, n, count);
    run((int)n);
    calm();
    await_threads(threads);
    return fji_fault_calls(kind) - before >= n;
}

static void take_all(const char *name, void (*run)(int))
{
    long points = 0;

    need_faults();
    for (size_t i = 0; i < N_KINDS; i++) {
        long most = fjt_rounds(kinds[i].kind == FJI_FAULT_STILL ? 4 : 10);
        for (long n = 1; n <= most; n++) points += take_liberty(run, kinds[i].kind, n, 1);
        points += take_liberty(run, kinds[i].kind, 1, kinds[i].in_a_row);
    }
    CHECK(points > 0);
    printf("# %s: %ld liberties\n", name, points);
    fflush(stdout);
}

#define TAKE(p)                                   \
    FJ_TEST(p##_whatever_waits_and_clocks_do, 60) \
    {                                             \
        take_all(#p, run_##p);                    \
    }

PROGRAMS(TAKE)
