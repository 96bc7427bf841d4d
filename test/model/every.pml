/* SPDX-License-Identifier: MIT */
/*
 * every.pml - broadcasts (src/sched/safepoint.c)
 *
 * Modelled: WORKERS worker threads of one pool, each with its record, and an asker outside the pool.
 * A worker starts, runs tasks, becomes idle, sleeps in a join, asks for a broadcast, ends, and starts
 * again. The asker sets ARRIVE, calls the records one by one, wakes the called workers that are idle
 * or sleep, and takes part or waits. The sleep of a joiner is as in the sources: the joiner publishes
 * that it sleeps, looks whether it is called, and then begins to sleep; a wake-up between the last
 * two steps is lost. The asker may wake again only if a called worker is idle or has published its
 * sleep; so a broadcast that waits for a thread which does not come is a deadlock of the model.
 *
 * Bounds: each worker asks at most ASKS times and starts at most STARTS times; the asker outside asks
 * once. Numbers of broadcasts are modulo 4.
 *
 * Checked: no task runs in the phase RUN; no thread calls fn twice in a broadcast, or without having
 * arrived; there is no deadlock, and so every broadcast ends.
 *
 * Left out: several records of one thread; the hidden queues; memory orders, because the lock and the
 * phase word carry everything.
 */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef ASKS
#define ASKS 1
#endif
#ifndef STARTS
#define STARTS 2
#endif

#define ARRIVE 1
#define RUN 2

/* call of a record */
#define NONE 0
#define GONE 1
#define CALLED 2

byte phase;  /* 0: no broadcast */
byte number; /* of the broadcast; with `phase` it is one word in the sources */
bit elock;   /* every.lock */
bit plock;   /* the lock of the pool */
byte due, left;

byte call[WORKERS] = GONE;
bit idle[WORKERS];      /* on the idle stack */
bit published[WORKERS]; /* sleeps_on */
bit asleep[WORKERS];
bit visited[WORKERS]; /* has called fn in this broadcast */
byte tasks;           /* tasks that run */

inline lock(l) { atomic { l == 0 -> l = 1 } }

inline advance()
{
    if
    :: phase == ARRIVE && due == 0 -> phase = RUN
    :: else
    fi;
    if
#ifdef M_FIRST_ENDS
    :: phase == RUN && left <= 1 -> phase = 0
#else
    :: phase == RUN && left == 0 -> phase = 0
#endif
    :: else
    fi
}

inline leave(id)
{
    atomic {
        was = call[id];
        call[id] = GONE
    }
    if
#ifndef M_LEAVES_SILENTLY
    :: was == CALLED ->
        lock(elock);
        atomic {
            due--;
            advance();
            elock = 0
        }
#endif
    :: else
    fi
}

/* A round of wake-ups. */
inline wake_round()
{
    atomic {
        i = 0;
        do
        :: i < WORKERS ->
            if
#ifndef M_IDLE_SLEEP_ON
            :: idle[i] -> idle[i] = 0
#endif
#ifndef M_JOINERS_SLEEP_ON
            :: call[i] == CALLED && published[i] -> asleep[i] = 0
#endif
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0
    }
}

#ifdef M_IDLE_SLEEP_ON
#define WAKEABLE(w) (call[w] == CALLED && published[w])
#else
#ifdef M_JOINERS_SLEEP_ON
#define WAKEABLE(w) (call[w] == CALLED && idle[w])
#else
#define WAKEABLE(w) (call[w] == CALLED && (idle[w] || published[w]))
#endif
#endif
#if WORKERS == 2
#define ANY_WAKEABLE (WAKEABLE(0) || WAKEABLE(1))
#else
#define ANY_WAKEABLE (WAKEABLE(0) || WAKEABLE(1) || WAKEABLE(2))
#endif

inline await_run(asks)
{
    if
    :: asks ->
        wake_round();
        do
        :: phase != ARRIVE || number != my -> break
#ifndef M_WAKES_ONCE
        :: phase == ARRIVE && number == my && ANY_WAKEABLE -> wake_round()
#endif
        od
    :: else -> (phase != ARRIVE || number != my)
    fi
}

inline attend(id, asks)
{
    my = number;
    call[id] = NONE;
    lock(elock);
    atomic {
        due--;
        left++;
        advance();
        elock = 0
    }
    await_run(asks);
    atomic {
        assert(phase == RUN && number == my);
        assert(!visited[id]);
        visited[id] = 1;
        assert(tasks == 0)
    }
    lock(elock);
    atomic {
        left--;
        advance();
        elock = 0
    }
    (phase != RUN || number != my)
}

/* With elock: begins a broadcast. */
inline begin()
{
    number = (number + 1) % 4;
    left = 0;
    due = 1; /* not 0 while the records are called; arrivals wait for the lock */
#ifndef M_ARRIVE_LATE
    phase = ARRIVE;
#endif
    atomic {
        i = 0;
        do
        :: i < WORKERS -> visited[i] = 0; i++
        :: else -> break
        od;
        i = 0
    }
    lock(plock);
    do
    :: i < WORKERS ->
        atomic {
            if
            :: call[i] == NONE -> call[i] = CALLED; due++
            :: else
            fi;
            i++
        }
    :: else -> break
    od;
    plock = 0;
#ifdef M_ARRIVE_LATE
    phase = ARRIVE;
#endif
    atomic {
        i = 0;
        due--;
        advance()
    }
}

proctype worker(byte id)
{
    byte my, was, i, starts, asked, seen;

start:
    if
    :: starts == STARTS -> goto over
    :: starts < STARTS -> starts++
    fi;
    atomic { plock == 0 -> call[id] = NONE }
#ifndef M_ENTERS_AT_ONCE
    atomic {
        seen = number;
        if
        :: phase == 0 || call[id] == CALLED
        :: else -> (phase == 0 || number != seen || call[id] == CALLED)
        fi
    }
#endif
top:
    if
    :: call[id] == CALLED -> attend(id, 0)
    :: else
    fi;
    if
    :: true -> /* a task */
        atomic {
            assert(phase != RUN);
            tasks++
        }
        atomic {
            assert(phase != RUN);
            tasks--
        }
        if
        :: asked < ASKS -> goto ask
        :: true
        fi;
        goto join
    :: true -> goto becomes_idle
    :: true -> goto ends
    fi;

ask:
    asked++;
    do
    :: lock(elock);
        if
        :: phase == 0 -> break
        :: else ->
            seen = number;
            elock = 0;
#ifdef M_ASKER_WAITS_ONLY
            (phase == 0 || number != seen)
#else
            if
            :: call[id] == CALLED -> attend(id, 0)
            :: else -> (phase == 0 || number != seen || call[id] == CALLED)
            fi
#endif
        fi
    od;
    begin();
    my = number;
    elock = 0;
    if
    :: call[id] == CALLED -> attend(id, 1)
    :: else
    fi;
    goto top;

join: /* waits for a task that is done at any time, or never */
    published[id] = 1;
    if
    :: call[id] == CALLED
    :: else ->
        asleep[id] = 1;
        if
        :: asleep[id] = 0 /* the task is done */
        :: skip;
end_joining:
            !asleep[id]
        fi
    fi;
    published[id] = 0;
    goto top;

becomes_idle:
    idle[id] = 1;
    if
    :: atomic { idle[id] -> idle[id] = 0 } goto ends /* it retires */
    :: skip;
end_idle:
        !idle[id];
        goto top
    fi;

ends:
    leave(id);
    goto start;
over:
    skip
}

proctype outside()
{
    byte my, i, seen;

    do
    :: lock(elock);
        if
        :: phase == 0 -> break
        :: else ->
            seen = number;
            elock = 0;
            (phase == 0 || number != seen)
        fi
    od;
    begin();
    my = number;
    elock = 0;
    await_run(1);
    (phase != RUN || number != my)
}

init
{
    byte w;

    atomic {
        do
        :: w < WORKERS -> run worker(w); w++
        :: else -> break
        od;
        run outside()
    }
}
