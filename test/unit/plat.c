/* SPDX-License-Identifier: MIT */
/*
 * plat.c - the porting contract, which every platform layer has to keep
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fjtest.h"
#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/unix.h"

#define MS ((int64_t)1000000)

/* A thread of the platform layer that runs main(arg). */
struct started {
    void (*main)(void *);
    void *arg;
    fji_thread self;
    uint32_t known; /* 1: self is valid */
};

static void started_main(void *p)
{
    struct started *s = p;

    s->self = fji_plat_thread_self();
    fji_store_release(&s->known, 1u);
    fji_plat_wake_all(&s->known);
    s->main(s->arg);
}

static void start(struct started *s, void (*main)(void *), void *arg, const char *name)
{
    *s = (struct started){.main = main, .arg = arg};
    CHECK(fji_plat_thread_start(started_main, s, &(fji_creator){0}, name));
    while (fji_load_acquire(&s->known) == 0) fji_plat_wait(&s->known, 0, FJ_FOREVER);
}

static void run_in_thread(void (*main)(void *), void *arg, const char *name)
{
    struct started s;

    start(&s, main, arg, name);
    fji_plat_thread_join(s.self);
}

/* ---- Waiting on a word ---------------------------------------------------------------------- */

FJ_TEST(wait_ends_at_its_deadline_and_not_before, 20)
{
    uint32_t word = 7;

    for (int ms = 1; ms <= 50; ms += 7) {
        int64_t deadline = fji_plat_now() + ms * MS;
        while (fji_plat_wait(&word, 7, deadline)) CHECK(fji_plat_now() < deadline + 60000 * MS);
        CHECK(fji_plat_now() >= deadline);
    }
}

FJ_TEST(wait_with_a_deadline_in_the_past_returns, 10)
{
    uint32_t word = 7;
    int64_t now = fji_plat_now();

    CHECK(!fji_plat_wait(&word, 7, now));
    CHECK(!fji_plat_wait(&word, 7, now - 1000 * MS));
    CHECK(!fji_plat_wait(&word, 7, 1));
}

FJ_TEST(wait_for_another_value_returns, 10)
{
    uint32_t word = 7;

    for (int i = 0; i < 1000; i++) (void)fji_plat_wait(&word, 8, FJ_FOREVER);
}

FJ_TEST(wake_leaves_errno_alone, 10)
{
    uint32_t word = 7;

    errno = 12345;
    fji_plat_wake_one(&word);
    fji_plat_wake_all(&word);
    CHECK_EQ(errno, 12345);
}

/* Two threads hand a value to each other. If a wake-up is lost, both wait forever. */
static void player(void *arg)
{
    uint32_t *word = arg;

    for (long i = fjt_rounds(100000); i-- > 0;) {
        while (fji_load_acquire(word) == 0) fji_plat_wait(word, 0, FJ_FOREVER);
        fji_store_release(word, 0u);
        fji_plat_wake_one(word);
    }
}

FJ_TEST(wake_is_never_lost, 120)
{
    static uint32_t word;
    struct started other;

    start(&other, player, &word, "player");
    for (long i = fjt_rounds(100000); i-- > 0;) {
        fji_store_release(&word, 1u);
        fji_plat_wake_one(&word);
        while (fji_load_acquire(&word) == 1) fji_plat_wait(&word, 1, FJ_FOREVER);
    }
    fji_plat_thread_join(other.self);
}

static uint32_t gate, passed;

static void pass_gate(void *arg)
{
    (void)arg;
    while (fji_load_acquire(&gate) == 0) fji_plat_wait(&gate, 0, FJ_FOREVER);
    fji_add_acq_rel(&passed, 1u);
}

FJ_TEST(wake_all_wakes_everybody, 20)
{
    struct started s[8];

    for (int round = 0; round < 20; round++) {
        fji_store_release(&gate, 0u);
        for (int i = 0; i < 8; i++) start(&s[i], pass_gate, NULL, "gate");
        if (round % 2 == 0) fjt_sleep_us(1000);
        fji_store_release(&gate, 1u);
        fji_plat_wake_all(&gate);
        for (int i = 0; i < 8; i++) fji_plat_thread_join(s[i].self);
        CHECK_EQ(passed, (round + 1) * 8);
    }
}

FJ_TEST(wake_of_a_word_that_is_gone_does_nothing, 10)
{
    size_t page = fji_plat_page(), committed;
    uint32_t *word = fji_plat_reserve(page, &committed);

    CHECK(word != NULL);
    fji_plat_wake_one(word); /* not even readable */
    fji_plat_release(word, page, committed);
    fji_plat_wake_all(word);
}

/* ---- Fences --------------------------------------------------------------------------------- */

FJ_TEST(heavy_fence_is_there_once_it_was_promised, 10)
{
    if (!fji_plat_has_barrier()) fjt_skip("there is no heavy fence");
    for (int i = 0; i < 100; i++) CHECK(fji_plat_barrier());
}

/* Each side stores, fences and loads: one with the light fence, one with the heavy fence. At least
 * one side must see the other's store. */
static uint32_t light_word, heavy_word, turn, light_saw;

static void light_side(void *arg)
{
    uint32_t i = 0;

    (void)arg;
    for (;;) {
        for (int k = 1; fji_load_acquire(&turn) == i; k++) {
            fji_pause();
            if (k % 1024 == 0) fji_plat_yield();
        }
        i = fji_load_acquire(&turn);
        if (i == UINT32_MAX) return;
        fji_store_relaxed(&light_word, 1u);
        FJI_LIGHT_FENCE();
        uint32_t saw = fji_load_relaxed(&heavy_word);
        fji_store_release(&light_saw, saw + 1);
    }
}

FJ_TEST(light_and_heavy_fence_make_a_pair, 60)
{
    if (!fji_plat_has_barrier()) fjt_skip("there is no heavy fence");
    struct started other;
    uint64_t random = fjt_seed();

    start(&other, light_side, NULL, "light");
    for (uint32_t i = 1; i <= (uint32_t)fjt_rounds(5000); i++) {
        fji_store_relaxed(&light_word, 0u);
        fji_store_relaxed(&heavy_word, 0u);
        fji_store_relaxed(&light_saw, 0u);
        fji_store_release(&turn, i);
        for (uint64_t k = fjt_random(&random) % 64; k > 0; k--) fji_pause();
        fji_store_relaxed(&heavy_word, 1u);
        CHECK(fji_plat_barrier());
        uint32_t saw = fji_load_relaxed(&light_word), other_saw;
        while ((other_saw = fji_load_acquire(&light_saw)) == 0) fji_plat_yield();
        CHECK(saw == 1 || other_saw == 2);
    }
    fji_store_release(&turn, UINT32_MAX);
    fji_plat_thread_join(other.self);
}

/* ---- Threads -------------------------------------------------------------------------------- */

static void add_one(void *arg)
{
    ++*(int *)arg;
}

FJ_TEST(started_thread_runs_once_and_can_be_joined, 20)
{
    int n = 0;

    for (int i = 1; i <= 50; i++) {
        run_in_thread(add_one, &n, "once");
        CHECK_EQ(n, i);
    }
}

static void read_name(void *arg)
{
    pthread_getname_np(pthread_self(), arg, 16);
}

FJ_TEST(started_thread_has_its_name_up_to_15_bytes, 10)
{
    char name[16] = "";

    run_in_thread(read_name, name, "short");
    CHECK(strcmp(name, "short") == 0);
    run_in_thread(read_name, name, "0123456789abcdefgh");
    CHECK(strcmp(name, "0123456789abcde") == 0);
}

static void read_mask(void *arg)
{
    pthread_sigmask(SIG_BLOCK, NULL, arg);
}

FJ_TEST(started_thread_takes_no_asynchronous_signals, 10)
{
    static const int blocked[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,  SIGALRM, SIGCHLD, SIGUSR1,
                                  SIGUSR2, SIGPIPE, SIGPROF, SIGWINCH, SIGIO,   SIGURG,  SIGTSTP};
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t mask;

    sigemptyset(&mask);
    run_in_thread(read_mask, &mask, "mask");
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++)
        CHECK(sigismember(&mask, blocked[i]));
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) CHECK(!sigismember(&mask, own[i]));
}

FJ_TEST(starting_a_thread_leaves_the_mask_of_the_caller, 10)
{
    sigset_t before, after, mask;
    int n = 0;

    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    run_in_thread(add_one, &n, "mask");
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int i = 1; i < 32; i++) CHECK_EQ(sigismember(&before, i), sigismember(&after, i));
}

static void read_cancel_state(void *arg)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, arg);
}

FJ_TEST(started_thread_cannot_be_cancelled, 10)
{
    int state = PTHREAD_CANCEL_ENABLE;

    run_in_thread(read_cancel_state, &state, "cancel");
    CHECK_EQ(state, PTHREAD_CANCEL_DISABLE);
}

struct stack {
    uintptr_t low, here;
    size_t bytes;
    bool known;
};

static void read_stack(void *arg)
{
    struct stack *s = arg;

    s->known = fji_plat_stack(&s->low, &s->bytes);
    s->here = (uintptr_t)__builtin_frame_address(0);
}

static void check_stack(struct stack s)
{
    if (!s.known) fjt_skip("the stack is not known here");
    CHECK(s.here > s.low);
    CHECK(s.here - s.low <= s.bytes);
}

FJ_TEST(stack_of_a_thread_is_where_its_frames_are, 10)
{
    struct stack s;

    read_stack(&s);
    check_stack(s);
    run_in_thread(read_stack, &s, "stack");
    check_stack(s);
    CHECK(s.bytes >= FJI_STACK_MIN / 2);
}

FJ_TEST(stack_is_as_large_as_asked_for, 10)
{
    struct stack stack;
    struct started s = {.main = read_stack, .arg = &stack};

    CHECK(
        fji_plat_thread_start(started_main, &s, &(fji_creator){.stack_bytes = 64u << 20}, "large"));
    while (fji_load_acquire(&s.known) == 0) fji_plat_wait(&s.known, 0, FJ_FOREVER);
    fji_plat_thread_join(s.self);
    check_stack(stack);
    CHECK(stack.bytes >= 63u << 20);
}

static uint32_t hashes[16], hashed;

static void hash_and_wait(void *arg)
{
    *(uint32_t *)arg = fji_plat_thread_hash();
    CHECK_EQ(*(uint32_t *)arg, fji_plat_thread_hash());
    fji_add_acq_rel(&hashed, 1u);
    while (fji_load_acquire(&hashed) < 16) fji_plat_yield();
}

FJ_TEST(threads_alive_together_have_different_numbers, 10)
{
    struct started s[16];

    for (int i = 0; i < 16; i++) start(&s[i], hash_and_wait, &hashes[i], "hash");
    for (int i = 0; i < 16; i++) fji_plat_thread_join(s[i].self);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < i; k++) CHECK(hashes[i] != hashes[k]);
}

/* ---- Time and memory ------------------------------------------------------------------------ */

FJ_TEST(clock_never_goes_back, 10)
{
    int64_t last = fji_plat_now();

    CHECK(last > 0);
    for (int i = 0; i < 100000; i++) {
        int64_t now = fji_plat_now();
        CHECK(now >= last);
        last = now;
    }
}

FJ_TEST(allocated_memory_is_zero_and_aligned, 10)
{
    void *p[64];

    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < 64; i++) {
            size_t bytes = i * 37 + 1;
            p[i] = fji_plat_alloc(bytes);
            CHECK(p[i] != NULL);
            CHECK_EQ((uintptr_t)p[i] % FJI_CACHE_PAIR, 0);
            for (size_t k = 0; k < bytes; k++) CHECK_EQ(((unsigned char *)p[i])[k], 0);
            memset(p[i], 0xff, bytes);
        }
        for (int i = 0; i < 64; i++) fji_plat_free(p[i]);
    }
    fji_plat_free(NULL);
}

FJ_TEST(committed_memory_is_zero_and_stays_when_more_is_added, 10)
{
    size_t page = fji_plat_page(), committed;
    unsigned char *p = fji_plat_reserve(1024 * page, &committed);

    CHECK(page >= 4096 && (page & (page - 1)) == 0);
    CHECK(p != NULL);
    CHECK_EQ((uintptr_t)p % page, 0);
    for (size_t n = 1, old = 0; n <= 1024; old = n, n *= 2) {
        CHECK(fji_plat_commit(p, n * page, &committed));
        CHECK_EQ(committed, n * page);
        for (size_t i = 0; i < old * page; i += 97) CHECK_EQ(p[i], 0xa5);
        for (size_t i = old * page; i < n * page; i++) CHECK_EQ(p[i], 0);
        memset(p, 0xa5, n * page);
    }
    fji_plat_release(p, 1024 * page, committed);
}

/* Returns the number of lines of /proc/self/maps. */
static int mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    int n = 0;

    CHECK(f != NULL);
    for (int c; (c = fgetc(f)) != EOF;) n += c == '\n';
    fclose(f);
    return n;
}

/* A small range comes back from the next reservation of the same size, with its memory zeroed. */
FJ_TEST(released_range_is_used_again, 10)
{
    size_t page = fji_plat_page(), committed, other;
    unsigned char *p = fji_plat_reserve(1024 * page, &committed);

    CHECK(p != NULL && fji_plat_commit(p, 2 * page, &committed));
    memset(p, 0xff, 2 * page);
    fji_plat_release(p, 1024 * page, committed);
    unsigned char *q = fji_plat_reserve(512 * page, &other);
    CHECK(q != NULL && q != p);
    CHECK_EQ(other, 0);
    CHECK(fji_plat_reserve(1024 * page, &committed) == p);
    CHECK_EQ(committed, 2 * page);
    for (size_t i = 0; i < committed; i++) CHECK_EQ(p[i], 0);
    CHECK(fji_plat_commit(p, 4 * page, &committed));
    for (size_t i = 0; i < committed; i++) CHECK_EQ(p[i], 0);
    fji_plat_release(p, 1024 * page, committed);
    fji_plat_release(q, 512 * page, other);
}

/* The process keeps few ranges, and none with much memory. */
FJ_TEST(most_released_ranges_return_to_the_system, 10)
{
    enum { N = 8 * FJI_RANGES_KEPT };
    size_t page = fji_plat_page(), bytes = 64 * page, committed[N];
    void *p[N];

    if (fjt_sanitized()) fjt_skip("the sanitizer maps memory of its own");
    int before = mappings();

    for (size_t pages = FJI_KEPT_PAGES; pages <= FJI_KEPT_PAGES + 1; pages++) {
        for (int i = 0; i < N; i++) {
            p[i] = fji_plat_reserve(bytes, &committed[i]);
            CHECK(p[i] != NULL && fji_plat_commit(p[i], pages * page, &committed[i]));
        }
        for (int i = 0; i < N; i++) fji_plat_release(p[i], bytes, committed[i]);
        /* A kept range is two mappings, of which neighbours may be one. */
        int most = pages <= FJI_KEPT_PAGES ? 2 * FJI_RANGES_KEPT : 0;
        CHECK(mappings() <= before + most + 4);
    }
}

/* Threads that release and reserve ranges of two sizes at the same time never share one. */
static void *reserve_often(void *arg)
{
    size_t page = fji_plat_page(), committed;

    for (long i = 0; i < 2000; i++) {
        size_t bytes = (i % 2 == 0 ? 16 : 32) * page;
        uintptr_t *p = fji_plat_reserve(bytes, &committed);
        CHECK(p != NULL && fji_plat_commit(p, page, &committed));
        CHECK_EQ(p[0], 0);
        CHECK_EQ(p[5], 0);
        p[0] = p[5] = (uintptr_t)arg;
        if (i % 8 == 0) sched_yield();
        CHECK(p[0] == (uintptr_t)arg && p[5] == (uintptr_t)arg);
        fji_plat_release(p, bytes, committed);
    }
    return NULL;
}

FJ_TEST(released_range_has_one_user, 30)
{
    pthread_t t[4];
    static int mark[4];

    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t[i], NULL, reserve_often, &mark[i]), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* Writes to each page of `bytes` bytes. Returns the number of page faults of the process during the
 * writes. */
static long faults_of_use(void *memory, size_t bytes)
{
    volatile char *p = memory;
    struct rusage before, after;

    CHECK_EQ(getrusage(RUSAGE_SELF, &before), 0);
    for (size_t i = 0; i < bytes; i += fji_plat_page()) p[i] = 1;
    CHECK_EQ(getrusage(RUSAGE_SELF, &after), 0);
    return after.ru_minflt - before.ru_minflt;
}

/* Each call of an algorithm allocates its scratch memory anew. malloc() of glibc takes a block of
 * more than 32 MB from the system each time, so none of its pages is in use yet. */
FJ_TEST(large_scratch_memory_needs_few_page_faults, 10)
{
    const size_t bytes = ((size_t)33 << 20) + 4000;
    const long few = (long)(bytes / fji_plat_page() / 2);

    if (fjt_sanitized()) fjt_skip("the sanitizer has page faults of its own");
    size_t committed;
    void *range = fji_plat_reserve(bytes, &committed);
    CHECK(range != NULL && fji_plat_commit(range, bytes, &committed));
    if (faults_of_use(range, bytes) > few) fjt_skip("no huge pages here");
    fji_plat_release(range, bytes, committed);

    errno = 77;
    void *scratch = fji_plat_alloc_scratch(bytes);
    CHECK_EQ(errno, 77);
    CHECK(scratch != NULL);
    CHECK(faults_of_use(scratch, bytes) <= few);
    fji_plat_free(scratch);
}

FJ_TEST(reserved_addresses_cost_no_memory, 10)
{
    void *p[16];
    size_t committed;

    if (fjt_sanitized()) fjt_skip("the sanitizer limits the addresses");
    for (int i = 0; i < 16; i++) {
        p[i] = fji_plat_reserve((size_t)4 << 30, &committed);
        CHECK(p[i] != NULL);
        CHECK_EQ(committed, 0);
    }
    for (int i = 0; i < 16; i++) fji_plat_release(p[i], (size_t)4 << 30, 0);
}

FJ_TEST(reserved_memory_cannot_be_touched, 10)
{
    if (fjt_sanitized()) fjt_skip("the sanitizer catches the signal");
    size_t committed;
    volatile char *p = fji_plat_reserve(2 * fji_plat_page(), &committed);
    int status = 0;

    CHECK(p != NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        p[0] = 1;
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
}

/* ---- Environment ---------------------------------------------------------------------------- */

FJ_TEST(variables_of_the_environment_are_read, 10)
{
    setenv("FJT_SOME_NAME", "some value", 1);
    unsetenv("FJT_NO_NAME");
    CHECK(strcmp(fji_plat_env("FJT_SOME_NAME"), "some value") == 0);
    CHECK(fji_plat_env("FJT_NO_NAME") == NULL);
}

FJ_TEST(cpus_are_at_least_one, 10)
{
    CHECK(fji_plat_cpus("") >= 1);
    CHECK(fji_plat_cpus_online() >= 1);
}

static int fork_calls[3];

static void on_prepare(void)
{
    fork_calls[0]++;
}

static void on_parent(void)
{
    fork_calls[1]++;
}

static void on_child(void)
{
    fork_calls[2]++;
}

FJ_TEST(handlers_are_called_around_a_fork, 10)
{
    int status = -1;

    fji_plat_at_fork(on_prepare, on_parent, on_child);
    pid_t child = fork();
    if (child == 0) _exit(fork_calls[0] * 100 + fork_calls[1] * 10 + fork_calls[2]);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(WEXITSTATUS(status), 101);
    CHECK(fork_calls[0] == 1 && fork_calls[1] == 1 && fork_calls[2] == 0);
}

/* ---- Locks ---------------------------------------------------------------------------------- */

static struct {
    fji_lock lock;
    long count, inside;
} locked;

static void count_inside(void *arg)
{
    bool tries = arg != NULL;

    for (long i = fjt_rounds(100000); i-- > 0;) {
        if (tries)
            while (!fji_lock_try(&locked.lock)) fji_plat_yield();
        else
            fji_lock_take(&locked.lock);
        CHECK_EQ(locked.inside++, 0);
        locked.count++;
        if (i % 1000 == 0) fji_plat_yield();
        CHECK_EQ(--locked.inside, 0);
        fji_lock_drop(&locked.lock);
    }
}

FJ_TEST(lock_lets_in_one_at_a_time, 60)
{
    struct started s[4];

    for (int i = 0; i < 4; i++) start(&s[i], count_inside, i == 3 ? &locked : NULL, "lock");
    for (int i = 0; i < 4; i++) fji_plat_thread_join(s[i].self);
    CHECK_EQ(locked.count, 4 * fjt_rounds(100000));
    CHECK_EQ(locked.lock.word, 0);
}

static void hold_awhile(void *arg)
{
    (void)arg;
    fji_lock_take(&locked.lock);
    locked.count++;
    fji_lock_drop(&locked.lock);
}

FJ_TEST(lock_that_is_held_makes_others_wait, 10)
{
    struct started s[3];

    fji_lock_take(&locked.lock);
    CHECK(!fji_lock_try(&locked.lock));
    for (int i = 0; i < 3; i++) start(&s[i], hold_awhile, NULL, "wait");
    fjt_sleep_us(20000);
    CHECK_EQ(locked.count, 0);
    fji_lock_drop(&locked.lock);
    for (int i = 0; i < 3; i++) fji_plat_thread_join(s[i].self);
    CHECK_EQ(locked.count, 3);
    CHECK(fji_lock_try(&locked.lock));
    fji_lock_drop(&locked.lock);
}

/* ---- Faults --------------------------------------------------------------------------------- */

static bool works(enum fji_fault kind)
{
    static char *page;
    static size_t committed;
    struct started s = {.main = add_one};
    void *p;
    int n = 0;

    switch (kind) {
        case FJI_FAULT_ALLOC:
            p = fji_plat_alloc(1);
            fji_plat_free(p);
            return p != NULL;
        case FJI_FAULT_COMMIT:
            if (page == NULL) page = fji_plat_reserve(fji_plat_page(), &committed);
            return fji_plat_commit(page, fji_plat_page(), &committed);
        case FJI_FAULT_THREAD:
            s.arg = &n;
            if (!fji_plat_thread_start(started_main, &s, &(fji_creator){0}, "fault")) return false;
            while (fji_load_acquire(&s.known) == 0) fji_plat_wait(&s.known, 0, FJ_FOREVER);
            fji_plat_thread_join(s.self);
            return n == 1;
        default: return fji_plat_barrier();
    }
}

FJ_TEST(faults_hit_the_calls_they_are_set_for, 20)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
    bool barrier = fji_plat_has_barrier();

    for (int kind = 0; kind <= FJI_FAULT_BARRIER; kind++) {
        if (kind == FJI_FAULT_BARRIER && !barrier) continue;
        long calls = fji_fault_calls((enum fji_fault)kind);
        for (int i = 0; i < 3; i++) CHECK(works((enum fji_fault)kind));
        CHECK_EQ(fji_fault_calls((enum fji_fault)kind), calls + 3);
        fji_fault_set((enum fji_fault)kind, 3, 2);
        for (int i = 1; i <= 8; i++) CHECK_EQ(works((enum fji_fault)kind), i != 3 && i != 4);
        fji_fault_set((enum fji_fault)kind, 1, 1000);
        for (int i = 0; i < 9; i++) CHECK(!works((enum fji_fault)kind));
        fji_fault_set((enum fji_fault)kind, 1, 0);
        CHECK(works((enum fji_fault)kind));
    }
}
