/* SPDX-License-Identifier: MIT */
/*
 * error.c - error codes, their names and texts, the version, and errno, which no call changes
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "inside.h"

struct code {
    int value;
    const char *name, *text;
};

static const struct code known[] = {
#define CODE(name, value, text) {value, #name, text},
    FJ_ERRORS(CODE)
#undef CODE
};

#define KNOWN (sizeof known / sizeof known[0])

FJ_TEST(every_code_has_its_name_and_text, 10)
{
    for (size_t i = 0; i < KNOWN; i++) {
        CHECK(strcmp(fj_error_name(known[i].value), known[i].name) == 0);
        CHECK(strcmp(fj_strerror(known[i].value), known[i].text) == 0);
        CHECK(strlen(known[i].text) > 0);
    }
}

FJ_TEST(codes_differ_and_only_success_is_zero, 10)
{
    CHECK_EQ(FJ_OK, 0);
    for (size_t i = 0; i < KNOWN; i++)
        for (size_t k = 0; k < i; k++) {
            CHECK(known[i].value != known[k].value);
            CHECK(strcmp(known[i].name, known[k].name) != 0);
            CHECK(strcmp(known[i].text, known[k].text) != 0);
        }
    for (size_t i = 0; i < KNOWN; i++) CHECK(known[i].value < 0 || known[i].value == FJ_OK);
}

FJ_TEST(codes_are_the_errno_numbers_of_linux, 10)
{
    CHECK_EQ(FJ_ENOMEM, -12);
    CHECK_EQ(FJ_EBUSY, -16);
    CHECK_EQ(FJ_EINVAL, -22);
    CHECK_EQ(FJ_EDEADLK, -35);
    CHECK_EQ(FJ_ENOTSUP, -95);
    CHECK_EQ(FJ_ETIMEDOUT, -110);
    CHECK_EQ(FJ_ECANCELED, -125);
    CHECK_EQ(FJ_EREJECTED, -1001);
    CHECK_EQ(FJ_ESATURATED, -1002);
    CHECK_EQ(FJ_EFAILED, -1003);
    CHECK_EQ(FJ_EAGAIN, -11);
    CHECK_EQ(FJ_PENDING, -1004);
}

FJ_TEST(positive_codes_are_the_users, 10)
{
    static const int codes[] = {1, 2, 12, 1001, INT_MAX};

    for (int i = 0; i < 5; i++) {
        CHECK(strcmp(fj_error_name(codes[i]), "user") == 0);
        CHECK(strcmp(fj_strerror(codes[i]), "code of the task") == 0);
    }
}

FJ_TEST(other_negative_codes_are_unknown, 10)
{
    static const int codes[] = {-1, -2, -1000, -1005, -99999, INT_MIN};

    for (int i = 0; i < 6; i++) {
        CHECK(strcmp(fj_error_name(codes[i]), "unknown") == 0);
        CHECK(strcmp(fj_strerror(codes[i]), "unknown error") == 0);
    }
}

FJ_TEST(version_of_the_library_is_that_of_the_header, 10)
{
    CHECK_EQ(fj_version(), FJ_VERSION);
    CHECK(FJ_VERSION > 0);
}

/* ---- errno ---------------------------------------------------------------------------------- */

#define OTHER 12345

static int slow_run(fj_task *t)
{
    (void)t;
    fjt_sleep_us(2000);
    return FJ_OK;
}

static int slow_action(void *arg)
{
    (void)arg;
    fjt_sleep_us(100);
    return FJ_OK;
}

FJ_TEST(creating_using_and_ending_a_pool_leaves_errno_alone, 10)
{
    fj_pool_options o = {0};
    fj_task t;
    fj_pool *pool;

    o.parallelism = 2;
    fj_task_init(&t, slow_run);
    errno = OTHER;
    CHECK_EQ(fj_pool_create(&pool, &o), FJ_OK);
    CHECK_EQ(errno, OTHER);
    CHECK_EQ(fj_submit(pool, &t), FJ_OK);
    CHECK_EQ(errno, OTHER);
    CHECK_EQ(fj_join(&t), FJ_OK);
    CHECK_EQ(errno, OTHER);
    for (int i = 0; i < 100; i++) CHECK_EQ(fj_execute(pool, slow_action, NULL), FJ_OK);
    CHECK_EQ(fj_invoke(pool, &t), FJ_OK);
    CHECK_EQ(errno, OTHER);
    CHECK_EQ(fj_pool_await_quiescence(pool, FJ_FOREVER), FJ_OK);
    CHECK_EQ(errno, OTHER);
    CHECK_EQ(fj_pool_destroy(pool), FJ_OK);
    CHECK_EQ(errno, OTHER);
}

FJ_TEST(waits_that_time_out_leave_errno_alone, 10)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_task t;

    fj_task_init(&t, slow_run);
    CHECK_EQ(fj_submit(pool, &t), FJ_OK);
    errno = OTHER;
    CHECK_EQ(fj_pool_await_termination(pool, 100000), FJ_ETIMEDOUT);
    CHECK_EQ(errno, OTHER);
    (void)!fj_pool_await_quiescence(pool, 100000);
    CHECK_EQ(errno, OTHER);
    CHECK_EQ(fj_join(&t), FJ_OK);
    CHECK_EQ(errno, OTHER);
    fjt_destroy(pool);
}

static void joins_inside(void *arg)
{
    fj_task t;

    (void)arg;
    for (int i = 0; i < 50; i++) {
        errno = OTHER;
        fj_task_init(&t, slow_run);
        fj_fork(&t);
        fjt_sleep_us(i * 10);
        errno = OTHER;
        CHECK_EQ(fj_join(&t), FJ_OK);
        CHECK_EQ(errno, OTHER);
    }
}

FJ_TEST(joins_inside_leave_errno_alone, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    inside(pool, joins_inside, NULL);
    fjt_destroy(pool);
}

FJ_TEST(common_pool_leaves_errno_alone, 10)
{
    fj_task t;

    fj_task_init(&t, slow_run);
    errno = OTHER;
    CHECK(fj_common_pool() != NULL);
    CHECK_EQ(errno, OTHER);
    CHECK(fj_available_parallelism() > 0);
    CHECK_EQ(errno, OTHER);
    fj_fork(&t);
    CHECK_EQ(errno, OTHER);
    CHECK_EQ(fj_join(&t), FJ_OK);
    CHECK_EQ(errno, OTHER);
}
