/* SPDX-License-Identifier: MIT */
/*
 * constants.c - a function refuses constants of another kind, and numbers that are no constant
 */
#include <forkjoin/algo.h>
#include <string.h>

#include "fjtest.h"

enum kind { POOL, CALLER, SCAN, STAGE, KINDS };

/* All constants that functions take, except those with the value 0, the default of each kind. */
static const struct {
    enum kind kind;
    long value;
} all[] = {
    {POOL, FJ_POOL_FIFO},      {POOL, FJ_POOL_CALLER_HELPS}, {POOL, FJ_POOL_SYMMETRIC},
    {CALLER, FJ_CALLER_HELPS}, {CALLER, FJ_CALLER_BLOCKS},   {SCAN, FJ_SCAN_EXCLUSIVE},
    {STAGE, FJ_STAGE_SERIAL},  {STAGE, FJ_STAGE_ORDERED},
};

enum { CONSTANTS = sizeof all / sizeof all[0] };

static int ran;

static int run(fj_task *t)
{
    (void)t;
    ran++;
    return FJ_OK;
}

static int no_item(void **item, void *arg)
{
    (void)item, (void)arg;
    ran++;
    return FJ_OK;
}

static int as_pool(long value)
{
    fj_pool_options o = {0};
    fj_pool *p = NULL;

    o.parallelism = 1;
    o.flags = (unsigned)value;
    int err = fj_pool_create(&p, &o);
    CHECK((p != NULL) == (err == FJ_OK));
    CHECK_EQ(fj_pool_destroy(p), FJ_OK);
    return err;
}

static int as_caller(long value)
{
    fj_task t;

    fj_task_init(&t, run);
    ran = 0;
    int err = fj_invoke_mode(NULL, &t, (enum fj_caller)value);
    CHECK_EQ(ran, err == FJ_OK);
    return err;
}

static int as_scan(long value)
{
    const int32_t in[3] = {1, 2, 3};
    int32_t out[3] = {7, 7, 7};
    int err = fj_scan_i32(in, out, 3, (unsigned)value, NULL);

    CHECK((out[2] == 7) == (err != FJ_OK));
    return err;
}

static int as_stage(long value)
{
    fj_stage stage = {no_item, NULL, (int)value};

    ran = 0;
    int err = fj_pipeline(&stage, 1, 1, NULL, NULL);
    CHECK((ran != 0) == (err == FJ_OK));
    return err;
}

static int (*const takes[KINDS])(long) = {as_pool, as_caller, as_scan, as_stage};

FJ_TEST(constants_of_one_kind_are_refused_as_another, 20)
{
    for (int i = 0; i < CONSTANTS; i++)
        for (int kind = 0; kind < KINDS; kind++)
            CHECK_EQ(takes[kind](all[i].value), kind == (int)all[i].kind ? FJ_OK : FJ_EINVAL);
    for (int kind = 0; kind < KINDS; kind++) CHECK_EQ(takes[kind](0), FJ_OK);
}

/* A constant of another kind is refused even together with a valid one. */
FJ_TEST(constants_of_two_kinds_in_one_are_refused, 20)
{
    for (int i = 0; i < CONSTANTS; i++)
        for (int k = 0; k < CONSTANTS; k++) {
            if (all[i].kind == all[k].kind) continue;
            CHECK((all[i].value & all[k].value) == 0);
            CHECK_EQ(takes[all[i].kind](all[i].value | all[k].value), FJ_EINVAL);
        }
}

FJ_TEST(numbers_that_are_no_constant_are_refused, 20)
{
    static const long numbers[] = {-1, 3, 77, 0x300, 0x1001, 0x30000, INT32_MAX, INT32_MIN};

    for (int i = 0; i < (int)(sizeof numbers / sizeof numbers[0]); i++)
        for (int kind = 0; kind < KINDS; kind++)
            if (kind != POOL || numbers[i] != 3) CHECK_EQ(takes[kind](numbers[i]), FJ_EINVAL);
    CHECK_EQ(takes[POOL](FJ_EINVAL), FJ_EINVAL);
}
