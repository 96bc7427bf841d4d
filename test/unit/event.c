/* SPDX-License-Identifier: MIT */
/*
 * event.c - events of the platform layer: descriptors that a thread can poll
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

#include "fjtest.h"
#include "plat/plat.h"

static bool is_set(const fji_event *e)
{
    struct pollfd p = {.fd = e->fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

FJ_TEST(event_is_readable_until_it_is_cleared, 10)
{
    fji_event e;

    CHECK(fji_plat_event_open(&e));
    CHECK(!is_set(&e));
    errno = 33;
    for (int times = 0; times < 100; times++) {
        for (int i = 0; i < times; i++) fji_plat_event_set(&e);
        CHECK_EQ(is_set(&e), times > 0);
        fji_plat_event_clear(&e);
        CHECK(!is_set(&e));
    }
    fji_plat_event_close(&e);
    CHECK_EQ(errno, 33);
    CHECK_EQ(fcntl(e.fd, F_GETFD), -1);
}

/* A pipe has room for 65536 bytes; the event stays set if it is full. */
FJ_TEST(event_that_is_set_very_often_does_not_block, 10)
{
    fji_event e;

    CHECK(fji_plat_event_open(&e));
    for (int i = 0; i < 70000; i++) fji_plat_event_set(&e);
    CHECK(is_set(&e));
    fji_plat_event_clear(&e);
    CHECK(!is_set(&e));
    fji_plat_event_close(&e);
}

FJ_TEST(event_is_not_inherited_by_other_programs, 10)
{
    fji_event e;

    CHECK(fji_plat_event_open(&e));
    CHECK_EQ(fcntl(e.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    CHECK_EQ(fcntl(e.writer, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    fji_plat_event_close(&e);
}

FJ_TEST(event_is_refused_if_there_is_no_descriptor, 10)
{
    struct rlimit before, none;
    fji_event e = {-5, -6};

    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    errno = 33;
    CHECK(!fji_plat_event_open(&e));
    CHECK_EQ(errno, 33);
    CHECK(e.fd == -5 && e.writer == -6);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0); /* LeakSanitizer opens files at the exit */
}
