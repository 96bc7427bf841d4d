/* SPDX-License-Identifier: MIT */
/*
 * node.h - what the parts of random programs know of each other
 */
#ifndef FJP_NODE_H
#define FJP_NODE_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fuzz/program.h"

#define FJP_MOST_NODES 64
#define FJP_MOST_DEPTH 6
#define FJP_MOST_CHILDREN 4

#define FJP_US ((int64_t)1000)

/* How a body has its children run. */
enum fjp_op {
    FJP_LEAF,
    FJP_FORK,       /* forked; joined, waited for or unforked in any order */
    FJP_INVOKE,     /* fj_invoke_both(), _all(), _array() */
    FJP_SUBMIT,     /* submitted in one of three ways, and joined */
    FJP_TYPED,      /* as typed tasks */
    FJP_ELSEWHERE,  /* in the other pool */
    FJP_TOKEN,      /* under a token */
    FJP_ACTIONS,    /* fj_execute(): nobody waits */
    FJP_REDUCE,     /* no children: fj_reduce() */
    FJP_BLOCK,      /* forked, after a wait for something else */
    FJP_LOCAL,      /* forked, and tasks taken by hand meanwhile */
    FJP_LOOK,       /* forked, and the pool looked at */
    FJP_FUTURES,    /* as futures */
    FJP_RACE,       /* as futures whose outcome others decide too */
    FJP_GROUP,      /* all of, one of */
    FJP_CROSS,      /* a future, and tasks that wait for it */
    FJP_CALLS,      /* as allocated futures */
    FJP_TIMERS,     /* later, or again and again */
    FJP_COMPLETERS, /* as completers */
    FJP_OPS
};

/*
 * What else bodies do. Each of these is right by itself but together they would wait for what
 * is below them on their own stack.
 */
enum fjp_mode {
    FJP_PLAIN,
    FJP_CROSSES,  /* tasks wait for futures of others */
    FJP_POLLS,    /* tasks run whatever they take from the queues */
    FJP_QUIESCES, /* actions help until the pool is quiet */
};

typedef struct fjp_node fjp_node;
typedef struct fjp_program fjp_program;

struct fjp_node {
    union {
        fj_task task;
        fj_future future;
        fj_completer completer;
        fj_timer timer;
    } is; /* first: how it is queued */
    fjp_program *program;
    fjp_node *child; /* one after the other */
    int children;
    enum fjp_op op;
    int arg;
    int code;           /* what the body returns */
    int pool;           /* in which it runs */
    int most;           /* runs of the body */
    bool outside;       /* not a task but a thread */
    bool interruptible; /* somebody may interrupt it, or what it belongs to */
    bool counts;        /* its value is part of its parent's */
    bool typed;         /* a typed task, or below one */
    bool open;          /* its body leaves it undecided */
    atomic_bool held;   /* a timer that nobody has waited for */
    fjp_node *waits;    /* a future to wait for first */
    uint64_t number, want, extra, value;
    atomic_int runs;
    int low, high;       /* how often it must and may have run, as far as is known */
    atomic_bool tainted; /* something below it did not run, and was not meant to */
    /* Completers. */
    atomic_int completions, arrived, swallowed;
    bool in_tree; /* is run as a completer */
};

struct fjp_program {
    fj_pool *pool[2];
    bool common[2];         /* it is the common pool */
    atomic_long *errors[2]; /* sum of the codes that on_error got */
    atomic_long wrong[2];   /* sum of the codes of actions */
    fjp_node *node;
    int nodes;
    enum fjp_mode mode;
    int ends;   /* 0: not; 1: shutdown; 2: shutdown_now */
    bool tight; /* nobody stands in for who waits */
    bool faults;
    int64_t end_after_ns;
    atomic_int ending, ended; /* shutdown was called; has returned: see fjp_is_ending() */
    atomic_long ran;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    long guarded; /* by the mutex */
    atomic_long guarded_too;
};

/* A dump is for pools that hang: it reads what others write, and ThreadSanitizer says so. */
#if defined(__SANITIZE_THREAD__)
#define FJP_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FJP_TSAN 1
#endif
#endif
#ifndef FJP_TSAN
#define FJP_TSAN 0
#endif

/* ---- Checks ---------------------------------------------------------------------------------- */

#define FJP_CHECK(cond)                                                 \
    do {                                                                \
        if (!(cond)) fjp_fail(__FILE__, __LINE__, "failed: %s", #cond); \
    } while (0)

#define FJP_CHECK_EQ(a, b)                                                                     \
    do {                                                                                       \
        long long fjp_a = (long long)(a), fjp_b = (long long)(b);                              \
        if (fjp_a != fjp_b)                                                                    \
            fjp_fail(__FILE__, __LINE__, "%s = %lld, wanted %s = %lld", #a, fjp_a, #b, fjp_b); \
    } while (0)

/*
 * Whether shutdown was called, for a thread that was refused for it. A refusal orders nothing, so a
 * load might not see it yet; this reads the last value there is.
 */
static inline bool fjp_is_ending(const fjp_program *p)
{
    return atomic_fetch_add((atomic_int *)(uintptr_t)&p->ending, 0) != 0;
}

/* ---- program.c ------------------------------------------------------------------------------- */

/* The body, however it is carried: counts the run, runs the children, returns the code. */
int fjp_body(fjp_node *n);
int fjp_task_run(fj_task *t);

/* Has the children run in the plainest way. */
void fjp_plain_children(fjp_node *n);

fj_pool *fjp_here(const fjp_node *n);
fj_pool *fjp_where(const fjp_node *child);

/* Before it is started: how often it may run, when all goes well and in any case. */
void fjp_expect(fjp_node *c, int low, int high);

/* c, a child of n, has come back with `got`, and nobody has meddled with it. */
void fjp_settle(fjp_node *n, fjp_node *c, int got);
/* The same without a word of its code. */
void fjp_settle_runs(fjp_node *n, fjp_node *c);
/* c, or all that was to be started by the call, was not: true unless FJ_OK. */
bool fjp_refused(fjp_node *n, fjp_node *c, int err);
/* c did not run. */
void fjp_never_ran(fjp_node *n, fjp_node *c);

/* Whether waits in the body of n may end early, and tasks may be dropped. */
bool fjp_may_break(const fjp_node *n);
bool fjp_may_drop(const fjp_node *n);

void fjp_order(int *order, int n, int arg);
uint64_t fjp_mix(uint64_t value, uint64_t with);

/* ---- meddler.c -------------------------------------------------------------------------------- */

/* What a thread of its own does on demand, from outside. */
enum fjp_deed_kind {
    FJP_COMPLETE,
    FJP_COMPLETE_QUIETLY,
    FJP_FAIL,
    FJP_CANCEL,
    FJP_INTERRUPT,
    FJP_DEEDS, /* the ones above decide a future */
    FJP_CANCEL_TOKEN,
    FJP_NOTHING
};

typedef struct fjp_deed {
    struct fjp_deed *next;
    enum fjp_deed_kind kind;
    fj_future *future;
    fj_token *token;
    void *result;
    int code;
    int won; /* what the call returned */
    sem_t done;
} fjp_deed;

/* Does it here. */
void fjp_do(fjp_deed *d);
/* Has it done by the meddler; waits for that. */
void fjp_have_done(fjp_deed *d);
void fjp_await_done(fjp_deed *d);

/* ---- The operations ---------------------------------------------------------------------------- */

void fjp_fork(fjp_node *n);
void fjp_invoke(fjp_node *n);
void fjp_submit(fjp_node *n);
void fjp_typed(fjp_node *n);
void fjp_elsewhere(fjp_node *n);
void fjp_token(fjp_node *n);
void fjp_actions(fjp_node *n);
void fjp_reduce(fjp_node *n);
uint64_t fjp_reduce_serial(const fjp_node *n);
void fjp_block(fjp_node *n);
void fjp_local(fjp_node *n);
void fjp_look(fjp_node *n);
void fjp_futures(fjp_node *n);
void fjp_race(fjp_node *n);
void fjp_group(fjp_node *n);
void fjp_cross(fjp_node *n);
void fjp_cross_wait(fjp_node *n);
void fjp_calls(fjp_node *n);
void fjp_timers(fjp_node *n);
void fjp_completers(fjp_node *n);
bool fjp_completer_ok(const fjp_node *n);
bool fjp_swallows(const fjp_node *n);

/* Which child operations leave the value of a child out of its parent's; decided by the tree
 * alone, so that the oracle knows it too. */
bool fjp_token_spares(const fjp_node *n);
bool fjp_group_spares(const fjp_node *n);

/* Timers. */
enum fjp_timer_way {
    FJP_ONCE,
    FJP_ONCE_ALONE,
    FJP_ONCE_CANCELLED,
    FJP_RATE,
    FJP_DELAY,
    FJP_RATE_CANCELLED,
    FJP_LIMIT,
    FJP_LIMIT_ACTS,
};
enum fjp_timer_way fjp_timer_way(const fjp_node *n);
bool fjp_timer_finish(fjp_node *n);

#endif /* FJP_NODE_H */
