/* SPDX-License-Identifier: MIT */
/*
 * signals.c - thousands of signals to all threads, without restarting system calls
 *
 * The process gets an alarm signal a thousand times a second. A separate thread sends signals to
 * the workers, which do not block them, and to the other threads. No wait may end early, fail or
 * take a signal for a wake-up, and the timeouts of waits must hold.
 */
#include "environment.h"
#include <forkjoin/block.h>

#include <sys/time.h>
#include <time.h>

static atomic_long signals_taken;

static void take_signal(int sig)
{
    (void)sig;
    atomic_fetch_add(&signals_taken, 1);
}

static void handle(int sig)
{
    struct sigaction act = {.sa_handler = take_signal}; /* no SA_RESTART */

    CHECK_EQ(sigaction(sig, &act, NULL), 0);
}

static void say_how_many(void)
{
    printf("# %ld signals\n", atomic_load(&signals_taken));
    fflush(stdout);
}

/* ---- Sending signals ------------------------------------------------------------------------ */

#define MOST 64

/* The threads that get signals. */
static struct {
    pthread_mutex_t mutex;
    pthread_t thread[MOST];
    bool there[MOST];
    atomic_bool over;
} range = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int enter_range(void)
{
    sigset_t set;
    int at = -1;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    pthread_mutex_lock(&range.mutex);
    for (int i = 0; i < MOST && at < 0; i++) {
        if (range.there[i]) continue;
        range.there[i] = true;
        range.thread[i] = pthread_self();
        at = i;
    }
    pthread_mutex_unlock(&range.mutex);
    return at;
}

static void leave_range(int at)
{
    pthread_mutex_lock(&range.mutex);
    if (at >= 0) range.there[at] = false;
    pthread_mutex_unlock(&range.mutex);
}

static void *shoot(void *arg)
{
    (void)arg;
    while (!atomic_load(&range.over)) {
        pthread_mutex_lock(&range.mutex);
        for (int i = 0; i < MOST; i++)
            if (range.there[i]) pthread_kill(range.thread[i], SIGUSR1);
        pthread_mutex_unlock(&range.mutex);
        fjt_sleep_us(200);
    }
    return NULL;
}

static __thread int my_place;

static int on_start(fj_pool *p, int worker, void *arg)
{
    (void)p, (void)worker, (void)arg;
    my_place = enter_range();
    return FJ_OK;
}

static void on_stop(fj_pool *p, int worker, void *arg)
{
    (void)p, (void)worker, (void)arg;
    leave_range(my_place);
}

/* A pool whose workers get signals. */
static fj_pool *pool_in_range(int workers)
{
    fj_pool_options o = {0};

    handle(SIGUSR1);
    o.parallelism = workers;
    o.on_start = on_start;
    o.on_stop = on_stop;
    return fjt_pool_with(&o);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

FJ_TEST(pool_works_while_its_workers_are_shot_at, 60)
{
    fj_pool *p = pool_in_range(3);
    pthread_t gun = regression_thread(shoot, NULL);
    int me = enter_range();

    for (long i = fjt_rounds(150); i > 0; i--) use_pool(p);
    UNTIL(atomic_load(&signals_taken) > fjt_rounds(1000));
    leave_range(me);
    fjt_destroy(p);
    atomic_store(&range.over, true);
    pthread_join(gun, NULL);
    say_how_many();
}

struct waiter {
    fj_pool *pool;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    sem_t sem;
    int pipe[2];
    int turn;
    atomic_int done;
};

/* Makes each kind of managed wait in a worker. Signals interrupt each of them many times. */
static int wait_in_all_ways(void *arg)
{
    struct waiter *w = arg;
    char c = 0;
    struct pollfd fd = {.fd = w->pipe[0], .events = POLLIN};

    CHECK_EQ(fj_block_mutex_lock(&w->mutex), FJ_OK);
    while (w->turn == 0) CHECK_EQ(fj_block_cond_wait(&w->cond, &w->mutex, FJ_FOREVER), FJ_OK);
    pthread_mutex_unlock(&w->mutex);
    CHECK_EQ(fj_block_sem_wait(&w->sem, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_block_poll(&fd, 1, FJ_FOREVER), 1);
    CHECK_EQ(fj_block_read(w->pipe[0], &c, 1), 1);
    CHECK_EQ(c, 'x');
    int64_t start = fjt_now();
    CHECK_EQ(fj_sleep_ns(3 * MS), FJ_OK);
    CHECK(fjt_now() - start >= 3 * MS);
    start = fjt_now();
    CHECK_EQ(fj_block_sem_wait(&w->sem, 2 * MS), FJ_ETIMEDOUT);
    CHECK(fjt_now() - start >= 2 * MS);
    atomic_store(&w->done, 1);
    return FJ_OK;
}

static void *play_other_side(void *arg)
{
    struct waiter *w = arg;

    fjt_sleep_us(1500);
    pthread_mutex_lock(&w->mutex);
    w->turn = 1;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->mutex);
    fjt_sleep_us(1500);
    sem_post(&w->sem);
    fjt_sleep_us(1500);
    CHECK_EQ(write(w->pipe[1], "x", 1), 1);
    return NULL;
}

static void wait_round(fj_pool *p)
{
    struct waiter w = {
        .pool = p, .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

    CHECK_EQ(sem_init(&w.sem, 0, 0), 0);
    CHECK_EQ(pipe(w.pipe), 0);
    pthread_t other = regression_thread(play_other_side, &w);
    if (p != NULL)
        CHECK_EQ(fj_execute(p, wait_in_all_ways, &w), FJ_OK);
    else
        CHECK_EQ(wait_in_all_ways(&w), FJ_OK);
    UNTIL(atomic_load(&w.done));
    pthread_join(other, NULL);
    if (p != NULL) CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    close(w.pipe[0]);
    close(w.pipe[1]);
    CHECK_EQ(sem_destroy(&w.sem), 0);
}

FJ_TEST(waits_of_tasks_outlast_every_signal, 60)
{
    fj_pool *p = pool_in_range(2);
    pthread_t gun = regression_thread(shoot, NULL);

    for (long i = fjt_rounds(10); i > 0; i--) wait_round(p);
    regression_rest(p);
    fjt_destroy(p);
    atomic_store(&range.over, true);
    pthread_join(gun, NULL);
    CHECK(atomic_load(&signals_taken) > 0);
    say_how_many();
}

FJ_TEST(waits_outside_outlast_every_signal, 60)
{
    pthread_t gun = regression_thread(shoot, NULL);

    handle(SIGUSR1);
    int me = enter_range();
    for (long i = fjt_rounds(10); i > 0; i--) wait_round(NULL);
    leave_range(me);
    atomic_store(&range.over, true);
    pthread_join(gun, NULL);
    CHECK(atomic_load(&signals_taken) > 0);
    say_how_many();
}

/* The thousand alarms a second go to any thread that does not block them, which excludes the
 * workers. */
FJ_TEST(alarm_a_thousand_times_a_second_changes_nothing, 60)
{
    struct itimerval every = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}};
    struct itimerval no_more = {.it_value = {.tv_usec = 0}};
    struct users users;
    fj_pool *p = fjt_pool(2, 0);

    handle(SIGALRM);
    CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
    start_users(&users, p, 2);
    for (long i = fjt_rounds(40); i > 0; i--) {
        fj_future *f = NULL;
        int64_t start = fjt_now();
        CHECK_EQ(fj_schedule_call(p, call_doubles, NULL, FJ_FOREVER, &f), FJ_OK);
        CHECK_EQ(fj_future_get(f, 5 * MS, NULL), FJ_ETIMEDOUT);
        CHECK(fjt_now() - start >= 5 * MS);
        CHECK_EQ(fj_future_cancel(f, 1), 1);
        fj_future_unref(f);
        start = fjt_now();
        CHECK_EQ(fj_pool_await_termination(p, 2 * MS), FJ_ETIMEDOUT);
        CHECK(fjt_now() - start >= 2 * MS);
    }
    end_users(&users);
    CHECK_EQ(setitimer(ITIMER_REAL, &no_more, NULL), 0);
    fjt_destroy(p);
    CHECK(atomic_load(&signals_taken) > 0);
    say_how_many();
}

/* ---- Stopped and continued ------------------------------------------------------------------ */

static void work_for_a_while(void *arg)
{
    fj_pool *p = fjt_pool(3, 0);
    struct users users;

    start_users(&users, p, 2);
    for (long i = *(long *)arg; i > 0; i--) use_pool(p);
    end_users(&users);
    fjt_destroy(p);
}

FJ_TEST(process_stopped_and_continued_at_any_moment_works_on, 60)
{
    uint64_t seed = fjt_seed();
    long rounds = fjt_rounds(150), stops = 0;
    int status = 0;

    need_processes();
    pid_t pid = fork();
    if (pid == 0) {
        child_begin();
        work_for_a_while(&rounds);
        _exit(0);
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        CHECK_EQ(kill(pid, SIGSTOP), 0);
        fjt_sleep_us(regression_below(&seed, 300));
        CHECK_EQ(kill(pid, SIGCONT), 0);
        fjt_sleep_us(regression_below(&seed, 800));
        stops++;
    }
    if (WIFSIGNALED(status)) fjt_fail(__FILE__, __LINE__, "signal %d", WTERMSIG(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    printf("# stopped %ld times\n", stops);
    fflush(stdout);
}
