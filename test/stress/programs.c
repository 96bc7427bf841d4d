/* SPDX-License-Identifier: MIT */
/*
 * programs.c - random programs that use all of the library compute what a serial walk computes
 *
 * The programs are those of the fuzzers (test/fuzz/program.h). A test makes them from the seed, for
 * one kind of pool. If a program fails, the test prints its bytes. The fuzzer runs the same program
 * if it is given a file with these bytes.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fjtest.h"

/* These files are included, because only this program uses them besides the fuzzers. */
#include "fuzz/completers.c"
#include "fuzz/futures.c"
#include "fuzz/meddler.c"
#include "fuzz/plain.c"
#include "fuzz/program.c"

static uint8_t program[FJP_MOST_BYTES];
static size_t program_bytes;

/* ---- The functions that a program requires of its host -------------------------------------- */

void fjp_watch(fj_pool *pool)
{
    fjt_watch(pool);
}

void fjp_unwatch(fj_pool *pool)
{
    fjt_unwatch(pool);
}

void fjp_fail(const char *file, int line, const char *fmt, ...)
{
    char text[300], bytes[2 * FJP_MOST_BYTES + 1] = "";
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (size_t i = 0; i < program_bytes; i++) snprintf(bytes + 2 * i, 3, "%02x", program[i]);
    fjt_fail(file, line, "%s; the program: %s", text, bytes);
}

/* ---- The tests ------------------------------------------------------------------------------ */

/* Most programs are small. Programs that create pools of their own, or pools that are shut down
 * meanwhile, need threads, so they are less frequent. */
static void make_program(uint64_t *state, uint8_t pools)
{
    size_t most = (size_t)8 << fjt_random(state) % 6;

    program_bytes = 2 + fjt_random(state) % (most - 2);
    for (size_t i = 0; i < program_bytes; i++) program[i] = (uint8_t)(fjt_random(state) >> 40);
    program[0] = (uint8_t)(pools | (program[0] & 0x78));
    if (fjt_random(state) % 16 == 0) program[0] |= 0x80;
    if (fjt_random(state) % 4 != 0) program[1] &= 0xc3;
}

/* `workers` is the code for the number of workers in byte 0 of a program. */
static void run_programs(unsigned workers, bool fifo, long count)
{
    uint64_t state = fjt_seed() + workers * 2 + fifo;
    long bodies = 0;

    for (long i = fjt_rounds(fjt_sanitized() ? (count + 3) / 4 : count); i > 0; i--) {
        make_program(&state, (uint8_t)(workers | (fifo ? 4 : 0)));
        bodies += fjp_run(program, program_bytes, 0);
    }
    fjp_finish();
    CHECK(bodies > 0);
}

FJ_TEST(programs_on_one_worker_are_right, 120)
{
    run_programs(0, false, 1500);
}

FJ_TEST(programs_on_two_workers_are_right, 120)
{
    run_programs(1, false, 1500);
}

FJ_TEST(programs_on_three_workers_are_right, 120)
{
    run_programs(2, false, 1500);
}

FJ_TEST(programs_on_eight_workers_are_right, 120)
{
    run_programs(3, false, 1500);
}

FJ_TEST(programs_on_one_worker_in_fifo_order_are_right, 120)
{
    run_programs(0, true, 800);
}

FJ_TEST(programs_on_two_workers_in_fifo_order_are_right, 120)
{
    run_programs(1, true, 800);
}

FJ_TEST(programs_on_three_workers_in_fifo_order_are_right, 120)
{
    run_programs(2, true, 800);
}

FJ_TEST(programs_on_eight_workers_in_fifo_order_are_right, 120)
{
    run_programs(3, true, 800);
}

/* ---- Programs while system calls fail ------------------------------------------------------- */

FJ_TEST(programs_are_right_or_refused_while_the_system_fails, 120)
{
    uint64_t state = fjt_seed();

    if (!FJI_FAULTS) fjt_skip("built without faults");
    for (long i = fjt_rounds(300); i > 0; i--) {
        make_program(&state, (uint8_t)(fjt_random(&state) & 7));
        memmove(program + 3, program,
                program_bytes < sizeof program - 3 ? program_bytes : sizeof program - 3);
        if (program_bytes + 3 <= sizeof program) program_bytes += 3;
        for (int k = 0; k < 3; k++) program[k] = (uint8_t)(fjt_random(&state) >> 33);
        if (program[2] >= 224) /* A fault that lasts until the end would take too long. */
            program[2] &= 31;
        (void)fjp_run(program, program_bytes, FJP_FAULTS);
    }
    fjp_finish();
}
