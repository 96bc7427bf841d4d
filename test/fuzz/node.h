/* SPDX-License-Identifier: MIT */
/*
 * node.h - declarations shared by the files of the random programs
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

/* How a body runs its children. */
enum fjp_op {
    FJP_LEAF,
    FJP_FORK,       /* forked; joined, waited for or unforked in any order */
    FJP_INVOKE,     /* fj_invoke_both(), _all(), _array() */
    FJP_SUBMIT,     /* submitted in one of three ways, and joined */
    FJP_TYPED,      /* as typed tasks */
    FJP_ELSEWHERE,  /* in the other pool */
    FJP_TOKEN,      /* under a token */
    FJP_ACTIONS,    /* fj_execute(): no thread waits for them */
    FJP_REDUCE,     /* no children: fj_reduce() */
    FJP_BLOCK,      /* forked, after another blocking wait */
    FJP_LOCAL,      /* forked; meanwhile the body takes tasks from the queues itself */
    FJP_LOOK,       /* forked; meanwhile the body reads the state of the pool */
    FJP_FUTURES,    /* as futures */
    FJP_RACE,       /* as futures that other threads also complete, fail or cancel */
    FJP_GROUP,      /* as a group: waits for all or for any of them */
    FJP_CROSS,      /* one future, and tasks that wait for it */
    FJP_CALLS,      /* as futures that the library allocates */
    FJP_TIMERS,     /* as timers, once or periodically */
    FJP_COMPLETERS, /* as completers */
    FJP_OPS
};

/*
 * What else bodies do. Each of these modes is safe by itself. Together, a body could wait for a
 * task that is below it on its own stack.
 */
enum fjp_mode {
    FJP_PLAIN,
    FJP_CROSSES,  /* tasks wait for futures of other nodes */
    FJP_POLLS,    /* tasks run what they take from the queues */
    FJP_QUIESCES, /* actions call fj_help_quiesce() */
};

typedef struct fjp_node fjp_node;
typedef struct fjp_program fjp_program;

struct fjp_node {
    union {
        fj_task task;
        fj_future future;
        fj_completer completer;
        fj_timer timer;
    } is; /* must be the first field; the node is queued as one of these */
    fjp_program *program;
    fjp_node *child; /* array of the children */
    int children;
    enum fjp_op op;
    int arg;
    int code;           /* that the body returns */
    int pool;           /* index of the pool in which the body runs */
    int most;           /* the most runs of the body */
    bool outside;       /* runs in an outside thread, not as a task */
    bool interruptible; /* this node, or one above it, may be interrupted */
    bool counts;        /* its value is part of its parent's value */
    bool typed;         /* a typed task, or below one */
    bool open;          /* its body returns FJ_PENDING */
    atomic_bool held;   /* a timer that no thread has waited for yet */
    fjp_node *waits;    /* a future that the body waits for first */
    uint64_t number, want, extra, value;
    atomic_int runs;
    int low, high;       /* bounds of `runs`, as far as they are known */
    atomic_bool tainted; /* a node below it did not run, and was allowed not to */
    /* Only for completers. */
    atomic_int completions, arrived, swallowed;
    bool in_tree; /* runs as a completer */
};

struct fjp_program {
    fj_pool *pool[2];
    bool common[2];         /* this is the common pool */
    atomic_long *errors[2]; /* sum of the codes that on_error received */
    atomic_long wrong[2];   /* sum of the codes that actions returned */
    fjp_node *node;
    int nodes;
    enum fjp_mode mode;
    int ends;   /* the first pool: 0: stays; 1: shutdown; 2: shutdown_now */
    bool tight; /* waiting workers are not replaced */
    bool faults;
    int64_t end_after_ns;
    atomic_int ending, ended; /* shutdown was called; it has returned: see fjp_is_ending() */
    atomic_long ran;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    long guarded; /* protected by the mutex */
    atomic_long guarded_too;
};

/* A dump is intended for pools that hang. It reads fields that other threads write, which
 * ThreadSanitizer reports. */
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

/* ---- Checks --------------------------------------------------------------------------------- */

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
 * Whether shutdown was called, for a thread whose call was refused because of it. A refusal does
 * not order memory, so a load might still return the old value. A read-modify-write reads the new
 * one.
 */
static inline bool fjp_is_ending(const fjp_program *p)
{
    return atomic_fetch_add((atomic_int *)(uintptr_t)&p->ending, 0) != 0;
}

/* ---- program.c ------------------------------------------------------------------------------ */

/* The body of a node, whatever it is queued as: counts the run, runs the children, returns the
 * code. */
int fjp_body(fjp_node *n);
int fjp_task_run(fj_task *t);

/* Runs the children in the simplest way. */
void fjp_plain_children(fjp_node *n);

fj_pool *fjp_here(const fjp_node *n);
fj_pool *fjp_where(const fjp_node *child);

/* Sets the bounds of the runs of c before it is started. The lower bound becomes 0 if the pool may
 * drop tasks. */
void fjp_expect(fjp_node *c, int low, int high);

/* Checks c, a child of n that has ended with code `got`, if no other thread has completed or
 * cancelled it. */
void fjp_settle(fjp_node *n, fjp_node *c, int got);
/* The same without its code. */
void fjp_settle_runs(fjp_node *n, fjp_node *c);
/* Whether `err` is an error, so that c was not started. Fails unless the error is allowed here. */
bool fjp_refused(fjp_node *n, fjp_node *c, int err);
/* Checks that c did not run, and records it. */
void fjp_never_ran(fjp_node *n, fjp_node *c);

/* fjp_may_break(): whether waits in the body of n may end early. fjp_may_drop(): whether its pool
 * may drop tasks. */
bool fjp_may_break(const fjp_node *n);
bool fjp_may_drop(const fjp_node *n);

void fjp_order(int *order, int n, int arg);
uint64_t fjp_mix(uint64_t value, uint64_t with);

/* ---- meddler.c ------------------------------------------------------------------------------ */

/* What the meddler, a separate outside thread, does on request. */
enum fjp_deed_kind {
    FJP_COMPLETE,
    FJP_COMPLETE_QUIETLY,
    FJP_FAIL,
    FJP_CANCEL,
    FJP_INTERRUPT,
    FJP_DEEDS, /* the kinds above complete, fail or cancel a future */
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

/* Does it in the calling thread. */
void fjp_do(fjp_deed *d);
/* fjp_have_done() gives it to the meddler. fjp_await_done() waits until the meddler has done it. */
void fjp_have_done(fjp_deed *d);
void fjp_await_done(fjp_deed *d);

/* ---- The operations ------------------------------------------------------------------------- */

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

/* Whether n leaves the values of its children out of its own value. This depends only on the tree,
 * so the oracle knows it too. */
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
