/* SPDX-License-Identifier: MIT */
/*
 * idle.pml - going idle and waking up: a queued task never stays while all workers sleep
 *
 * Modelled: WORKERS workers that scan the queues and take tasks. A worker that has found nothing
 * pushes itself onto the idle stack of the control word, passes the heavy fence, rescans the queues
 * and parks. A producer, which is itself a worker, forks FORKS tasks into its own queue. A
 * submitter puts SUBMITS tasks into a second queue. Both pass only a light fence before they read
 * the control word (TSO: their store waits in a buffer). The heavy fence empties the buffers, one
 * thread after the other. With SYMMETRIC, producer and submitter pass a full fence instead, and
 * there is no heavy fence. With LOCKS, the producer finally holds its queue LOCKED for a while.
 * Afterwards it reads the control word (not with NO_LOOK), and a worker that finds the queue LOCKED
 * does not treat it as empty (except with LOCKED_IS_EMPTY). One of the two is enough.
 *
 * The count in the control word is the number of workers that are not idle minus the target. There
 * are SURPLUS workers more than the target, so the count is negative while more than SURPLUS
 * workers are idle. Only then does a signal (wake_one in the sources) wake a worker. The signalling
 * thread pops the top worker, swaps its park word to ACTIVE and calls the kernel only if the park
 * word was PARKED. The kernel compares the park word before it lets a thread sleep. A worker whose
 * rescan finds a task signals, which may pop itself or another worker, and then waits for its own
 * park word. It does not stop the rescan because it was woken meanwhile: see M_RESCAN_EARLY. If it
 * is woken earlier, while it waits for the heavy fence, it owes the rescan and makes it after it
 * has taken a task (not with M_OWES_NOTHING). A worker that takes a task and sees another task
 * behind it signals (not with NO_PROPAGATION).
 *
 * LIMIT is the number of permits (searching slots in the sources). A signal that would wake a
 * worker takes a permit and passes it to that worker. If there is no permit, the signal wakes no
 * worker and sets `waived` (WAKE_DEFERRED). A worker that has taken a task passes its permit on if it
 * has seen another task, or if `waived` is set and no other permit is in use. Otherwise it gives the
 * permit back. It also gives the permit back
 * before it goes idle. It clears `waived` before its rescan and sets it again if the rescan finds a
 * task.
 *
 * Checked: when no process can move, no task is queued. Producer and submitter never take a task
 * back. With LONG, a task that has begun never ends, so the check becomes "no task waits while a
 * worker sleeps". This needs as many workers as tasks.
 *
 * Left out: ABA on the stack (idle_aba.pml), how a task is taken (queue.pml and subq.pml; here it
 * is one step), the start and exit of workers, blocked workers and their replacements, spinning
 * before the sleep, timeouts, machines weaker than TSO.
 */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef FORKS
#define FORKS 2
#endif
#ifndef SUBMITS
#define SUBMITS 1
#endif
#ifndef LOCKS
#define LOCKS 0
#endif
#ifndef LONG
#define LONG 0
#endif
#ifndef SURPLUS
#define SURPLUS 0
#endif
#ifndef SYMMETRIC
#define SYMMETRIC 0
#endif

#ifndef LIMIT
#define LIMIT 0 /* no limit, and permits are not counted */
#endif

/* Whether the count in the control word is negative. */
#define NEGATIVE (idle > SURPLUS)

#define ACTIVE 0
#define IDLE 1
#define PARKED 2

byte queue[2];  /* tasks in memory: the producer's queue, the submission queue */
byte buffer[2]; /* tasks in the store buffers of the producer and the submitter */
bit locked;     /* the producer's queue is LOCKED */
bit unlocking;  /* the store that ends LOCKED is in the buffer */

byte stack[WORKERS]; /* the idle workers; the last one is the top */
byte idle;           /* the number of idle workers */
byte park[WORKERS];
bit asleep[WORKERS];
bit over[2];         /* the producer and the submitter have ended */
byte count;          /* permits in use */
byte takes;          /* permits taken so far */
bit waived;
bit permit[WORKERS];

/* ---- The parts that a mutation removes ---- */

#if defined(M_NO_HEAVY_FENCE) || SYMMETRIC
#define HEAVY_FENCE skip
#else
#define HEAVY_FENCE                            \
    d_step {                                   \
        queue[0] = queue[0] + buffer[0];       \
        buffer[0] = 0;                         \
        locked = locked && !unlocking;         \
        unlocking = 0                          \
    };                                         \
    d_step {                                   \
        queue[1] = queue[1] + buffer[1];       \
        buffer[1] = 0                          \
    }
#endif
#ifdef M_LOCKED_IS_EMPTY
#define LOCKED_IS_EMPTY
#define NO_LOOK
#endif
#ifdef LOCKED_IS_EMPTY
#define NON_EMPTY(q) (queue[q] > 0 && !(q == 0 && locked))
#else
#define NON_EMPTY(q) (queue[q] > 0 || q == 0 && locked)
#endif
#ifdef M_NO_WAKE
#define WAKE(w) skip
#else
#define WAKE(w) asleep[w] = 0
#endif
#ifdef M_NO_COMPARE
#define KERNEL_COMPARES true
#else
#define KERNEL_COMPARES (park[me] == PARKED)
#endif
#ifdef NO_PROPAGATION
#define PROPAGATE 0
#else
#define PROPAGATE 1
#endif

#define CAN_TAKE(q) (queue[q] > 0 && !(q == 0 && locked))
#define TAKE(q)  \
    queue[q]--; \
    more = queue[q] > 0 && PROPAGATE

/*
 * Wakes one worker if one is idle; `s` is a variable of the caller. The CAS waits until the
 * caller's stores, if it has any, are in memory.
 */
#define NOBODY WORKERS
#ifdef M_NO_SECOND_LOOK
#define RELIED_ON 0
#else
#define RELIED_ON waived
#endif
inline signal(stores)
{
#if LIMIT == 0
    atomic {
        stores == 0;
        if
        :: NEGATIVE -> idle--; s = stack[idle]; stack[idle] = 0
        :: else -> s = NOBODY
        fi
    }
#else
    do
    :: atomic { stores == 0; seen = NEGATIVE }
        atomic {
            if
            :: !seen && !has -> break
            :: !seen && has -> /* gives the permit back; another signal may have relied on it */
                has = 0; count--;
                if
                :: RELIED_ON
                :: else -> break
                fi
            :: seen && !has ->
                if
                :: count < LIMIT -> count++; has = 1; takes++
                :: else -> waived = 1; break
                fi
            :: seen && has ->
                if
                :: NEGATIVE ->
                    idle--; s = stack[idle]; stack[idle] = 0;
                    permit[s] = 1; has = 0; break
                :: else
                fi
            fi
        }
    od;
    seen = 0;
#endif
    atomic { /* swap */
        if
        :: s != NOBODY && park[s] == PARKED -> park[s] = ACTIVE
        :: s != NOBODY && park[s] != PARKED -> park[s] = ACTIVE; s = NOBODY
        :: else
        fi
    }
    atomic {
        if
        :: s != NOBODY -> WAKE(s)
        :: else
        fi;
        s = NOBODY
    }
}

proctype Worker(byte me)
{
    byte s = NOBODY;
    bit q, more, owes;
#if LIMIT
    bit seen, has, was;
    byte before;
#endif

scan:
    atomic { /* starts with either queue; a surplus worker does not scan at all */
        if
        :: q = 0
        :: q = 1
        :: idle < SURPLUS -> goto idling
        fi;
        if
        :: CAN_TAKE(q) -> TAKE(q); goto taken
        :: else -> q = 1 - q
        fi
    }
    atomic {
        if
        :: CAN_TAKE(q) -> TAKE(q); goto taken
        :: else -> q = 0
        fi
    }
idling:
#if LIMIT
    atomic {
        if
        :: permit[me] -> permit[me] = 0; count--
        :: else
        fi
    }
#endif
    atomic { owes = 0; park[me] = IDLE; stack[idle] = me; idle++ }
    atomic {
        if
        :: true
        :: park[me] == ACTIVE ->
#ifndef M_OWES_NOTHING
            owes = 1;
#endif
            goto scan
        fi
    }
    HEAVY_FENCE;
#if LIMIT
    was = 0;
clear:
    atomic {
        was = was || waived;
        before = takes;
#ifndef M_CLEAR_LATE
        waived = 0
#endif
    }
#endif
#ifdef M_NO_RESCAN
    goto wait;
#endif
    atomic {
        if
        :: q = 0
        :: q = 1
        fi;
        if
        :: NON_EMPTY(q)
        :: else -> goto other
        fi
    }
    goto found;
other:
    atomic {
        q = 1 - q;
        if
        :: NON_EMPTY(q)
#if LIMIT && defined(M_CLEAR_LATE)
        :: else -> waived = 0; was = 0; goto wait
#elif LIMIT && !defined(M_ONE_RESCAN)
        :: else -> goto again
#else
        :: else -> goto wait
#endif
#ifdef M_RESCAN_EARLY
        :: park[me] == ACTIVE -> goto wait
#endif
        fi
    }
#if LIMIT && !defined(M_ONE_RESCAN)
    goto found;
again: /* a worker that was woken meanwhile may have taken the task that this rescan is for */
    atomic {
        if
        :: was && takes != before -> goto clear
        :: else -> goto wait
        fi
    }
#endif
found:
#if LIMIT && !defined(M_WAIVED_FORGOTTEN)
    atomic {
        if
        :: was -> waived = 1
        :: else
        fi
    }
#endif
    signal(0);
wait:
    atomic {
        q = 0;
        if
        :: park[me] == ACTIVE -> goto scan
        :: else
        fi
#ifdef M_PARK_STORE
    }
    atomic {
#endif
        park[me] = PARKED
    }
    atomic {
        if
        :: KERNEL_COMPARES -> asleep[me] = 1
        :: else -> goto wait
        fi
    }
end_sleep:
    !asleep[me];
    goto wait;

taken:
    if
    :: owes ->
        atomic { more = more || NON_EMPTY(0) }
        atomic { more = more || NON_EMPTY(1); owes = 0 }
    :: else
    fi;
#if LIMIT
    atomic {
        if
        :: permit[me] && (more || waived && count == 1) -> has = 1; more = 1; permit[me] = 0
        :: permit[me] && !(more || waived && count == 1) -> count--; permit[me] = 0
        :: else
        fi;
#ifdef M_FINDER_PASSES_NOTHING_ON
        count = count - has; has = 0; more = 0;
#endif
#ifdef M_PERMIT_KEPT
        has = 0;
#endif
        was = 0
    }
#endif
    atomic {
        q = 0;
        if
        :: more -> more = 0
        :: else -> goto body
        fi
    }
    signal(0);
body:
#if LONG
end_run:
    false
#else
    goto scan
#endif
}

#if SYMMETRIC
#define FENCE(stores) stores == 0
#else
#define FENCE(stores) skip
#endif

proctype Producer()
{
    byte i, s = NOBODY;
#if LIMIT
    bit seen, has;
#endif

    do
    :: i < FORKS ->
#ifdef M_SIGNAL_FIRST
        if
        :: NEGATIVE -> signal(buffer[0] + unlocking)
        :: else
        fi;
        atomic { buffer[0]++; i++ }
#else
        atomic { buffer[0]++; i++ }
        FENCE(buffer[0]);
        if
        :: NEGATIVE -> signal(buffer[0] + unlocking)
        :: else
        fi
#endif
    :: else -> break
    od;
#if LOCKS
    atomic { buffer[0] == 0 -> locked = 1 } /* CAS */
    unlocking = 1; /* a store */
    FENCE(unlocking);
#ifndef NO_LOOK
    if
    :: NEGATIVE -> signal(buffer[0] + unlocking)
    :: else
    fi;
#endif
#endif
    over[0] = 1
}

proctype Submitter()
{
    byte i, s = NOBODY;
#if LIMIT
    bit seen, has;
#endif

    do
    :: i < SUBMITS ->
        atomic { buffer[1]++; i++ }
        FENCE(buffer[1]);
        if
        :: NEGATIVE -> signal(buffer[1])
        :: else
        fi
    :: else -> break
    od;
    over[1] = 1
}

proctype Memory()
{
end_empty:
    do
    :: atomic { buffer[0] > 0 -> buffer[0]--; queue[0]++ }
    :: atomic { buffer[1] > 0 -> buffer[1]--; queue[1]++ }
#if LOCKS
    :: atomic { unlocking -> unlocking = 0; locked = 0 }
#endif
    od
}

/* Runs when no other process can move. */
proctype Watcher()
{
end_watch:
    timeout;
    assert(over[0] && over[1]);
    assert(queue[0] == 0 && queue[1] == 0);
    assert(count == 0)
}

init
{
    byte i;
    atomic {
        run Producer();
        run Submitter();
        run Memory();
        run Watcher();
        do
        :: i < WORKERS -> run Worker(i); i++
        :: else -> break
        od
    }
}
