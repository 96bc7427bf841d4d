/* SPDX-License-Identifier: MIT */
/*
 * wheel.c - the timing wheel compared with a sorted list
 *
 * There are no threads and no clock. Moments are added and removed at random, and time advances by
 * steps of every size. The wheel must return the same moments as the oracle, in the same order, and
 * its invariants must hold.
 */
#include "queue/wheel.h"

#include <stdlib.h>
#include <string.h>

#include "fjtest.h"

#define MANY 512

static fji_wheel wheel;
static fji_moment moments[MANY];
static bool in[MANY];

/* The oracle: the earliest moment in the wheel, found by reading all of them. */
static int earliest(void)
{
    int best = -1;

    for (int i = 0; i < MANY; i++)
        if (in[i] && (best < 0 || moments[i].when < moments[best].when)) best = i;
    return best;
}

/* Returns a random distance of any order of magnitude, sometimes 0 or the maximum. */
static int64_t distance(uint64_t *random)
{
    uint64_t r = fjt_random(random);

    if (r % 64 == 0) return 0;
    if (r % 64 == 1) return INT64_MAX;
    return (int64_t)(fjt_random(random) >> (1 + r / 64 % 62));
}

static int64_t later(int64_t now, int64_t by)
{
    return by > INT64_MAX - now ? INT64_MAX : now + by;
}

static void take_due(int64_t now)
{
    for (;;) {
        int want = earliest();
        fji_moment *m = fji_wheel_take(&wheel, now);
        if (want < 0 || moments[want].when > now) {
            CHECK(m == NULL);
            return;
        }
        CHECK(m != NULL);
        long got = m - moments;
        CHECK(in[got]);
        CHECK_EQ(m->when, moments[want].when);
        CHECK(!fji_moment_waits(m));
        in[got] = false;
    }
}

static void check_next(int64_t now)
{
    int want = earliest();
    int64_t next = fji_wheel_next(&wheel);

    (void)now;
    if (want < 0)
        CHECK_EQ(next, INT64_MAX);
    else
        CHECK(next <= moments[want].when);
}

static void random_steps(long steps, int64_t now, int check_every)
{
    uint64_t random = fjt_seed();

    memset(in, 0, sizeof in);
    memset(moments, 0, sizeof moments);
    fji_wheel_init(&wheel, now);
    for (long n = 0; n < steps; n++) {
        uint64_t r = fjt_random(&random);
        int i = (int)(r / 8 % MANY);
        if (r % 8 < 6) {
            if (in[i]) {
                CHECK(fji_moment_waits(&moments[i]));
                fji_wheel_remove(&wheel, &moments[i]);
                in[i] = false;
            } else {
                moments[i].when = r % 8 == 0 ? now - distance(&random) % 1000000000
                                             : later(now, distance(&random));
                fji_wheel_add(&wheel, &moments[i]);
                in[i] = true;
            }
        } else {
            int64_t by = distance(&random);
            if (n % 16 != 0) by %= 1000000000; /* usually less than a second */
            if (later(now, by) < INT64_MAX / 2) now = later(now, by);
            take_due(now);
        }
        check_next(now);
        if (n % check_every == 0) CHECK(fji_wheel_valid(&wheel));
    }
}

FJ_TEST(moments_come_out_as_from_a_sorted_list, 120)
{
    random_steps(fjt_rounds(1000000), 123456789012345, 1000);
}

FJ_TEST(invariants_of_the_wheel_hold_after_every_step, 60)
{
    random_steps(fjt_rounds(20000), 0, 1);
    random_steps(fjt_rounds(20000), 1, 1);
    random_steps(fjt_rounds(20000), (int64_t)1 << 61, 1);
}

/* Near moments are in the heap. Moments in the middle of the heap are removed too. */
FJ_TEST(removal_from_the_heap_keeps_the_order, 60)
{
    uint64_t random = fjt_seed();

    for (long round = fjt_rounds(300); round > 0; round--) {
        int64_t now = (int64_t)1 << 40;
        memset(in, 0, sizeof in);
        memset(moments, 0, sizeof moments);
        fji_wheel_init(&wheel, now);
        for (int i = 0; i < MANY; i++) {
            moments[i].when = now - (int64_t)(fjt_random(&random) % 5000);
            fji_wheel_add(&wheel, &moments[i]);
            in[i] = true;
        }
        for (int k = 0; k < MANY / 2; k++) {
            int i = (int)(fjt_random(&random) % MANY);
            if (in[i]) fji_wheel_remove(&wheel, &moments[i]);
            in[i] = false;
            if (k % 32 == 0) CHECK(fji_wheel_valid(&wheel));
        }
        take_due(now);
        CHECK_EQ(earliest(), -1);
    }
}

FJ_TEST(what_is_never_due_hides_nothing, 10)
{
    fji_wheel_init(&wheel, 1000);
    memset(moments, 0, sizeof moments);
    moments[0].when = INT64_MAX;
    moments[1].when = INT64_MAX / 2;
    moments[2].when = -5;
    moments[3].when = 2000;
    for (int i = 0; i < 4; i++) fji_wheel_add(&wheel, &moments[i]);
    CHECK(fji_wheel_take(&wheel, 1000) == &moments[2]);
    CHECK(fji_wheel_take(&wheel, 1999) == NULL);
    CHECK(fji_wheel_take(&wheel, 2000) == &moments[3]);
    CHECK(fji_wheel_take(&wheel, INT64_MAX / 2) == &moments[1]);
    CHECK(fji_wheel_take(&wheel, INT64_MAX / 2) == NULL);
    CHECK(fji_wheel_take_any(&wheel) == &moments[0]);
    CHECK(fji_wheel_take_any(&wheel) == NULL);
    CHECK_EQ(fji_wheel_next(&wheel), INT64_MAX);
}
