/* SPDX-License-Identifier: MIT */
/*
 * ctl.c - the control word: an operation on one field changes no other field
 *
 * Each operation runs on every combination of extreme values of the four fields. This file composes
 * words by its own shifts, because a wrong mask of ctl.h must not be used to check itself.
 */
#include "sched/ctl.h"
#include "fjtest.h"

static const int deficits[] = {-32768, -32767, -16384, -2, -1, 0, 1, 2, 16384, 32766, 32767};
static const int totals[] = {0, 1, 2, 16383, 16384, 32766, 32767};
static const uint32_t versions[] = {
    0, 1, 2, (1u << 16) - 1, 1u << 16, (1u << 17) - 2, (1u << 17) - 1};
static const uint32_t tops[] = {0, 1, 2, 16383, 16384, 32766, 32767};
static const int steps[] = {-32767, -256, -2, -1, 0, 1, 2, 256, 32767};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct fields {
    int deficit, total;
    uint32_t version, top;
};

static uint64_t word_of(struct fields f)
{
    return (uint64_t)(uint16_t)f.deficit << 47 | (uint64_t)f.total << 32 |
           (uint64_t)f.version << 15 | f.top;
}

static void check_fields(uint64_t c, struct fields f)
{
    CHECK_EQ(fji_ctl_deficit(c), f.deficit);
    CHECK_EQ(fji_ctl_total(c), f.total);
    CHECK_EQ(fji_ctl_version(c), f.version);
    CHECK_EQ(fji_ctl_top(c), f.top);
}

static void for_all(void (*check)(uint64_t c, struct fields f))
{
    for (size_t d = 0; d < COUNT(deficits); d++)
        for (size_t t = 0; t < COUNT(totals); t++)
            for (size_t v = 0; v < COUNT(versions); v++)
                for (size_t k = 0; k < COUNT(tops); k++) {
                    struct fields f = {deficits[d], totals[t], versions[v], tops[k]};
                    check(word_of(f), f);
                }
}

/* The value as 16 signed bits store it. */
static int wrapped(int deficit)
{
    return (int)(int16_t)(uint16_t)deficit;
}

FJ_TEST(ctl_reads_every_field, 10)
{
    for_all(check_fields);
}

static void check_add_active(uint64_t c, struct fields f)
{
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct fields want = f;
        want.deficit = wrapped(f.deficit + steps[i]);
        check_fields(fji_ctl_add_active(c, steps[i]), want);
    }
}

FJ_TEST(ctl_active_changes_nothing_else, 10)
{
    for_all(check_add_active);
}

static void check_add_total(uint64_t c, struct fields f)
{
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct fields want = f;
        want.total = (f.total + steps[i]) & 32767;
        check_fields(fji_ctl_add_total(c, steps[i]), want);
    }
}

FJ_TEST(ctl_total_changes_nothing_else, 10)
{
    for_all(check_add_total);
}

static void check_new_version(uint64_t c, struct fields f)
{
    struct fields want = f;
    want.version = (f.version + 1) & ((1u << 17) - 1);
    check_fields(fji_ctl_new_version(c), want);
}

FJ_TEST(ctl_version_changes_nothing_else, 10)
{
    for_all(check_new_version);
}

static void check_with_top(uint64_t c, struct fields f)
{
    for (size_t i = 0; i < COUNT(tops); i++) {
        struct fields want = f;
        want.top = tops[i];
        check_fields(fji_ctl_with_top(c, tops[i]), want);
    }
}

FJ_TEST(ctl_top_changes_nothing_else, 10)
{
    for_all(check_with_top);
}

FJ_TEST(ctl_version_goes_round_and_comes_back, 10)
{
    struct fields f = {-1, 32767, 0, 32767};
    uint64_t start = word_of(f), c = start;

    for (uint32_t i = 1; i < 1u << 17; i++) {
        c = fji_ctl_new_version(c);
        CHECK_EQ(fji_ctl_version(c), i);
        CHECK(c != start);
    }
    CHECK(fji_ctl_new_version(c) == start);
}

/* For all sizes of a pool, and both values of the sign bit. */
static void check_sign(uint64_t c, struct fields f)
{
    static const int sizes[] = {1, 2, 16384, 32766, 32767};

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t k = i; k < COUNT(sizes); k++)
            for (int blocked = 0; blocked < 3; blocked++) {
                fji_sizes s = {sizes[i], blocked, sizes[k]};
                bool few = f.total < s.parallelism + blocked;
                bool can = f.top != 0 || (few && f.total < s.most);
                uint64_t settled = fji_ctl_normalize(c, &s);
                CHECK_EQ((int64_t)settled < 0, f.deficit < 0 && can);
                CHECK(fji_ctl_normalize(c | (uint64_t)1 << 63, &s) == settled);
                check_fields(settled, f);
            }
}

FJ_TEST(ctl_is_negative_when_workers_are_missing_and_one_can_come, 20)
{
    for_all(check_sign);
}

/* The transitions of a pool of n workers that are started, go idle, wake, retire and exit. */
static void life(int n)
{
    struct fields f = {-n, 0, (1u << 17) - 1, 0};
    uint64_t c = word_of(f);

    for (int i = 0; i < n; i++) {
        c = fji_ctl_add_total(fji_ctl_add_active(c, 1), 1); /* spawn */
        check_fields(c, (struct fields){i + 1 - n, i + 1, f.version, 0});
    }
    for (int i = 0; i < n; i++) {
        c = fji_ctl_with_top(c, (uint32_t)i + 1); /* idle */
        c = fji_ctl_new_version(fji_ctl_add_active(c, -1));
        f.version = (f.version + 1) & ((1u << 17) - 1);
        check_fields(c, (struct fields){-i - 1, n, f.version, (uint32_t)i + 1});
    }
    for (int i = n; i > n / 2; i--) {
        c = fji_ctl_add_total(fji_ctl_with_top(c, (uint32_t)i - 1), -1); /* retire */
        check_fields(c, (struct fields){-n, i - 1, f.version, (uint32_t)i - 1});
    }
    for (int i = n / 2; i > 0; i--) {
        c = fji_ctl_add_active(fji_ctl_with_top(c, (uint32_t)i - 1), 1); /* wake */
        c = fji_ctl_add_total(fji_ctl_add_active(c, -1), -1);            /* exit */
        check_fields(c, (struct fields){-n, i - 1, f.version, (uint32_t)i - 1});
    }
}

FJ_TEST(ctl_counts_are_back_after_every_life_of_a_pool, 10)
{
    static const int sizes[] = {1, 2, 3, 64, 1000, 32766, FJ_MAX_WORKERS};

    for (size_t i = 0; i < COUNT(sizes); i++) life(sizes[i]);
}
