/* SPDX-License-Identifier: MIT */
/*
 * steal.c - taking tasks from other queues
 *
 * A worker without a task visits the queues of all other workers and all submission queues once.
 * The queues are numbered, first the workers' and then the submission queues. The worker begins
 * with a random number, and continues with 0 after the last number. This is the victim order. A
 * worker that waits for a task takes only tasks that belong to the awaited task: see help.c. Only
 * this file knows the victim order, finds the token of a stolen task, counts steals, and wakes the
 * next worker after a successful steal.
 *
 * If the pool has ranked submission queues, which hold callbacks with a priority, a worker visits
 * the high one before the queues of the victim order, and the background one after them. So that no
 * priority waits forever, every FJI_AGING_INTERVAL-th task is taken in another order: first
 * background, or first the queues of the victim order, in turn.
 */

#include "sched/steal.h"

#include "sched/own_queue.h"
#include "sched/run.h"
#include "sched/scope.h"
#include "sched/wake.h"

/* An iterator over the queues of a pool in the victim order. The queues with numbers below nworkers
 * are workers' queues, the others are submission queues. total: number of all queues. next: number
 * of the queue that is visited next. remaining: how many queues are not visited yet. */
struct victims {
    fj_pool *pool;
    uint32_t nworkers, total, next, remaining;
};

static struct victims victims_of(fji_worker *w)
{
    fj_pool *p = w->pool;
    struct victims v = {.pool = p, .nworkers = fji_pool_nworkers(p)};

    v.total = v.remaining = v.nworkers + p->nsubmissions;
    v.next = fji_worker_random(w) % v.total;
    return v;
}

/* If the next queue is a worker's queue, sets *victim to that worker and *s to NULL. Otherwise sets
 * *s to the submission queue and *victim to NULL. Both are NULL if the next queue does not exist
 * yet. Returns false, without setting them, if all queues were visited. */
static bool victims_next(struct victims *v, fji_worker **victim, fji_submission_queue **s)
{
    if (v->remaining == 0) return false;
    v->remaining--;
    uint32_t at = v->next;
    v->next = at + 1 == v->total ? 0 : at + 1;
    *victim = at < v->nworkers ? fji_pool_worker(v->pool, at) : NULL;
    *s = at < v->nworkers ? NULL : fji_pool_submissions(v->pool, at - v->nworkers);
    return true;
}

static void steal_count(fji_worker *w, uint32_t n)
{
    fji_count(&w->steals, n);
}

/* Pushes the action that w has taken into w's queue. Returns false if the queue has no space. */
static bool steal_keep(fji_worker *w, const fji_taken *action)
{
    fj_cell *p = fji_worker_find_space(w);

    if (p == NULL) return false;
    fji_cell_put_action(p, (fj_action_fn *)action->fn, (void *)action->arg);
    fji_worker_publish(w, p, FJI_ACTION);
    return true;
}

/*
 * Takes the oldest task from submission queue s, or several actions. If it takes several actions,
 * *taken is the oldest. The others are pushed into w's queue, the youngest first, so that w takes
 * them from old to young and other workers can steal them. If w's queue has no space for one of
 * them, w runs it at once. If it has taken several actions, it also wakes another worker if one is
 * wanted. Returns the result of the attempt.
 */
static fji_steal_result steal_from_submissions(fji_worker *w, fji_submission_queue *s,
                                               fji_taken *taken)
{
    fji_taken some[FJI_SUBMISSIONS_BATCH];
    uint32_t n = 1;
    /* Takes only one task if on_reset has to run after each task, or if the pool is FIFO: actions
     * that are moved to w's queue could be run out of order. */
    bool one = w->pool->options.on_reset != NULL || w->pool->fifo;
    fji_steal_result got = one ? fji_submission_queue_steal(s, some)
                               : fji_submission_queue_steal_some(s, some, &n);

    if (got != FJI_STEAL_SUCCESS) return got;
    *taken = some[0];
    for (uint32_t i = n; i-- > 1;) {
        if (steal_keep(w, &some[i])) continue;
        fji_wake_after_find(w, true);
        fji_run_taken(w->pool, w, &some[i]); /* w's queue has no space, so it is run at once */
    }
    if (n == 1) return got;
    steal_count(w, n - 1);
    fji_wake_slow(&w->q.fast);
    return got;
}

/* Tries once to take a task for w: from the queue of v, or from submission queue s if v is NULL.
 * Returns EMPTY if v is w, or if v and s are NULL. root: if it is not 0, only a completer with this
 * root is taken. If it returns SUCCESS, sets *more to whether that queue may have further tasks. */
static fji_steal_result steal_from(fji_worker *w, fji_worker *v, fji_submission_queue *s,
                                   uintptr_t root, fji_taken *taken, bool *more)
{
    fji_steal_result got = FJI_STEAL_EMPTY;

    if (v != NULL && v != w) {
        got = fji_queue_steal_for(&v->q, 0, NULL, 0, root, taken);
        if (got != FJI_STEAL_SUCCESS) return got;
        *more = fji_queue_maybe(&v->q);
        taken->token = fji_scope_of_stolen(v, taken);
    } else if (s != NULL) {
        got = root != 0 ? fji_submission_queue_steal_root(s, root, taken)
                        : steal_from_submissions(w, s, taken);
        if (got == FJI_STEAL_SUCCESS) *more = fji_submission_queue_maybe(s);
    }
    return got;
}

/* Visits each queue once in the victim order until a task is taken. root: if it is not 0, only a
 * completer with this root is taken. *more: see steal_from(). Returns RETRY if no task was taken
 * and at least one queue may hold one. */
static fji_steal_result steal_round(fji_worker *w, uintptr_t root, fji_taken *taken, bool *more)
{
    struct victims victims = victims_of(w);
    fji_steal_result result = FJI_STEAL_EMPTY;
    fji_submission_queue *s;
    fji_worker *v;

    while (victims_next(&victims, &v, &s)) {
        fji_steal_result got = steal_from(w, v, s, root, taken, more);
        if (got == FJI_STEAL_SUCCESS) {
            steal_count(w, 1);
            return got;
        }
        if (got == FJI_STEAL_RETRY) result = got;
    }
    return result;
}

/* The places where a worker looks for tasks if its pool has ranked queues. */
enum place { PLACE_HIGH, PLACE_ORDINARY, PLACE_BACKGROUND, PLACES };

/* Returns the order in which w looks at the places for its next task. w counts only the tasks that
 * it has taken, so the first FJI_AGING_INTERVAL - 1 tasks come strictly by priority. */
static const enum place *steal_order(const fji_worker *w)
{
    static const enum place by_rank[] = {PLACE_HIGH, PLACE_ORDINARY, PLACE_BACKGROUND};
    static const enum place background_first[] = {PLACE_BACKGROUND, PLACE_ORDINARY, PLACE_HIGH};
    static const enum place ordinary_first[] = {PLACE_ORDINARY, PLACE_BACKGROUND, PLACE_HIGH};
    uint32_t next = w->ranked_takes + 1;

    if (next % FJI_AGING_INTERVAL != 0) return by_rank;
    return next % (2 * FJI_AGING_INTERVAL) != 0 ? background_first : ordinary_first;
}

/* Tries once to take the oldest task of the ranked queue at the place `at`. Sets *more as
 * steal_from() does. */
static fji_steal_result steal_ranked(fji_worker *w, enum place at, fji_taken *taken, bool *more)
{
    uint32_t rank = at == PLACE_HIGH ? FJI_RANK_HIGH : FJI_RANK_BACKGROUND;
    fji_submission_queue *s = fji_pool_submissions(w->pool, fji_pool_ranked(w->pool, rank));
    fji_steal_result got = s != NULL ? fji_submission_queue_steal(s, taken) : FJI_STEAL_EMPTY;

    if (got != FJI_STEAL_SUCCESS) return got;
    *more = fji_submission_queue_maybe(s);
    steal_count(w, 1);
    return got;
}

/* As steal_round() with a root of 0, for a pool with ranked queues. */
static FJI_COLD fji_steal_result steal_by_rank(fji_worker *w, fji_taken *taken, bool *more)
{
    const enum place *order = steal_order(w);
    fji_steal_result result = FJI_STEAL_EMPTY;

    for (int i = 0; i < PLACES; i++) {
        fji_steal_result got = order[i] == PLACE_ORDINARY ? steal_round(w, 0, taken, more)
                                                          : steal_ranked(w, order[i], taken, more);
        if (got == FJI_STEAL_SUCCESS) {
            w->ranked_takes++;
            return got;
        }
        if (got == FJI_STEAL_RETRY) result = got;
    }
    return result;
}

fji_steal_result fji_steal_any(fji_worker *w, fji_taken *taken)
{
    bool more = false;
    fji_steal_result got = FJI_LIKELY(!fji_pool_has_ranked(w->pool))
                               ? steal_round(w, 0, taken, &more)
                               : steal_by_rank(w, taken, &more);

    if (got == FJI_STEAL_SUCCESS) fji_wake_after_find(w, more);
    return got;
}

bool fji_steal_high(fji_worker *w, fji_taken *taken)
{
    bool more;

    /* The turn of another queue lasts until w takes its next task from a submission queue. */
    if (steal_order(w)[0] != PLACE_HIGH) return false;
    if (steal_ranked(w, PLACE_HIGH, taken, &more) != FJI_STEAL_SUCCESS) return false;
    w->ranked_takes++;
    return true;
}

fji_steal_result fji_steal_root(fji_worker *w, uintptr_t root, fji_taken *taken)
{
    bool more;

    return steal_round(w, root, taken, &more);
}

/* Tries once to take the oldest task of each ordinary submission queue, beginning with a random
 * queue, until it has taken a task. Returns whether it took a task. */
static bool steal_submission(fji_worker *w, fji_taken *taken)
{
    fj_pool *p = w->pool;

    for (uint32_t i = 0, at = fji_worker_random(w); i < p->nsubmissions; i++, at++) {
        fji_submission_queue *s = fji_pool_submissions(p, at & (p->nsubmissions - 1));
        if (s != NULL && fji_submission_queue_steal(s, taken) == FJI_STEAL_SUCCESS) {
            steal_count(w, 1);
            return true;
        }
    }
    return false;
}

bool fji_steal_submission(fji_worker *w, fji_taken *taken)
{
    bool more, got = false;

    if (FJI_LIKELY(!fji_pool_has_ranked(w->pool))) return steal_submission(w, taken);
    const enum place *order = steal_order(w);
    for (int i = 0; i < PLACES && !got; i++)
        got = order[i] == PLACE_ORDINARY
                  ? steal_submission(w, taken)
                  : steal_ranked(w, order[i], taken, &more) == FJI_STEAL_SUCCESS;
    if (got) w->ranked_takes++;
    return got;
}

fji_steal_result fji_steal_descendant(fji_worker *w, fji_worker *v, uint32_t from,
                                      const fji_link *links, int n, fji_taken *taken)
{
    fji_steal_result got = fji_queue_steal_for(&v->q, from, links, n, 0, taken);

    if (got == FJI_STEAL_SUCCESS) {
        taken->token = fji_scope_of_stolen(v, taken);
        steal_count(w, 1);
    }
    return got;
}

fji_steal_result fji_steal_own(fji_worker *w, fji_taken *taken)
{
    fji_steal_result got;

    while ((got = fji_queue_steal(&w->q, taken)) == FJI_STEAL_RETRY) fji_pause();
    if (got == FJI_STEAL_SUCCESS) taken->token = fji_scope_of_stolen(w, taken);
    return got;
}

bool fji_steal_any_submission(fj_pool *p, fji_taken *taken)
{
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        fji_submission_queue *s = fji_pool_submissions(p, i);
        fji_steal_result got = FJI_STEAL_EMPTY;
        while (s != NULL && (got = fji_submission_queue_steal(s, taken)) == FJI_STEAL_RETRY)
            fji_pause();
        if (got == FJI_STEAL_SUCCESS) return true;
    }
    return false;
}

bool fji_steal_any_queued(fj_pool *p, fji_taken *taken)
{
    uint32_t n = fji_pool_nworkers(p);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        fji_steal_result got = FJI_STEAL_EMPTY;
        while (v != NULL && (got = fji_queue_steal(&v->q, taken)) == FJI_STEAL_RETRY) fji_pause();
        if (got != FJI_STEAL_SUCCESS) continue;
        taken->token = fji_scope_of_stolen(v, taken);
        return true;
    }
    return false;
}
