/* SPDX-License-Identifier: MIT */
/*
 * config.h - build options and tunables
 *
 * A tunable is a number that could have another value without making the library incorrect. This
 * file gives its unit and the reason for its value. A build can set a number that stands between
 * #ifndef and #endif. Test builds make some of these numbers small, so that rare paths are taken
 * often.
 */
#ifndef FJI_CONFIG_H
#define FJI_CONFIG_H

/* ---- Build options --------------------------------------------------------------------------- */

/* Each build option is 0 or 1. CMake sets it from the FORKJOIN_ option that stands in
 * parentheses. */

/* 1: the library checks its own invariants while it runs; see check.h. (FORKJOIN_CHECKED) */
#ifndef FJI_CHECKED
#define FJI_CHECKED 0
#endif

/* 1: no pool uses the heavy fence, even if the system has membarrier. Full fences replace the light
 * fences. (FORKJOIN_SYMMETRIC) */
#ifndef FJI_SYMMETRIC
#define FJI_SYMMETRIC 0
#endif

/* 1: tests can make functions of the platform layer fail; see plat.h. (FORKJOIN_FAULTS) */
#ifndef FJI_FAULTS
#define FJI_FAULTS 0
#endif

/* 1: random delays around accesses to shared memory; see chaos.h. (FORKJOIN_CHAOS) */
#ifndef FJI_CHAOS
#define FJI_CHAOS 0
#endif

/* 1: the counters listed below start just before they wrap, so that tests reach the wrap; see
 * docs/design/counters.md. (FORKJOIN_AGED) */
#ifndef FJI_WRAP_TEST
#define FJI_WRAP_TEST 0
#endif

/* 1: the library runs on the simulator; see sim/sim.h. test/sim/simbuild.py sets this option, not
 * CMake. */
#ifndef FJI_SIM
#define FJI_SIM 0
#endif

/* ---- Start values of counters ---------------------------------------------------------------- */

/*
 * The first value of each counter, FJI_START_ followed by:
 *
 * EPOCH      the epoch of a queue, 34 bits
 * VERSION    the version of the control word, 17 bits
 * SLOT(n)    the position of the first push into a submission queue that starts with n slots
 * 32         32-bit counters that are only compared for equality
 * 64         64-bit counters that are only compared for equality, and statistics
 * FAILURES   the numbers of failures in future.c, 31 bits
 * FORKS      the fork generation, 32 bits, of which a task stores the low 10
 * CLOCK      the clock of the timers, ns; only defined if FJI_WRAP_TEST is 1. After 30 ms the
 *            clock reaches 2^56 ns, which is 64^6 ticks of the timing wheel. There the six lowest
 *            of its 8 wheels start again at slot 0 (queue/wheel.h).
 */
#if FJI_WRAP_TEST
#define FJI_START_EPOCH 0x3fffffffdull
#define FJI_START_VERSION 0x1fffdull
#define FJI_START_SLOT(n) ((n)-2)
#define FJI_START_32 0xfffffffdu
#define FJI_START_64 0xfffffffffffffffdull
#define FJI_START_FAILURES 0x7ffffffdu
#define FJI_START_FORKS 0xfffffffeu
#define FJI_START_CLOCK ((1ll << 56) - 30000000)
#else
#define FJI_START_EPOCH 0ull
#define FJI_START_VERSION 0ull
#define FJI_START_SLOT(n) 0u
#define FJI_START_32 0u
#define FJI_START_64 0ull
#define FJI_START_FAILURES 0u
#define FJI_START_FORKS 0u
#endif

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Size of a cache line, bytes. */
#define FJI_LINE 64

/* Distance between words that different threads write, bytes: two cache lines, because x86
 * processors prefetch cache lines in pairs. */
#define FJI_CACHE_PAIR 128

/* Bytes in front of a future that the library allocates, with its memory record and its size
 * (memory.h). A multiple of 16, so that the future is aligned for any type. */
#define FJI_BLOCK_FRONT 32

/* Cells that a worker's queue starts with. The queue doubles when it is full, until all reserved
 * cells have memory. The number of cells in use by fork and join depends on the depth of the
 * recursion, not on the number of tasks, so 64 cells are enough for nearly all programs. */
#ifndef FJI_QUEUE_FIRST
#define FJI_QUEUE_FIRST 64
#endif

/* Cells for which a worker's queue reserves addresses: 64 MiB. If the system refuses to reserve
 * them, the queue reserves fewer. Only the cells that are used get memory. If all cells are in use,
 * a task that is forked by fj_fork() goes to a submission queue, and a typed task is run at its
 * fork. */
#ifndef FJI_QUEUE_RESERVED
#define FJI_QUEUE_RESERVED (1u << 20)
#endif

/* Slots that a submission queue starts with. The queue doubles when it is full, until all reserved
 * slots have memory. */
#ifndef FJI_SUBMISSIONS_FIRST
#define FJI_SUBMISSIONS_FIRST 64
#endif

/* Slots for which a submission queue reserves addresses: 268 million slots of 32 bytes are 8 GiB.
 * If the system refuses to reserve them, the queue reserves fewer. Only the slots that are used get
 * memory. */
#ifndef FJI_SUBMISSIONS_RESERVED
#define FJI_SUBMISSIONS_RESERVED (1u << 28)
#endif

/* If the address space of the process is limited (RLIMIT_AS), one reserved range may take at most
 * 1/64 of the limit, because the program needs the rest. */
#define FJI_RESERVE_PART 64

/* Largest number of ranges of addresses that the process keeps for the next pool, after their pool
 * has ended, and largest number of pages with memory in a kept range. To map, touch and unmap the
 * ranges of a pool with one worker takes 50 us, longer than all else in the life of a pool for one
 * task. A pool of two workers has at most four ranges, so the numbers serve two such pools. With
 * pages of 4 KiB the process keeps at most 64 KiB of memory. If its address space is limited, it
 * keeps at most 8/64 of the limit (FJI_RESERVE_PART). */
#define FJI_RANGES_KEPT 8
#define FJI_KEPT_PAGES 2

/* Cells whose memory a worker's queue keeps when it is empty and its worker goes idle, or its guest
 * leaves: 1 MiB. The memory of its other cells is returned to the system. */
#ifndef FJI_QUEUE_KEPT
#define FJI_QUEUE_KEPT 16384u
#endif

/* Slots whose memory a submission queue keeps when it is empty and a worker of the pool goes idle:
 * 4 MiB. The memory of its other slots is returned to the system. */
#ifndef FJI_SUBMISSIONS_KEPT
#define FJI_SUBMISSIONS_KEPT 131072u
#endif

/* Scopes for which a worker reserves addresses: 16 MiB. A worker uses one scope for each nested
 * body of a future, and for each nested stolen task whose token differs from the token that the
 * worker runs with. Only the scopes that are used get memory. */
#define FJI_SCOPES_RESERVED (1u << 20)

/* Number of overflow cells (pairs of cells, see overflow.c) in the reserve of the process. The
 * reserve is used if no memory can be allocated for the overflow cell of a typed task that was run
 * at its fork. It takes no memory before it is used. */
#define FJI_OVERFLOW_RESERVE 512

/* Least default size of the stack of a thread that the library creates, bytes: 1 MiB. It is used if
 * the default size of the system is smaller and the options of the pool set no size. */
#define FJI_STACK_MIN (1u << 20)

/* Number of worker records to which one element of the array `chunk` of a pool points. The memory
 * of an element is allocated when the first of these records is created. */
#define FJI_CHUNK 64

/* Largest number of submission queues of a pool. A pool has the least power of two that is not
 * below its parallelism (for the common pool, also not below the number of CPUs), but at least 2
 * and at most FJI_MAX_SUBMISSION_QUEUES. */
#define FJI_MAX_SUBMISSION_QUEUES 64

/* ---- Queues ---------------------------------------------------------------------------------- */

/* Largest number of actions that a worker takes from a submission queue at once. It puts all but
 * the first into its own queue, so one contended CAS serves up to 8 actions. In a FIFO pool, and in
 * a pool with an on_reset callback, a worker takes one at a time. The number follows from the
 * benchmarks submit-1 and submit-2. */
#define FJI_SUBMISSIONS_BATCH 8

/* If the owner of a queue takes a task and at least this many older tasks are queued, it leaves the
 * lower half of them to thieves, and takes from the upper half without fences. A recursive
 * computation rarely has so many tasks in one queue. */
#ifndef FJI_SPLIT_MIN
#define FJI_SPLIT_MIN 64u
#endif

/* Takes without a steal after which the owner closes an open queue, in a pool that uses the heavy
 * fence and is not FIFO; in other pools all queues stay open. The full fences of 4096 takes (2 ns
 * each) cost about as much as one opening (12 us), so the owner pays at most about twice the
 * optimum. */
#ifndef FJI_CLOSE_AFTER
#define FJI_CLOSE_AFTER 4096
#endif

/* Number of times that a thief checks whether the owner has opened its closed queue, before the
 * thief opens the queue itself with the heavy fence. 40 checks take about 1 us. */
#ifndef FJI_SHARE_SPINS
#define FJI_SHARE_SPINS 40
#endif

/* A worker that runs the tasks of its own queue checks the submission queues before every n-th
 * task, where n is this number. The number is small, so that submitted tasks, and above all timers,
 * do not wait long behind slow tasks. */
#ifndef FJI_SUBMISSION_INTERVAL
#define FJI_SUBMISSION_INTERVAL 8
#endif

/* A worker whose pool has callbacks with a priority takes every n-th task, where n is this number,
 * from another queue than the priorities demand: background first, or ordinary submissions first, in
 * turn. So no priority waits forever. */
#ifndef FJI_AGING_INTERVAL
#define FJI_AGING_INTERVAL 32u
#endif

/* Number of actions for which a new lane has memory; a power of two. */
#ifndef FJI_LANE_FIRST
#define FJI_LANE_FIRST 32u
#endif

/* A turn of a lane ends after this many actions. The number is large enough that the cost of queueing
 * the turn again is small for each action. */
#ifndef FJI_LANE_ACTIONS
#define FJI_LANE_ACTIONS 64u
#endif

/* Largest number of actions that a thread takes out of a lane of width 1 at once. */
#ifndef FJI_LANE_WINDOW
#define FJI_LANE_WINDOW 16u
#endif

/* A turn of a lane ends after the action during which this time passes, in ticks of 0.4 to 1 ns. */
#define FJI_LANE_TICKS 100000u

/* ---- Searching and sleeping ------------------------------------------------------------------ */

/* Default of the time that a worker without a task searches before it goes idle, ns: 20 us, because
 * a wake-up costs 13 to 20 us. A worker that was not woken to search goes idle at once if at least
 * half as many searching slots as there are CPUs are in use. */
#ifndef FJI_SPIN_NS
#define FJI_SPIN_NS 20000
#endif

/* Upper bound of the time that a worker without a task searches before it goes idle, ns: 100 ms. If
 * the options of a pool set a longer time, this one is used. A longer time would waste CPU time,
 * because a worker that searches uses a core and does not count as idle. */
#define FJI_SPIN_MAX_NS 100000000ll

/* Parallelism up to which a producer may always wake a worker. In a pool with a larger parallelism
 * the wake-up needs a searching slot. */
#ifndef FJI_UNTHROTTLED_WORKERS
#define FJI_UNTHROTTLED_WORKERS 8
#endif

/* Bounds of the number of searching slots in a pool with a parallelism above
 * FJI_UNTHROTTLED_WORKERS. A worker that wants to wake another worker allows half as many slots as
 * workers are active, but at least FJI_SEARCH_MIN and at most FJI_SEARCH_MAX. A thread outside the
 * pool allows 1. With more searching workers the cache line of the control word becomes
 * a bottleneck; see docs/scaling.md. */
#ifndef FJI_SEARCH_MIN
#define FJI_SEARCH_MIN 4
#endif
#ifndef FJI_SEARCH_MAX
#define FJI_SEARCH_MAX 16
#endif

/* Least time between two heavy fences of workers that go idle while other workers of the pool are
 * active, ns: 50 us, because each fence takes 5 us from every running core. A worker that has to
 * wait for the next fence is already on the idle stack, and spins until the fence is done or the
 * worker is woken. The gap is not kept in a pool whose parallelism is above the number of CPUs, or
 * whose workers go idle without searching. */
#ifndef FJI_FENCE_GAP_NS
#define FJI_FENCE_GAP_NS 50000
#endif

/* Default of the keep-alive time of a pool, after which an idle worker may retire, ns: 60 s. */
#define FJI_KEEP_ALIVE_NS 60000000000ll

/* Shortest keep-alive time, ns: 20 ms. If the options of a pool set a shorter one, this one is
 * used. */
#define FJI_KEEP_ALIVE_MIN_NS 20000000ll

/* Time that replaces the keep-alive time when a worker has retired and no worker was woken since,
 * ns: 1 ms. So the idle workers below the retired one retire soon after it. */
#define FJI_RETIRE_NEXT_NS 1000000ll

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Time that a joiner spins before it blocks, ns: 20 us, because a stolen task is often nearly done
 * when its joiner arrives. */
#ifndef FJI_JOIN_SPIN_NS
#define FJI_JOIN_SPIN_NS 20000
#endif

/* The same for a worker of a large pool that has a CPU for each worker: 60 us. The simulator
 * predicts that 20 us is too short there (docs/scaling.md). */
#ifndef FJI_JOIN_SPIN_LARGE_NS
#define FJI_JOIN_SPIN_LARGE_NS 60000
#endif

/* Number of wait buckets, on which interruptible waits sleep; waits for any one of several futures
 * have one more bucket of their own. With 64 buckets, two waits for different futures rarely share
 * a bucket and wake each other. */
#define FJI_WAIT_BUCKETS 64

/* Bytes of a huge page. A block of memory with at least FJI_HUGE_MIN bytes in use may get huge
 * pages. A block of scratch memory of at least FJI_HUGE_ALIGN_MIN bytes begins at a huge page.
 * malloc() of glibc keeps freed blocks up to this size for later calls, but keeps none of them if
 * they have that alignment. */
#define FJI_HUGE_PAGE ((size_t)2 << 20)
#define FJI_HUGE_MIN ((size_t)4 << 20)
#define FJI_HUGE_ALIGN_MIN ((size_t)32 << 20)

/* How long, in ns, the CPU limit of the control groups may be taken from the last reading instead of
 * being read again. */
#define FJI_QUOTA_KEEP_NS 100000000ll

/* A sleeping thread that waits for a task of a pool, or for the end of a pool, checks in this
 * interval whether the pool is threadless, ns: 250 ms. A worker that waits for a task of its own
 * pool does not check. */
#define FJI_THREADLESS_POLL_NS 250000000ll

/* Shortest and longest pause between two checks of fj_common_shutdown() whether the common pool can
 * end, ns: 20 us and about 5 ms. The pause doubles from one check to the next. */
#define FJI_QUIET_PAUSE_NS 20000ll
#define FJI_QUIET_PAUSE_MAX_NS 5000000ll

/* Number of times that the exiting process tries to take the lock of the common pool, with a yield
 * after each attempt. The attempts are bounded, because the exiting thread may itself hold the
 * lock. */
#define FJI_EXIT_LOCK_ATTEMPTS 1000

/* ---- Threads --------------------------------------------------------------------------------- */

/* Default of max_threads of a pool, minus its parallelism: the number of threads that can run in
 * place of blocked workers. */
#define FJI_SPARES 256

/* If the on_start callback has returned an error in at least FJI_FAILED_STARTS new threads in a
 * row, which exit then, the pool starts no thread for FJI_FAILED_WAIT_NS after the last error, ns:
 * 100 ms. Otherwise it could start threads without end. */
#define FJI_FAILED_STARTS 3
#define FJI_FAILED_WAIT_NS 100000000ll

/* While the system refuses to start threads and no worker is idle, a worker counts its forks that
 * see the wake-up bit (in a pool without the heavy fence, all its forks). It tries to start a
 * thread at the first, second, fourth, eighth ... of them, and at each one whose number is a
 * multiple of FJI_SPAWN_RETRY_EVERY. It does not try at every fork, because each attempt is a
 * system call, and the joiner runs the task if no other thread does. */
#define FJI_SPAWN_RETRY_EVERY 1024

/* Shortest and longest pause between two attempts of a waiting worker, or of the keeper, to start a
 * thread that the system has refused, ns. The pause doubles from 0.1 ms to 100 ms. */
#define FJI_RETRY_MIN_NS 100000ll
#define FJI_RETRY_MAX_NS 100000000ll

/* How often a thread in a broadcast looks whether the other threads have arrived or have returned,
 * before it sleeps: in the first half with 1 pause instruction between two looks, then with 16. With
 * a pause instruction of 110 ns this takes 20 us. */
#define FJI_EVERY_SPINS 24

/* In a broadcast: the first and the longest pause before the asker wakes the threads again that have
 * not arrived, and before a thread that waits for the end looks again for a task, ns. */
#define FJI_EVERY_PAUSE_MIN_NS 20000ll
#define FJI_EVERY_PAUSE_MAX_NS 1000000ll

/* A worker that waits for a mutex or semaphore, and meanwhile tries to start a thread that the
 * system has refused, tries to lock or decrement in this interval, ns: 1 ms. */
#define FJI_RETRY_LOCK_NS 1000000ll

/* A worker that is about to wait in a way that the library does not control delays this wait while
 * it tries to start a thread that the system has refused. It stops delaying when at least
 * FJI_RETRY_TRIES starts were refused in a row and the first refusal is at least FJI_RETRY_WAIT_NS
 * ago, ns: 1 s. */
#define FJI_RETRY_TRIES 16
#define FJI_RETRY_WAIT_NS 1000000000ll

/* ---- Inboxes --------------------------------------------------------------------------------- */

/* Cells of the first chunk of an inbox, a power of two; each further chunk has twice as many. With
 * the largest number of chunks there are about 16 million cells, whose numbers fit into 24 bits.
 * Further callbacks use cells of their own, which are allocated and freed each time. */
#ifndef FJI_INBOX_CELLS
#define FJI_INBOX_CELLS 64
#endif
#define FJI_INBOX_CHUNKS 18

/* Number of used cells that fj_inbox_run() gives back together, so that it costs the posting threads
 * only one change of the word that they take cells from. */
#ifndef FJI_INBOX_BATCH
#define FJI_INBOX_BATCH 32
#endif

/* Interval in which fj_inbox_close() checks whether another thread has left notify(), ns. */
#define FJI_INBOX_CLOSE_NS 100000ll

#endif /* FJI_CONFIG_H */
