/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - hands callbacks from any thread to the thread of an event loop
 *
 * The runner is the thread that is in fj_inbox_run(), fj_inbox_close() or fj_inbox_destroy(). There
 * is at most one. A poster is a thread that posts. To signal is to set the event of the inbox, so
 * that its descriptor becomes readable, or to call notify().
 *
 * The word `head` is the state of the inbox and the list of posted items, the newest one first:
 *
 *   ARMED     no item; the loop may sleep. The next poster has to signal
 *   AWAKE     no item; the runner checks the word again, or a signal is set
 *   an item   the newest item; a signal is set, or the runner or a poster is about to signal
 *   CLOSED    for ever
 *
 * Transitions, each of them one read-modify-write
 *   post     poster   ARMED, AWAKE or item -> item; after ARMED the poster signals
 *   take     runner   ARMED, AWAKE or item -> AWAKE; the items go to the list `ready`, oldest first
 *   arm      runner   AWAKE -> ARMED, only if `ready` is empty
 *   close    runner   all -> CLOSED
 *
 * No wake-up is lost
 *   The runner clears the event, and then arms. All changes of `head` are read-modify-writes of one
 *   word, so each post comes either before or after the arming. A post before it makes the arming
 *   fail: the runner sees the item, sets the event again and does not arm. A post after it finds
 *   ARMED and signals, after the event was cleared [inbox.arm]. Clearing the event after the arming
 *   could clear the signal of such a post. A poster may signal so late that its item was run and the
 *   inbox armed again; then the loop is woken once without a reason.
 *
 * While the runner finds items each time it looks, the word never becomes ARMED, so neither the
 * runner nor a poster signals or clears the event: the descriptor stays readable.
 *
 * A post is one CAS, which both adds the item and tells the poster whether to signal. A queue whose
 * posters first exchange its end and then link the item would need no list in reverse order. But a
 * poster that is interrupted between the two steps would leave a gap, at which the runner would have
 * to wait.
 *
 * References
 *   `refs` counts references in its lower half and signal tokens in its upper half. The thread that
 *   drops the last of both frees the inbox.
 *   - The creator has one reference, and each registered fj_future_notify() has one. The latter
 *     belongs to the item when the item is posted, and the runner drops it when it takes the item.
 *     So a post of an item does not access the inbox after its CAS, unless the poster signals.
 *   - A signal token is the permission to signal. The runner makes it before it arms. The poster
 *     that finds ARMED gets it and drops it after its signal. So the inbox lives until then, even if
 *     the runner has run the item and destroyed the inbox meanwhile. If no poster comes, the runner
 *     gets the token back when it takes or closes.
 *
 * Edges             from                          to                             carries
 *   inbox.post      acq_rel CAS, inbox_push()     acq_rel swap, take and close   the items
 *   inbox.arm       acq_rel CAS, inbox_arm()      acq_rel CAS, inbox_push()      the cleared event
 *   inbox.runner    release store, inbox_leave()  acq_rel CAS, inbox_enter()     what the runner did
 *   inbox.refs      acq_rel, inbox_drop()         the same, the last one         all accesses
 * inbox_cells.c has the edges of the cells.
 */
#include <forkjoin/inbox.h>
#include <limits.h>

#include "inbox_cells.h"
#include "plat/atomic.h"
#include "plat/plat.h"

/* Values of `head` that are no addresses of items. */
#define ARMED 0ull
#define AWAKE 1ull
#define CLOSED 2ull

/* Parts of `refs`. */
#define ONE_REFERENCE 1ull
#define ONE_TOKEN (1ull << 32)

/* Values of fj_inbox_item.kind. */
enum inbox_kind {
    KIND_CALLER = 0, /* memory of the caller */
    KIND_POST,       /* a cell of fj_inbox_post() */
    KIND_NOTIFY      /* a cell of fj_future_notify() */
};

/* A list of items, the oldest one first. */
struct inbox_list {
    fj_inbox_item *first, *last;
    size_t n;
};

struct fj_inbox {
    /* Written by all threads. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t head;
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_inbox_cells cells;
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t refs;
    uint64_t runner; /* identifies the runner, or 0 */

    /* Written by the runner only. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) struct inbox_list ready; /* items that were taken and not run */
    fji_inbox_used used;                                 /* cells to give back */
    int depth;      /* how often the runner has entered: it may do so again in a callback */
    bool armed;     /* the runner has armed the inbox and has not taken since */
    bool token;     /* the runner has a signal token */
    bool signalled; /* the event is set, or a poster is about to set it; false with notify() */
    bool closed;
    bool destroyed; /* fj_inbox_destroy() was called */
    bool drops;     /* the runner drops the creator's reference when it leaves */

    /* Constant. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fj_inbox_options options;
    fji_event event;
    int64_t process; /* the process that has created the inbox */
};

/* The calls of notify() that the calling thread is in, the innermost one first. */
struct inbox_notify {
    const fj_inbox *inbox;
    struct inbox_notify *outer;
};

static __thread struct inbox_notify *inbox_notifies;

/* ---- References ------------------------------------------------------------------------------ */

static void inbox_free(fj_inbox *inbox)
{
    if (inbox->options.notify == NULL) fji_plat_event_close(&inbox->event);
    fji_inbox_cells_fini(&inbox->cells);
    fji_plat_free(inbox);
}

/* Drops references or tokens. Frees the inbox with the last one. LAST TOUCH of *inbox. */
static void inbox_drop(fj_inbox *inbox, uint64_t what)
{
    if (what == 0) return;
    /* [inbox.refs] acq_rel <-> acq_rel: all accesses of other threads happen before the inbox is
     * freed. */
    if (fji_add_acq_rel(&inbox->refs, -what) == what) inbox_free(inbox);
}

fj_inbox *fj_inbox_ref(fj_inbox *inbox)
{
    /* relaxed: the caller knows that the inbox has a reference, so it is not freed meanwhile. */
    if (inbox != NULL) fji_add_relaxed(&inbox->refs, ONE_REFERENCE);
    return inbox;
}

void fj_inbox_unref(fj_inbox *inbox)
{
    if (inbox != NULL) inbox_drop(inbox, ONE_REFERENCE);
}

/* ---- Creating -------------------------------------------------------------------------------- */

static bool options_are_valid(const fj_inbox_options *o)
{
    uint64_t all = 0;

    for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++) all |= o->reserved[i];
    return all == 0;
}

int fj_inbox_create(const fj_inbox_options *options, fj_inbox **inbox)
{
    const fj_inbox_options o = options != NULL ? *options : (fj_inbox_options){0};

    if (inbox == NULL || !options_are_valid(&o)) return FJ_EINVAL;
    fj_inbox *new = fji_plat_alloc(sizeof *new);
    if (new == NULL) return FJ_ENOMEM;
    if (o.notify == NULL && !fji_plat_event_open(&new->event)) {
        fji_plat_free(new);
        return FJ_EAGAIN;
    }
    fji_inbox_cells_init(&new->cells);
    new->options = o;
    new->process = fji_plat_process();
    new->head = ARMED;
    new->armed = true;
    new->refs = ONE_REFERENCE + ONE_TOKEN;
    *inbox = new;
    return FJ_OK;
}

int fj_inbox_fd(const fj_inbox *inbox)
{
    return inbox != NULL && inbox->options.notify == NULL ? inbox->event.fd : FJ_EINVAL;
}

/* ---- Posting --------------------------------------------------------------------------------- */

static void inbox_signal(fj_inbox *inbox)
{
    struct inbox_notify here = {inbox, inbox_notifies};

    if (inbox->options.notify == NULL) {
        fji_plat_event_set(&inbox->event);
        return;
    }
    inbox_notifies = &here;
    inbox->options.notify(inbox->options.notify_arg);
    inbox_notifies = here.outer;
}

/* Posts the item and signals if the loop may sleep. Returns false if the inbox is closed; the item
 * is not posted then. LAST TOUCH of *item and *inbox if it returns true. */
static bool inbox_push(fj_inbox *inbox, fj_inbox_item *item)
{
    uint64_t old = fji_load_relaxed(&inbox->head); /* relaxed: the CAS checks it */

    do {
        if (old == CLOSED) return false;
        item->next = old > CLOSED ? (fj_inbox_item *)(uintptr_t)old : NULL;
        /* [inbox.post] release -> acquire in inbox_take() and inbox_close(): the item, and what the
         * poster did before. [inbox.arm] acquire <- release in inbox_arm(): if the old value is
         * ARMED, the signal below comes after the event was cleared. */
    } while (!fji_cas_acq_rel_64(&inbox->head, &old, (uint64_t)(uintptr_t)item));
    if (old == ARMED) {
        inbox_signal(inbox);
        inbox_drop(inbox, ONE_TOKEN);
    }
    return true;
}

/* Returns whether the inbox is closed at this moment. */
static bool inbox_is_closed(const fj_inbox *inbox)
{
    return fji_load_relaxed(&inbox->head) == CLOSED; /* relaxed: it publishes nothing */
}

static void cell_give_back(fj_inbox *inbox, fji_inbox_cell *c)
{
    fji_inbox_used used = {0};

    fji_inbox_used_add(&used, c);
    fji_inbox_used_give_back(&inbox->cells, &used);
}

int fj_inbox_post(fj_inbox *inbox, fj_inbox_fn *fn, void *arg)
{
    if (inbox == NULL || fn == NULL) return FJ_EINVAL;
    if (inbox_is_closed(inbox)) return FJ_EREJECTED;
    fji_inbox_cell *c = fji_inbox_cell_take(&inbox->cells);
    if (c == NULL) return FJ_ENOMEM;
    c->item.fn = fn;
    c->item.arg = arg;
    c->item.kind = KIND_POST;
    if (inbox_push(inbox, &c->item)) return FJ_OK;
    cell_give_back(inbox, c);
    return FJ_EREJECTED;
}

void fj_inbox_item_init(fj_inbox_item *item, fj_inbox_fn *fn, void *arg)
{
    if (item != NULL) *item = (fj_inbox_item){.fn = fn, .arg = arg};
}

int fj_inbox_post_item(fj_inbox *inbox, fj_inbox_item *item)
{
    if (inbox == NULL || item == NULL || item->fn == NULL) return FJ_EINVAL;
    /* relaxed, as the two stores below: only the thread that owns the item may post it. After the
     * callback was called, what the runner did happens before its next owner posts it. */
    if (fji_load_relaxed(&item->posted) != 0) return FJ_EBUSY;
    fji_store_relaxed(&item->posted, 1u);
    if (inbox_push(inbox, item)) return FJ_OK;
    fji_store_relaxed(&item->posted, 0u); /* relaxed: as above */
    return FJ_EREJECTED;
}

/* ---- The runner ------------------------------------------------------------------------------ */

/* Makes the calling thread the runner, also if it is already. Returns FJ_OK, FJ_EBUSY if another
 * thread is the runner, or FJ_EREJECTED in the child of a fork(). */
static int inbox_enter(fj_inbox *inbox)
{
    uint64_t me = (uint64_t)fji_plat_thread_self().handle + 1, none = 0;

    if (inbox->process != fji_plat_process()) return FJ_EREJECTED;
    /* relaxed: the word equals `me` only if this thread has stored it.
     * [inbox.runner] acquire <- release in inbox_leave(): what the last runner did. */
    if (fji_load_relaxed(&inbox->runner) != me && !fji_cas_acq_rel_64(&inbox->runner, &none, me))
        return FJ_EBUSY;
    inbox->depth++;
    return FJ_OK;
}

/* Ends inbox_enter(). LAST TOUCH of *inbox if it is destroyed. */
static void inbox_leave(fj_inbox *inbox)
{
    if (--inbox->depth > 0) return;
    bool drops = inbox->drops;
    inbox->drops = false;
    /* [inbox.runner] release -> acquire in inbox_enter(): what this runner did. */
    fji_store_release(&inbox->runner, 0ull);
    if (drops) inbox_drop(inbox, ONE_REFERENCE);
}

/* Appends the items of `head`, which are linked from the newest to the oldest, to `ready`. Drops the
 * references of the registered futures among them. */
static void ready_append(fj_inbox *inbox, uint64_t head)
{
    struct inbox_list *r = &inbox->ready;
    fj_inbox_item *newest = (fj_inbox_item *)(uintptr_t)head, *after = NULL;
    uint64_t references = 0;

    for (fj_inbox_item *i = newest, *older; i != NULL; i = older) {
        older = i->next;
        i->next = after;
        after = i;
        r->n++;
        if (i->kind == KIND_NOTIFY) references += ONE_REFERENCE;
    }
    if (r->first == NULL)
        r->first = after;
    else
        r->last->next = after;
    r->last = newest;
    inbox_drop(inbox,
               references); /* not the last one: the creator has one until the runner leaves */
}

static fj_inbox_item *ready_pop(fj_inbox *inbox)
{
    fj_inbox_item *i = inbox->ready.first;

    if (i == NULL) return NULL;
    inbox->ready.first = i->next;
    inbox->ready.n--;
    return i;
}

/* Changes `head` to `next`, which is AWAKE or CLOSED, and moves its items to `ready`. */
static void inbox_take(fj_inbox *inbox, uint64_t next)
{
    /* [inbox.post] acquire <- release in inbox_push(): the items. */
    uint64_t old = fji_swap_acq_rel(&inbox->head, next);

    if (old == ARMED) inbox->token = true; /* no poster has got it */
    if (old > CLOSED) {
        inbox->signalled = inbox->options.notify == NULL;
        ready_append(inbox, old);
    }
    inbox->armed = false;
}

/* Tries to change `head` from AWAKE to ARMED. Returns false if items were posted meanwhile; the
 * event is not set then. */
static bool inbox_arm(fj_inbox *inbox)
{
    uint64_t old = AWAKE;

    if (!inbox->token) {
        fji_add_relaxed(&inbox->refs, ONE_TOKEN); /* relaxed: the runner has a reference */
        inbox->token = true;
    }
    if (inbox->options.notify == NULL) fji_plat_event_clear(&inbox->event);
    inbox->signalled = false;
    /* [inbox.arm] release -> acquire in inbox_push(): the event was cleared. */
    if (!fji_cas_acq_rel_64(&inbox->head, &old, ARMED)) return false;
    inbox->armed = true;
    inbox->token = false;
    return true;
}

/* Called before the runner leaves. Arms the inbox if it is empty. Otherwise the loop has to come
 * again, so this function signals, unless a signal is set already. */
static void inbox_settle(fj_inbox *inbox)
{
    fji_inbox_used_give_back(&inbox->cells, &inbox->used);
    if (inbox->armed) return;
    if (inbox->closed) {
        if (inbox->options.notify == NULL) fji_plat_event_clear(&inbox->event);
        return;
    }
    /* relaxed: only a hint; inbox_arm() decides. */
    bool empty = inbox->ready.n == 0 && fji_load_relaxed(&inbox->head) == AWAKE;
    if ((empty && inbox_arm(inbox)) || inbox->signalled) return;
    inbox_signal(inbox);
    inbox->signalled = inbox->options.notify == NULL;
}

/* ---- Running and dropping -------------------------------------------------------------------- */

/* Sets *call to the callback of the item, and lets go of the item: it belongs to the caller of
 * fj_inbox_post_item() again, or its cell is in *used. LAST TOUCH of *item. */
static void item_release(fj_inbox_item *item, fji_inbox_used *used, fj_inbox_dropped *call)
{
    fji_inbox_cell *c = (fji_inbox_cell *)item;

    *call = (fj_inbox_dropped){.arg = item->arg};
    if (item->kind == KIND_NOTIFY) {
        call->done = c->done;
        call->future = c->future;
    } else {
        call->fn = item->fn;
    }
    if (item->kind == KIND_CALLER)
        fji_store_relaxed(&item->posted, 0u); /* relaxed: as in fj_inbox_post_item() */
    else
        fji_inbox_used_add(used, c);
}

/* Returns f if the inbox has a reference to it, or NULL if f is embedded. Called before the
 * callback, which may free an embedded future. */
static fj_future *future_held(fj_future *f)
{
    return f != NULL && (f->flags & FJI_FUTURE_ALLOCATED) != 0 ? f : NULL;
}

static void inbox_run_item(fj_inbox *inbox, fj_inbox_item *item)
{
    bool notifies = item->kind == KIND_NOTIFY;
    fj_inbox_dropped call;

    item_release(item, &inbox->used, &call);
    if (inbox->used.n >= FJI_INBOX_BATCH) fji_inbox_used_give_back(&inbox->cells, &inbox->used);
    if (!notifies) {
        call.fn(call.arg);
    } else {
        fj_future *held = future_held(call.future);
        call.done(call.future, call.arg);
        fj_future_unref(held);
    }
}

/* Passes the callback to drop(). */
static void inbox_drop_call(fj_inbox *inbox, const fj_inbox_dropped *call)
{
    fj_future *held = future_held(call->future);

    if (inbox->options.drop != NULL) inbox->options.drop(call, inbox->options.drop_arg);
    fj_future_unref(held);
}

int fj_inbox_run(fj_inbox *inbox, int max)
{
    int n = 0;

    if (inbox == NULL || max < 0) return FJ_EINVAL;
    size_t limit = max == 0 ? INT_MAX : (size_t)max;
    int err = inbox_enter(inbox);
    if (err != FJ_OK) return err;
    if (!inbox->closed && inbox->ready.n < limit) inbox_take(inbox, AWAKE);
    if (limit > inbox->ready.n) limit = inbox->ready.n;
    for (fj_inbox_item *i; (size_t)n < limit && (i = ready_pop(inbox)) != NULL; n++)
        inbox_run_item(inbox, i);
    inbox_settle(inbox);
    inbox_leave(inbox);
    return n;
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Returns whether the calling thread is in notify() of the inbox. */
static bool is_in_notify(const fj_inbox *inbox)
{
    const struct inbox_notify *n = inbox_notifies;

    while (n != NULL && n->inbox != inbox) n = n->outer;
    return n != NULL;
}

/* Waits until no poster is in notify(). The inbox is closed, and the runner has no token. */
static void inbox_await_posters(fj_inbox *inbox)
{
    uint32_t none = 0;

    /* [inbox.refs] acquire <- acq_rel in inbox_drop(): the return from notify(). */
    while (fji_load_acquire(&inbox->refs) >= ONE_TOKEN)
        (void)fji_plat_wait(&none, 0, fji_plat_now() + FJI_INBOX_CLOSE_NS);
}

/* Called by the runner. */
static void inbox_close(fj_inbox *inbox)
{
    fj_inbox_dropped call;

    if (inbox->closed) return;
    inbox->closed = true;
    inbox_take(inbox, CLOSED);
    if (inbox->token) inbox_drop(inbox, ONE_TOKEN);
    inbox->token = false;
    if (inbox->options.notify != NULL) inbox_await_posters(inbox);
    for (fj_inbox_item *i; (i = ready_pop(inbox)) != NULL;) {
        item_release(i, &inbox->used, &call);
        inbox_drop_call(inbox, &call);
    }
    inbox_settle(inbox);
}

int fj_inbox_close(fj_inbox *inbox)
{
    if (inbox == NULL) return FJ_EINVAL;
    if (is_in_notify(inbox)) return FJ_EDEADLK;
    int err = inbox_enter(inbox);
    if (err != FJ_OK) return err;
    inbox_close(inbox);
    inbox_leave(inbox);
    return FJ_OK;
}

/* The memory stays: registered futures of the parent process have pointers to it. */
static int destroy_in_child(const fj_inbox *inbox)
{
    if (inbox->options.notify == NULL) fji_plat_event_close(&inbox->event);
    return FJ_OK;
}

int fj_inbox_destroy(fj_inbox *inbox)
{
    if (inbox == NULL) return FJ_OK;
    if (is_in_notify(inbox)) return FJ_EDEADLK;
    int err = inbox_enter(inbox);
    if (err == FJ_EREJECTED) return destroy_in_child(inbox);
    if (err != FJ_OK) return err;
    bool again = inbox->destroyed;
    if (!again) inbox->destroyed = inbox->drops = true;
    inbox_close(inbox);
    inbox_leave(inbox);
    return again ? FJ_EINVAL : FJ_OK;
}

/* ---- Futures --------------------------------------------------------------------------------- */

/* Called when the future is done, by the thread that has decided its outcome. */
static void notify_done(fj_future *f, void *arg)
{
    fji_inbox_cell *c = arg;
    fj_inbox *inbox = c->inbox;
    fj_inbox_dropped call = {.done = c->done, .future = fj_future_ref(f), .arg = c->item.arg};

    c->future = f;
    if (inbox_push(inbox, &c->item)) return;
    cell_give_back(inbox, c);
    inbox_drop_call(inbox, &call);
    inbox_drop(inbox, ONE_REFERENCE);
}

int fj_future_notify(fj_future *f, fj_inbox *inbox, fj_done_fn *done, void *arg)
{
    if (f == NULL || inbox == NULL || done == NULL) return FJ_EINVAL;
    if (inbox_is_closed(inbox)) return FJ_EREJECTED;
    fji_inbox_cell *c = fji_inbox_cell_take(&inbox->cells);
    if (c == NULL) return FJ_ENOMEM;
    c->item.arg = arg;
    c->item.kind = KIND_NOTIFY;
    c->inbox = fj_inbox_ref(inbox);
    c->done = done;
    int err = fj_future_listen(f, &c->listener, notify_done, c);
    if (err == FJ_OK) return FJ_OK;
    cell_give_back(inbox, c);
    fj_inbox_unref(inbox);
    return err;
}
