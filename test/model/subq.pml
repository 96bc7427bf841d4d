/* SPDX-License-Identifier: MIT */
/*
 * subq.pml - the submission queue of src/queue/submission_queue.h, and the LOCKED state
 *
 * Modelled: one process that holds the lock, and THIEVES thieves. The holder pushes, takes a task
 * back from anywhere in the queue, and at the end of the array moves the remaining tasks to the
 * front under LOCKED. Which thread holds the lock makes no difference: acquiring the lock empties
 * the store buffer of the thread, and succeeds only after the stores of the previous holder are in
 * memory. The machine is TSO: stores to slots, and the store to base that ends LOCKED, wait in the
 * holder's buffer and reach memory in order at any later moment. ACTIONS of the tasks are actions:
 * no thread takes one back, and a thief that finds two in a row takes both with one CAS.
 *
 * Bounds: N slots, K tasks that are pushed again and again, B stores in the buffer. The processes
 * never end and every reachable state is visited. The model stores no epoch, only whether a thief
 * has read the current one; this is exact, because an epoch only grows.
 *
 * Checked: a task is taken once, by one thread, from its slot; a dropped TOMB was not the slot of a
 * queued task; a removal that reports its task as stolen is right; a thief reports NONE only if no
 * task was there during its whole attempt; there is no deadlock.
 *
 * Left out: growth; the lock itself; machines weaker than TSO; wrap of the epoch. The worker's
 * queue compacts by the same steps; it is OPEN meanwhile and has no TOMBs above.
 */

#ifndef N
#define N 3
#endif
#ifndef K
#define K 2
#endif
#ifndef B
#define B 3
#endif
#ifndef ACTIONS
#define ACTIONS 0
#endif
#ifndef THIEVES
#define THIEVES 2
#endif

/* Values of a slot; TASK + t is task t. */
#define FREE 0
#define TOMB 1
#define CLAIM 2
#define END 3
#define TASK 4

#define BASE N /* the address of base in the buffer */

byte mem[N + 1]; /* slots in memory */
byte own[N + 1]; /* slots as the holder sees them */
byte top;
byte ba[B];      /* the holder's store buffer */
byte bv[B];
byte bn;
byte idx;        /* base */
bit locked;
byte view[THIEVES]; /* the epoch that a thief has read: 0 none, 1 the current one, 2 an older one */

bit queued[K];
byte pos[K];     /* its slot, if queued */
bit seen[K];     /* its push has ended */
bit there[THIEVES * K]; /* it has been there since the thief read base */

byte k; /* scratch variables, 0 between steps */
byte t;

/* ---- The parts that a mutation removes ---- */

#ifdef M_TOMB_FIRST
#define UNDECIDED TOMB
#else
#define UNDECIDED CLAIM
#endif
#ifdef M_NO_FENCE
#define FENCE skip
#else
#define FENCE bn == 0
#endif
#ifdef M_NO_BUMP_TAKE
#define BUMP_TAKE skip
#else
#define BUMP_TAKE BUMP
#endif
#ifdef M_NO_BUMP_LOCK
#define BUMP_LOCK skip
#else
#define BUMP_LOCK BUMP
#endif
#ifdef M_NO_LOCK /* moves tasks while thieves may take */
#define LOCK skip
#else
#define LOCK locked = 1
#endif
#ifdef M_NONE_ANYWAY
#define SAME_BASE true
#else
#define SAME_BASE (idx == i && !locked && view[me] == 1)
#endif
#ifdef M_LOCKED_IS_NONE
#define LOCKED_ANSWER SAY_NONE
#else
#define LOCKED_ANSWER skip
#endif

#ifdef M_BATCH_ANY /* two tasks that can be taken back may also be taken together */
#define IN_BATCH(v) ((v) >= TASK)
#else
#define IN_BATCH(v) ((v) >= TASK && (v) < TASK + ACTIONS)
#endif

#if THIEVES > 1
#define BUMP                          \
    d_step {                          \
        view[0] = (view[0] -> 2 : 0); \
        view[1] = (view[1] -> 2 : 0)  \
    }
#else
#define BUMP view[0] = (view[0] -> 2 : 0)
#endif

inline drain_first()
{
    d_step {
        if
        :: ba[0] == BASE -> idx = bv[0]; locked = 0
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

#define PUT(a, v) \
    ba[bn] = a;   \
    bv[bn] = v;   \
    bn++
#define PUT_SLOT(p, v) \
    own[p] = v;        \
    PUT(p, v)

#define GONE(t)    \
    seen[t] = 0;  \
    there[t] = 0; \
    there[(THIEVES - 1) * K + (t)] = 0

#define LOOK                                           \
    d_step {                                           \
        k = 0;                                         \
        do                                             \
        :: k < K -> there[me * K + k] = seen[k]; k++ \
        :: else -> break                               \
        od;                                            \
        k = 0                                          \
    }
#define SAY_NONE                                       \
    d_step {                                           \
        k = 0;                                         \
        do                                             \
        :: k < K -> assert(!there[me * K + k]); k++  \
        :: else -> break                               \
        od;                                            \
        k = 0                                          \
    }
#define LEAVE                                   \
    d_step {                                    \
        k = 0;                                  \
        do                                      \
        :: k < K -> there[me * K + k] = 0; k++ \
        :: else -> break                        \
        od;                                     \
        k = 0;                                  \
        view[me] = 0;                           \
        i = 0;                                  \
        v = 0;                                  \
        w = 0                                   \
    }

inline check()
{
    d_step {
        k = 0;
        do
        :: k < K ->
            assert(!queued[k] || pos[k] >= idx && pos[k] < top && own[pos[k]] == TASK + k);
            k++
        :: else -> break
        od;
#ifndef TASKS_ONLY
        assert(idx <= top);
        k = 0;
        do
        :: k < N -> assert((own[k] == FREE) == (k >= top)); k++
        :: else -> break
        od;
#endif
        k = 0
    }
}

#define CAN_PUSH(x) (!queued[x] && (top < N || idx > 0))

proctype Holder()
{
    byte c, to, p, bi, b2;
    bit newest;

unlocked:
    atomic {
        bn == 0;
        c = 0; to = 0; p = 0; bi = 0; b2 = 0; newest = 0;
        d_step {
            k = 0;
            do
            :: k < K -> seen[k] = queued[k]; k++
            :: else -> break
            od;
            k = 0
        }
        check();
        if
        :: CAN_PUSH(0)
        :: queued[0] && ACTIONS < 1 -> goto remove
#if K > 1
        :: CAN_PUSH(1) -> c = 1
        :: queued[1] && ACTIONS < 2 -> c = 1; goto remove
#endif
#if K > 2
        :: CAN_PUSH(2) -> c = 2
        :: queued[2] && ACTIONS < 3 -> c = 2; goto remove
#endif
        fi;
        if
        :: top == N -> goto compact
        :: else
        fi
    }
push:
    atomic {
        bn < B;
#ifndef TASKS_ONLY
        assert(own[top] == FREE && (locked || idx <= top));
#endif
        queued[c] = 1;
        pos[c] = top;
        PUT_SLOT(top, TASK + c);
        top++;
        goto unlocked
    }

compact:
    atomic { bi = idx }
    atomic { /* CAS */
        bn == 0;
        if
        :: idx == bi -> LOCK; BUMP_LOCK
        :: else -> goto compact
        fi;
        p = bi
    }
#ifdef M_UNLOCK_FIRST
    atomic { bn < B; PUT(BASE, 0) }
#endif
    do
    :: atomic {
        p < top ->
        if
        :: own[p] == TOMB
        :: else ->
            bn < B;
            k = 0; /* records the new slot of the task */
            do
            :: k < K && own[p] == TASK + k && queued[k] -> pos[k] = to; break
            :: k < K && !(own[p] == TASK + k && queued[k]) -> k++
            :: k == K -> break
            od;
            k = 0;
            PUT_SLOT(to, own[p]);
            to++
        fi;
        p++
    }
    :: atomic { p == top -> break }
    od;
    atomic { p = to }
    do
    :: atomic { p < top -> bn < B; PUT_SLOT(p, FREE); p++ }
    :: atomic { p == top -> break }
    od;
    atomic {
        top = to;
#ifndef M_UNLOCK_FIRST
        bn < B;
        PUT(BASE, 0)
#endif
    }
    atomic {
        if
        :: top == N -> goto unlocked
        :: else -> goto push
        fi
    }

remove:
    atomic { /* the task may have been stolen since */
        if
        :: !queued[c] -> goto unlocked
        :: else
        fi;
        p = pos[c];
        newest = p + 1 == top;
        bn < B;
        if
        :: newest -> PUT_SLOT(p, FREE); GONE(c)
        :: else -> PUT_SLOT(p, UNDECIDED)
        fi
    }
decide:
    atomic {
        FENCE;
        bi = idx;
        if
        :: bi > p ->
            assert(!queued[c]); /* else no thread would run it */
            bn < B;
            PUT_SLOT(p, TOMB);
            goto unlocked
        :: bi < p -> goto ours
        :: else
        fi
    }
    atomic { /* CAS */
        bn == 0;
        if
        :: idx == bi -> BUMP_TAKE
        :: else -> goto decide
        fi
    }
ours:
    atomic {
        bn < B;
        assert(queued[c]);
        queued[c] = 0;
        GONE(c);
        if
        :: newest -> top = p
        :: else -> PUT_SLOT(p, TOMB)
        fi;
        goto unlocked
    }
}

#define TAKEN(v, p)                      \
    t = v - TASK;                        \
    assert(queued[t] && pos[t] == p); \
    queued[t] = 0;                       \
    GONE(t);                             \
    t = 0

proctype Thief(bit me)
{
    byte i, v, w;

again:
    atomic {
        i = idx;
        view[me] = 1;
        LOOK;
        if
        :: locked -> LOCKED_ANSWER; LEAVE; goto again
        :: else
        fi
    }
    atomic {
        v = mem[i];
        if
        :: v == FREE || v == END
        :: v == CLAIM -> LEAVE; goto again
        :: IN_BATCH(v) -> goto ahead
        :: else -> goto cas
        fi
    }
    atomic {
        if
        :: SAME_BASE -> SAY_NONE
        :: else
        fi;
        LEAVE;
        goto again
    }
ahead:
    atomic {
        w = mem[i + 1];
        if
        :: !IN_BATCH(w) -> w = 0
        :: else
        fi
    }
cas:
    atomic {
        if
        :: idx == i && !locked && view[me] == 1 ->
            idx = i + (w -> 2 : 1);
            if
            :: v == TOMB ->
                k = 0;
                do
                :: k < K -> assert(!(queued[k] && pos[k] == i)); k++
                :: else -> break
                od;
                k = 0
            :: else ->
                TAKEN(v, i);
                if
                :: w -> TAKEN(w, i + 1)
                :: else
                fi
            fi
        :: else
        fi;
        LEAVE;
        goto again
    }
}

proctype Memory()
{
    do
    :: atomic { bn > 0 -> drain_first() }
    od
}

init
{
    atomic {
        mem[N] = END;
        own[N] = END;
        run Holder();
        run Memory();
        run Thief(0);
#if THIEVES > 1
        run Thief(1)
#endif
    }
}
