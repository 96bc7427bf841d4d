/* SPDX-License-Identifier: MIT */
/*
 * queue.pml - the worker's queue of src/queue/queue.h: one owner, THIEVES thieves
 *
 * Modelled: push, take of the topmost cell (fji_pop() and its slow path), take of any other cell,
 * reclaiming (here called settle), give back, close at any limit, opening by the owner and by a
 * thief, steal with its heavy fence, and skipping tombstones (TOMB). The machine is TSO. The owner's stores to
 * cells and to floor, and a thief's store to floor, wait in a buffer of their thread. They reach
 * memory one by one, in order, at any later moment. A load sees the buffer of its own thread first.
 * A CAS and a full fence wait until that buffer is empty. The heavy fence empties the buffers of
 * all other threads, one thread after the other.
 *
 * Bounds: N cells, B stores in the owner's buffer. The processes never end: the owner does any
 * operation that is allowed at the moment, the thieves steal forever, and every reachable state is
 * visited. The model stores no epoch, only whether a thief has read the current one; this is exact,
 * because an epoch only grows. A task is identified by its cell and by one bit that changes with
 * every push to that cell. The task after the next one is therefore the same again, as if its
 * memory had been reused. The model does not record which thief stole a task, so two Thief
 * processes stand for any number of thieves of which two act at a time. The owner may give a stolen
 * cell back at once, which covers a task that is done as well as one that is detached.
 *
 * Checked: a task is taken once, by one thread; a dropped TOMB belonged to a task that the owner
 * took; a task that the owner waits for was stolen; no queued task is below index; the invariants
 * of queue.h hold whenever the owner is between two operations (not with TASKS_ONLY); there is no
 * deadlock. With NONE_CHECK: if a thief finds the cell FREE or END, whether or not base has changed
 * meanwhile, it has not missed a task that was there all the time.
 *
 * Left out: machines weaker than TSO; wrap of the epoch; growth and compaction (subq.pml has the
 * LOCKED state); the fields of a cell other than `what`, its item; livelock.
 *
 * Options: WITH_TOMBS allows taking and giving back cells that are not topmost. WITH_CLOSE allows
 * the queue to be CLOSED.
 */

#ifndef N
#define N 3
#endif
#ifndef B
#define B 3
#endif
#ifndef THIEVES
#define THIEVES 2
#endif
#ifndef WITH_TOMBS
#define WITH_TOMBS 1
#endif
#ifndef WITH_CLOSE
#define WITH_CLOSE 1
#endif

/* Values of a cell. T0 and T0 + 1: a task; the bit alternates with each push to the cell. */
#define FREE 0
#define TOMB 1
#define CLAIM 2
#define T0 3
#define END 5

/* The state of the task that was pushed last into a cell. */
#define NOTHING 0 /* there is none, or its owner took it */
#define QUEUED 1
#define STOLEN 2

/* Floor and limit are positions. N is the address of floor in the buffer, N + 1 that of limit. */
#define MAX 9

byte mem[N + 1];  /* the cells in memory */
byte own[N + 1];  /* the cells as the owner sees them */
byte floor;       /* floor in memory */
byte limit;       /* limit in memory: below it thieves take from a CLOSED queue */
byte ba[B];       /* the owner's store buffer: addresses, */
byte bv[B];       /* values, */
byte bn;          /* number of stores */
byte idx;         /* base: index, */
bit closed;       /* state */
byte st[N];       /* state of the task pushed last into a cell */
bit gen[N];
bit asked[THIEVES]; /* a thief's buffer holds the store floor = MAX */
byte view[THIEVES]; /* the epoch that a thief has read: 0 none, 1 the current one, 2 an older one */

#ifdef NONE_CHECK
/* The cells whose task was in memory when a thief read base and has not been taken since. */
bit there[THIEVES * N];
#define GONE(c)       \
    there[c] = 0;     \
    there[(THIEVES - 1) * N + (c)] = 0
#if B == 3
#define IN_BUFFER(c) \
    (bn > 0 && ba[0] == (c) || bn > 1 && ba[1] == (c) || bn > 2 && ba[2] == (c))
#endif
#define LOOK                                                       \
    d_step {                                                       \
        k = 0;                                                     \
        do                                                         \
        :: k < N ->                                                \
            there[me * N + k] = st[k] == QUEUED && own[k] != FREE && !IN_BUFFER(k); \
            k++                                                    \
        :: else -> break                                           \
        od;                                                        \
        k = 0                                                      \
    }
#define LOOK_AWAY                      \
    d_step {                           \
        k = 0;                         \
        do                             \
        :: k < N ->                    \
            there[me * N + k] = 0;   \
            k++                        \
        :: else -> break               \
        od;                            \
        k = 0                          \
    }
#define SAY_NONE                                \
    d_step {                                    \
        k = 0;                                  \
        do                                      \
        :: k < N ->                             \
            assert(!there[me * N + k]);       \
            k++                                 \
        :: else -> break                        \
        od;                                     \
        k = 0                                   \
    }
#else
#define GONE(c) skip
#define LOOK skip
#define LOOK_AWAY skip
#define SAY_NONE skip
#endif

byte k; /* scratch variable, always 0 between steps */

/* Starts a new epoch. */
#if THIEVES > 1
#define BUMP                               \
    d_step {                               \
        view[0] = (view[0] -> 2 : 0);      \
        view[1] = (view[1] -> 2 : 0)       \
    }
#else
#define BUMP view[0] = (view[0] -> 2 : 0)
#endif

inline drain_first()
{
    d_step {
        if
        :: ba[0] == N -> floor = bv[0]
        :: ba[0] == N + 1 -> limit = bv[0]
        :: else -> mem[ba[0]] = bv[0]
        fi;
        k = 1;
        do
        :: k < bn -> ba[k - 1] = ba[k]; bv[k - 1] = bv[k]; k++
        :: else -> break
        od;
        bn--;
        ba[bn] = 0;
        bv[bn] = 0;
        k = 0
    }
}

inline drain_owner()
{
    do
    :: bn > 0 -> drain_first()
    :: else -> break
    od
}

/* Used only in an atomic step whose guard is bn < B. */
#define PUT(a, v) \
    ba[bn] = a;   \
    bv[bn] = v;   \
    bn++
#define PUT_CELL(c, v) \
    own[c] = v;        \
    PUT(c, v)

/* The owner's view of floor: its youngest store, else memory. */
inline load_floor(to)
{
    d_step {
        to = floor;
        k = 0;
        do
        :: k < bn ->
            if
            :: ba[k] == N -> to = bv[k]
            :: else
            fi;
            k++
        :: else -> break
        od;
        k = 0
    }
}

/* ---- The parts that a mutation removes ---- */

#ifdef M_TOMB_FIRST /* a thief may drop it before the owner has decided */
#define UNDECIDED TOMB
#else
#define UNDECIDED CLAIM
#endif
#ifdef M_NO_OWNER_FENCE
#define OWNER_FENCE skip
#else
#define OWNER_FENCE bn == 0
#endif
#ifdef M_CLOSED_TAKES /* the owner finds CLOSED, does not change base and takes */
#define CLOSED_TAKES 1
#else
#define CLOSED_TAKES 0
#endif
#ifdef M_NO_BUMP_TAKE
#define BUMP_TAKE skip
#else
#define BUMP_TAKE BUMP
#endif
#ifdef M_NO_BUMP_CLOSE
#define BUMP_CLOSE skip
#else
#define BUMP_CLOSE BUMP
#endif
#ifdef M_CLOSE_KEEPS_FLOOR
#define CLOSE_FAILED skip
#else
#define CLOSE_FAILED PUT(N, MAX)
#endif
#if defined(M_NO_BUMP_SETTLE)
#define BUMP_LOWER if :: settling :: else -> BUMP fi
#elif defined(M_NO_BUMP_GIVE)
#define BUMP_LOWER if :: settling -> BUMP :: else fi
#elif defined(M_NO_BUMP_GIVE_CLOSED)
#define BUMP_LOWER if :: settling || !closed -> BUMP :: else fi
#else
#define BUMP_LOWER BUMP
#endif
#ifdef M_OPEN_KEEPS_FLOOR
#define OPEN_FLOOR skip
#else
#define OPEN_FLOOR bn < B; PUT(N, MAX)
#endif
#ifdef M_DECIDE_KEEPS_FLOOR
#define DECIDE_FLOOR skip
#else
#define DECIDE_FLOOR bn < B; PUT(N, MAX)
#endif
#ifdef M_THIEF_AT_LIMIT
#define AT_LIMIT i > limit
#else
#define AT_LIMIT i >= limit
#endif
#ifdef M_SETTLE_NO_CAS
#define SETTLE_CAS goto rest
#else
#define SETTLE_CAS skip
#endif
#ifdef M_SETTLE_CAS_FIRST
#define SETTLE_LATE 1
#define FREE_ONE skip
#else
#define SETTLE_LATE 0
#define FREE_ONE PUT_CELL(lo, FREE)
#endif
#ifdef M_NO_HEAVY_FENCE
#define HEAVY_FENCE skip
#define HEAVY_FENCE_OTHER skip
#else
#define HEAVY_FENCE REACH(me); drain_owner()
#if THIEVES > 1
#define HEAVY_FENCE_OTHER REACH(1 - me)
#else
#define HEAVY_FENCE_OTHER skip
#endif
#endif
#ifdef M_MAX_AFTER_FENCE
#define ASK skip
#define ASK_LATE asked[me] = 1
#else
#define ASK asked[me] = 1
#define ASK_LATE skip
#endif
#ifdef M_NO_REREAD
#define KEEP_FIRST_READ skip
#define SECOND_READ skip
#else
#define KEEP_FIRST_READ v = 0
#define SECOND_READ v = mem[i]
#endif

/* REACH: a thief's only store, floor = MAX, reaches memory. FULL_FENCE: a thief waits until it
 * has. */
#define REACH(t)                               \
    if                                         \
    :: asked[t] -> floor = MAX; asked[t] = 0 \
    :: else                                    \
    fi
#define FULL_FENCE !asked[me]
#define LEAVE     \
    LOOK_AWAY;    \
    view[me] = 0; \
    i = 0;        \
    v = 0;        \
    cl = 0;       \
    op = 0

#define TOPMOST(c) (own[(c) + 1] == FREE || own[(c) + 1] == END)
#define BELOW(c) own[(c > 0 -> (c) - 1 : 0)] /* only if c > 0 */

/* What the owner may do with cell c between two operations. */
#define CAN_PUSH(c) (own[c] == FREE && (c == 0 || BELOW(c) != FREE))
#define CAN_TAKE(c) (own[c] >= T0 && (WITH_TOMBS || TOPMOST(c)))
#define CAN_GIVE(c) (st[c] == STOLEN && (WITH_TOMBS || TOPMOST(c)))
#define CAN_SETTLE(c) (own[c] == TOMB && TOPMOST(c))

/* Checks the invariants between two operations of the owner. */
inline check()
{
    load_floor(f);
    d_step {
#ifndef TASKS_ONLY
        assert(closed || f == MAX);
        assert(!closed || f == MAX || f == limit && idx <= limit);
#endif
        k = 0;
        do
        :: k < N ->
#ifndef TASKS_ONLY
            assert(k >= idx || own[k] != FREE); /* invariant I1 */
            assert(own[k] != FREE || own[k + 1] == FREE || own[k + 1] == END);
            assert(own[k] != TOMB || !closed);
            assert(st[k] == NOTHING || own[k] == T0 + gen[k]);
            assert(st[k] != NOTHING || own[k] == FREE || own[k] == TOMB);
            assert(st[k] != STOLEN || k < idx);
#endif
            assert(st[k] != QUEUED || k >= idx); /* else no thief would ever reach it */
            k++
        :: else -> break
        od;
        k = 0;
        f = 0
    }
}

/* The owner has won cell c. */
inline claim()
{
    d_step {
        assert(st[c] == QUEUED);
        st[c] = NOTHING;
        GONE(c);
        tombstones = 0;
        k = 0;
        do
        :: k < N -> tombstones = tombstones || own[k] == TOMB; k++
        :: else -> break
        od;
        k = 0
    }
}

#define TAKE 1
#define GIVE 2
#define SETTLE 3

proctype Owner()
{
    byte what, c, lo, f, bi;
    bit bc, top, tombstones, settling;

rest:
    atomic {
        bn < B;
        what = 0; c = 0; lo = 0; bi = 0; bc = 0; top = 0; tombstones = 0; settling = 0;
        check();
        if
        :: CAN_PUSH(0)
        :: CAN_TAKE(0) -> what = TAKE
        :: CAN_GIVE(0) -> what = GIVE
        :: CAN_SETTLE(0) -> what = SETTLE
        :: CAN_PUSH(1) -> c = 1
        :: CAN_TAKE(1) -> c = 1; what = TAKE
        :: CAN_GIVE(1) -> c = 1; what = GIVE
        :: CAN_SETTLE(1) -> c = 1; what = SETTLE
#if N > 2
        :: CAN_PUSH(2) -> c = 2
        :: CAN_TAKE(2) -> c = 2; what = TAKE
        :: CAN_GIVE(2) -> c = 2; what = GIVE
        :: CAN_SETTLE(2) -> c = 2; what = SETTLE
#endif
#if N > 3
        :: CAN_PUSH(3) -> c = 3
        :: CAN_TAKE(3) -> c = 3; what = TAKE
        :: CAN_GIVE(3) -> c = 3; what = GIVE
        :: CAN_SETTLE(3) -> c = 3; what = SETTLE
#endif
        fi;
        top = TOPMOST(c);
        if
        :: what == TAKE ->
            what = 0;
            if
            :: top -> PUT_CELL(c, FREE); GONE(c)
            :: else -> PUT_CELL(c, UNDECIDED)
            fi
        :: what == GIVE -> goto give_back
        :: what == SETTLE -> goto settle
        :: else -> /* push */
#ifndef TASKS_ONLY
            assert(idx <= c); /* invariant I4 */
#endif
            gen[c] = 1 - gen[c];
            st[c] = QUEUED;
            PUT_CELL(c, T0 + gen[c]);
            goto rest
        fi
    }
    atomic { /* a light fence does nothing on this machine */
        load_floor(f);
        if
        :: c >= f ->
            f = 0;
            claim();
            if
            :: top -> goto rest
            :: else -> goto entomb
            fi
        :: else -> f = 0
        fi
    }
decide:
    atomic {
        OWNER_FENCE;
        bi = idx;
        bc = closed;
        if
        :: bi > c ->
            assert(st[c] == STOLEN); /* else the owner would wait forever */
            bn < B;
            PUT_CELL(c, T0 + gen[c]); /* restores the cell */
            goto rest
        :: bi <= c && bc && !CLOSED_TAKES -> DECIDE_FLOOR
        :: bi == c && !bc
        :: bi < c && !bc || bi <= c && bc && CLOSED_TAKES -> claim(); goto ours
        fi
    }
    atomic { /* CAS: opens, or takes with a new epoch */
        bn == 0;
        if
        :: idx != bi || closed != bc -> goto decide
        :: else
        fi;
        if
        :: bc -> closed = 0; goto decide
        :: else -> BUMP_TAKE; claim(); goto ours
        fi
    }

ours:
    atomic {
        if
        :: !top -> goto entomb
        :: top -> goto rest
        :: WITH_CLOSE && top && !tombstones && !bc -> goto close
        fi
    }

close: /* bi: the index of base when c was decided */
#ifdef M_CLOSE_CAS_FIRST
    atomic {
        bn == 0;
        if
        :: idx == bi && !closed -> closed = 1; BUMP
        :: else -> goto rest
        fi
    }
    atomic { bn < B; PUT(N, bi); goto rest }
#else
    atomic { /* any limit from index to c: the model does not count tasks or takes */
        bn + 1 < B;
        lo = bi;
        do
        :: lo < c -> lo++
        :: break
        od;
        PUT(N, lo);
        PUT(N + 1, lo);
        lo = 0
    }
    atomic {
        bn == 0;
        if
        :: idx == bi && !closed -> closed = 1; BUMP_CLOSE
        :: else -> CLOSE_FAILED
        fi;
        goto rest
    }
#endif

give_back: /* the task is done or detached; its thief no longer uses the cell */
    atomic {
        bn < B;
        what = 0;
        st[c] = NOTHING;
        if
        :: top -> PUT_CELL(c, FREE); lo = c; goto lower
        :: else -> goto entomb
        fi
    }

settle: /* c and any number of TOMBs below it */
    atomic {
        bn < B;
        what = 0;
        settling = 1;
        lo = c;
        FREE_ONE;
        do
        :: lo > 0 && BELOW(lo) == TOMB -> bn < B; lo--; FREE_ONE
        :: break
        od;
        SETTLE_CAS
    }
lower: /* lowers index to at most lo */
    atomic {
        bi = idx;
        bc = closed;
        if
        :: bc -> bn + 1 < B; PUT(N, (bi < lo -> bi : lo)); PUT(N + 1, (bi < lo -> bi : lo))
        :: else
        fi
    }
    atomic {
        bn == 0;
        if
        :: idx == bi && closed == bc -> idx = (bi < lo -> bi : lo); BUMP_LOWER
        :: else ->
#ifndef TASKS_ONLY
            assert(!bc); /* CLOSED and empty: no thief can have changed base */
#endif
            if
            :: bc -> bn < B; PUT(N, MAX)
            :: else
            fi;
            goto lower
        fi;
        if
        :: !(SETTLE_LATE && settling) -> goto rest
        :: else
        fi
    }
    atomic { /* only if SETTLE_LATE */
        do
        :: c >= lo && own[c] == TOMB ->
            bn < B;
            PUT_CELL(c, FREE);
            if
            :: c > lo -> c--
            :: else -> break
            fi
        :: else -> break
        od;
        goto rest
    }

entomb: /* opens first, because a queue with a TOMB is OPEN */
    atomic {
        bi = idx;
        bc = closed;
        if
        :: bc -> OPEN_FLOOR
        :: else -> goto bury
        fi
    }
    atomic {
        bn == 0;
        if
        :: idx == bi && closed -> closed = 0
        :: idx != bi && closed -> goto entomb /* a thief has taken a task below limit */
        :: else /* a thief has opened it */
        fi
    }
bury:
    atomic { bn < B; PUT_CELL(c, TOMB); goto rest }
}

proctype Thief(bit me)
{
    byte i, v;
    bit cl, op; /* op: the thief has to open the queue */

again:
    atomic {
        i = idx;
        cl = closed;
        view[me] = 1;
        LOOK
    }
    atomic {
        v = mem[i];
        if
        :: v == FREE || v == END -> SAY_NONE; LEAVE; goto again
        :: else
        fi
    }
    atomic {
        op = cl && AT_LIMIT;
        if
        :: v == CLAIM && !op -> LEAVE; goto again
        :: else
        fi;
        if
        :: !op -> FULL_FENCE; goto cas
        :: else
        fi;
        KEEP_FIRST_READ;
        ASK /* CLOSED, and there is a task: floor = MAX */
    }
    /* The owner may open the queue first; otherwise the heavy fence follows. */
    atomic {
#ifdef M_VIEW_AFTER_ASKING
        if
        :: closed -> i = idx; view[me] = 1
        :: else -> LEAVE; goto again
        fi;
#else
        if
        :: true
        :: idx != i || closed != cl || view[me] == 2 -> LEAVE; goto again
        fi;
#endif
        HEAVY_FENCE;
        ASK_LATE
    }
    atomic {
        HEAVY_FENCE_OTHER;
        SECOND_READ;
        if
        :: v == FREE || v == END || v == CLAIM -> LEAVE; goto again
        :: else
        fi
    }
cas:
    atomic {
        FULL_FENCE;
        if
        :: idx == i && closed == cl && view[me] == 1 ->
            idx = i + 1;
            closed = (op -> 0 : cl);
            if
            :: v == TOMB -> assert(st[i] == NOTHING) /* the thief drops it */
            :: else -> assert(st[i] == QUEUED && v == T0 + gen[i]); st[i] = STOLEN; GONE(i)
            fi
        :: else
        fi;
        LEAVE;
        goto again
    }
}

/* The store buffers. */
proctype Memory()
{
    do
    :: atomic { bn > 0 -> drain_first() }
    :: atomic { asked[0] -> floor = MAX; asked[0] = 0 }
#if THIEVES > 1
    :: atomic { asked[1] -> floor = MAX; asked[1] = 0 }
#endif
    od
}

init
{
    atomic {
        mem[N] = END;
        own[N] = END;
        closed = WITH_CLOSE;
        floor = (WITH_CLOSE -> 0 : MAX);
        run Owner();
        run Memory();
        run Thief(0);
#if THIEVES > 1
        run Thief(1)
#endif
    }
}
