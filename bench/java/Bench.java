/* SPDX-License-Identifier: MIT */
/*
 * Bench.java - the workloads with java.util.concurrent.ForkJoinPool
 *
 * This is the program of the runtime `java`. It repeats workload.h and the harness in Java, with
 * the same command line, result lines and exit status as the C programs. The warm-up takes at
 * least ten runs and one second, but at most three seconds, so that compiled code is measured.
 */
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CountedCompleter;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveAction;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

public final class Bench {
    static final int OVERSUB_WORKERS = 8;
    static final int SKYNET_ARITY = 10;
    static final double EPSILON = 1e-9;
    static final int WARM_RUNS = 10;
    static final long WARM_LEAST_NS = 1_000_000_000L;
    static final long WARM_MOST_NS = 3_000_000_000L;

    static ForkJoinPool pool;
    static int workers;

    /* ---- the workloads: see bench_case in workload.h ---- */

    record Case(String workload, int size, long tasks, double answer, double tolerance) {
        boolean check(double got) {
            return Math.abs(got - answer) <= tolerance * answer;
        }
    }

    /* In pairs: full size, quick size. */
    static final Case[] CASES = {
        new Case("fib", 38, 63245985, 39088169, 0),
        new Case("fib", 30, 1346268, 832040, 0),
        new Case("integrate", 1300, 11843839, 714025845000.0, 1e-9),
        new Case("integrate", 300, 1672611, 2025045000.0, 1e-9),
        new Case("nqueens", 12, 856188, 14200, 0),
        new Case("nqueens", 10, 35538, 724, 0),
        new Case("uts-geo", 20, 4659700, 4659700, 0),
        new Case("uts-geo", 17, 609218, 609218, 0),
        new Case("uts-bin", 2000, 4870193, 4870193, 0),
        new Case("uts-bin", 200, 245009, 245009, 0),
        new Case("skynet", 1000000, 1111110, 499999500000.0, 0),
        new Case("skynet", 100000, 111110, 4999950000.0, 0),
        new Case("fan", 1000000, 1000000, 499999500000.0, 0),
        new Case("fan", 100000, 100000, 4999950000.0, 0),
        new Case("submit-1", 1000000, 1000000, 1000000, 0),
        new Case("submit-1", 100000, 100000, 100000, 0),
        new Case("submit-2", 1000000, 2000000, 2000000, 0),
        new Case("submit-2", 100000, 200000, 200000, 0),
        new Case("wake", 200, 1, 200, 0),
        new Case("wake", 50, 1, 50, 0),
        new Case("trip-200us", 1000, 1, 1000, 0),
        new Case("trip-200us", 100, 1, 100, 0),
        new Case("trip-5ms", 300, 1, 300, 0),
        new Case("trip-5ms", 30, 1, 30, 0),
        new Case("trip-100ms", 50, 1, 50, 0),
        new Case("trip-100ms", 10, 1, 10, 0),
        new Case("first", 200, 1, 200, 0),
        new Case("first", 20, 1, 20, 0),
        new Case("create", 200, 1, 200, 0),
        new Case("create", 20, 1, 20, 0),
        new Case("idle", 2000, 1, 0, 0),
        new Case("idle", 1000, 1, 0, 0),
        new Case("fib-future", 34, 9227464, 5702887, 0),
        new Case("fib-future", 27, 317810, 196418, 0),
        new Case("fib-completer", 32, 7049155, 2178309, 0),
        new Case("fib-completer", 25, 242785, 75025, 0),
        new Case("sum-completer", 16384, 524287, 8380134720.0, 0),
        new Case("sum-completer", 1024, 32767, 523641600.0, 0),
        new Case("oversub", 38, 63245985, 39088169, 0),
        new Case("oversub", 30, 1346268, 832040, 0),
    };

    static Case find(String workload, boolean quick) {
        for (int i = 0; i < CASES.length; i += 2)
            if (CASES[i].workload.equals(workload)) return CASES[i + (quick ? 1 : 0)];
        return null;
    }

    /* ---- fork/join ---- */

    static final class Fib extends RecursiveAction {
        final int n;
        long result;

        Fib(int n) {
            this.n = n;
        }

        @Override
        protected void compute() {
            result = fib(n);
        }

        static long fib(int n) {
            if (n < 2) return n;
            Fib a = new Fib(n - 1);
            a.fork();
            long b = fib(n - 2);
            a.join();
            return a.result + b;
        }
    }

    /* A task forks its left child and computes its right child itself. */
    static final class FibCompleter extends CountedCompleter<Void> {
        final int n;
        long result;
        FibCompleter left, right;

        FibCompleter(FibCompleter parent, int n) {
            super(parent);
            this.n = n;
        }

        @Override
        public void compute() {
            FibCompleter f = this;
            while (f.n >= 2) {
                f.left = new FibCompleter(f, f.n - 1);
                f.right = new FibCompleter(f, f.n - 2);
                f.setPendingCount(1);
                f.left.fork();
                f = f.right;
            }
            f.result = f.n;
            f.tryComplete();
        }

        @Override
        public void onCompletion(CountedCompleter<?> caller) {
            if (left == null) return;
            result = left.result + right.result;
            left = right = null;
        }
    }

    static int[] values;

    /* Fills the array in the first run, which is a warm-up. Later calls do nothing. */
    static void fillValues(int n) {
        if (values != null && values.length >= n) return;
        values = new int[n];
        for (int i = 0; i < n; i++) values[i] = i % 1000;
    }

    static final class SumCompleter extends CountedCompleter<Void> {
        final int from, n;
        long result;
        SumCompleter left, right;

        SumCompleter(SumCompleter parent, int from, int n) {
            super(parent);
            this.from = from;
            this.n = n;
        }

        @Override
        public void compute() {
            SumCompleter s = this;
            while (s.n > 64) {
                int half = s.n / 2;
                s.left = new SumCompleter(s, s.from, half);
                s.right = new SumCompleter(s, s.from + half, s.n - half);
                s.setPendingCount(1);
                s.left.fork();
                s = s.right;
            }
            long sum = 0;
            for (int i = s.from; i < s.from + s.n; i++) sum += values[i];
            s.result = sum;
            s.tryComplete();
        }

        @Override
        public void onCompletion(CountedCompleter<?> caller) {
            if (left == null) return;
            result = left.result + right.result;
            left = right = null;
        }
    }

    static double integrand(double x) {
        return (x * x + 1.0) * x;
    }

    static final class Integrate extends RecursiveAction {
        final double x1, y1, x2, y2, area;
        double result;

        Integrate(double x1, double y1, double x2, double y2, double area) {
            this.x1 = x1;
            this.y1 = y1;
            this.x2 = x2;
            this.y2 = y2;
            this.area = area;
        }

        @Override
        protected void compute() {
            result = integrate(x1, y1, x2, y2, area);
        }

        static double integrate(double x1, double y1, double x2, double y2, double area) {
            double half = (x2 - x1) / 2;
            double xm = x1 + half;
            double ym = integrand(xm);
            double left = (y1 + ym) * half / 2;
            double right = (ym + y2) * half / 2;
            if (Math.abs(left + right - area) < EPSILON) return left + right;
            Integrate a = new Integrate(x1, y1, xm, ym, left);
            a.fork();
            double b = integrate(xm, ym, x2, y2, right);
            a.join();
            return a.result + b;
        }
    }

    static final class Queens extends RecursiveAction {
        final byte[] board;
        final int row;
        long result;

        Queens(byte[] board, int row) {
            this.board = board;
            this.row = row;
        }

        static boolean fits(byte[] board, int row, int col) {
            for (int r = 0; r < row; r++) {
                int d = board[r] - col;
                if (d == 0 || d == row - r || d == r - row) return false;
            }
            return true;
        }

        @Override
        protected void compute() {
            int n = board.length, kids = 0;
            if (row == n) {
                result = 1;
                return;
            }
            Queens[] part = new Queens[n];
            for (int col = 0; col < n; col++) {
                if (!fits(board, row, col)) continue;
                byte[] next = board.clone();
                next[row] = (byte) col;
                part[kids] = new Queens(next, row + 1);
                part[kids++].fork();
            }
            long total = 0;
            while (--kids >= 0) {
                part[kids].join();
                total += part[kids].result;
            }
            result = total;
        }
    }

    /* The searched tree: see bench_tree in workload.h. */
    static final class Tree {
        static final long GEO_SEED = 12, BIN_SEED = 21;
        static final int DRAWS = 256, BIN_KIDS = 8;

        final boolean binomial;
        final int rootKids;
        final long kidsBelow = (long) (0.1249 * 9007199254740992.0);
        final long root;
        byte[][] kids;

        Tree(Case c) {
            binomial = c.workload.equals("uts-bin");
            rootKids = c.size;
            root = mix(binomial ? BIN_SEED : GEO_SEED);
            if (binomial) return;
            kids = new byte[c.size + 1][DRAWS];
            for (int d = 0; d <= c.size; d++) fill(kids[d], 4.0 * (1.0 - (double) d / c.size));
        }

        static void fill(byte[] row, double mean) {
            double ratio = mean / (1.0 + mean);
            for (double share = ratio * DRAWS; share >= 0.5; share *= ratio) {
                int draws = (int) (share + 0.5);
                for (int i = 0; i < draws; i++) row[i]++;
            }
        }

        static long mix(long z) {
            z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
            z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
            return z ^ (z >>> 31);
        }

        static long child(long hash, int index) {
            return mix(hash + (index + 1) * 0x9e3779b97f4a7c15L);
        }

        int kids(long hash, int depth) {
            if (binomial) {
                if (depth == 0) return rootKids;
                return (hash >>> 11) < kidsBelow ? BIN_KIDS : 0;
            }
            return kids[depth][(int) (hash >>> 56)];
        }
    }

    static final class Uts extends RecursiveAction {
        final Tree tree;
        final long hash;
        final int depth;
        long result;

        Uts(Tree tree, long hash, int depth) {
            this.tree = tree;
            this.hash = hash;
            this.depth = depth;
        }

        @Override
        protected void compute() {
            result = uts(tree, hash, depth);
        }

        static long uts(Tree tree, long hash, int depth) {
            int kids = tree.kids(hash, depth);
            if (kids == 0) return 1;
            Uts[] part = new Uts[kids - 1];
            for (int i = 0; i < kids - 1; i++) {
                part[i] = new Uts(tree, Tree.child(hash, i), depth + 1);
                part[i].fork();
            }
            long total = 1 + uts(tree, Tree.child(hash, kids - 1), depth + 1);
            for (int i = kids - 2; i >= 0; i--) {
                part[i].join();
                total += part[i].result;
            }
            return total;
        }
    }

    static final class Skynet extends RecursiveAction {
        final long first, leaves;
        long result;

        Skynet(long first, long leaves) {
            this.first = first;
            this.leaves = leaves;
        }

        @Override
        protected void compute() {
            if (leaves == 1) {
                result = first;
                return;
            }
            Skynet[] part = new Skynet[SKYNET_ARITY];
            long share = leaves / SKYNET_ARITY, total = 0;
            for (int i = 0; i < SKYNET_ARITY; i++) {
                part[i] = new Skynet(first + i * share, share);
                part[i].fork();
            }
            for (int i = SKYNET_ARITY - 1; i >= 0; i--) {
                part[i].join();
                total += part[i].result;
            }
            result = total;
        }
    }

    static final class FanTask extends RecursiveAction {
        final long number;
        long field;

        FanTask(long number) {
            this.number = number;
        }

        @Override
        protected void compute() {
            field += number;
        }
    }

    static final class Fan extends RecursiveAction {
        final int n;
        long result;

        Fan(int n) {
            this.n = n;
        }

        @Override
        protected void compute() {
            FanTask[] kid = new FanTask[n];
            long total = 0;
            for (int i = 0; i < n; i++) {
                kid[i] = new FanTask(i);
                kid[i].fork();
            }
            for (int i = n - 1; i >= 0; i--) {
                kid[i].join();
                total += kid[i].field;
            }
            result = total;
        }
    }

    /* Returns the answer of a fork/join workload. */
    static double kernel(Case c) {
        switch (c.workload) {
        case "fib":
        case "oversub": {
            Fib t = new Fib(c.size);
            pool.invoke(t);
            return t.result;
        }
        case "fib-future": {
            Fib t = new Fib(c.size);
            pool.invoke(t);
            return t.result;
        }
        case "fib-completer": {
            FibCompleter t = new FibCompleter(null, c.size);
            pool.invoke(t);
            return t.result;
        }
        case "sum-completer": {
            int n = c.size * 1024;
            fillValues(n);
            SumCompleter t = new SumCompleter(null, 0, n);
            pool.invoke(t);
            return t.result;
        }
        case "integrate": {
            double x = c.size, y0 = integrand(0), y = integrand(x);
            Integrate t = new Integrate(0, y0, x, y, (y0 + y) * x / 2);
            pool.invoke(t);
            return t.result;
        }
        case "nqueens": {
            Queens t = new Queens(new byte[c.size], 0);
            pool.invoke(t);
            return t.result;
        }
        case "skynet": {
            Skynet t = new Skynet(0, c.size);
            pool.invoke(t);
            return t.result;
        }
        case "fan": {
            Fan t = new Fan(c.size);
            pool.invoke(t);
            return t.result;
        }
        default: {
            Tree tree = new Tree(c);
            Uts t = new Uts(tree, tree.root, 0);
            pool.invoke(t);
            return t.result;
        }
        }
    }

    /* ---- drivers: one measurement each, see harness.c ---- */

    /* p99 and peakBytes are 0 if they are not measured. */
    record Measure(double seconds, boolean ok, double p99, long peakBytes) {
        Measure(double seconds, boolean ok) {
            this(seconds, ok, 0, 0);
        }
    }

    static Measure measureRounds(long[] ns, boolean ok) {
        int rank = (99 * ns.length + 99) / 100;
        Arrays.sort(ns);
        return new Measure(ns[ns.length / 2] * 1e-9, ok, ns[rank - 1] * 1e-9, 0);
    }

    static long peakBytes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status")))
            if (line.startsWith("VmHWM:")) return 1024 * Long.parseLong(line.split("\\s+")[1]);
        return 0;
    }

    static Measure runKernel(Case c) throws IOException {
        long start = System.nanoTime();
        double answer = kernel(c);
        long end = System.nanoTime();
        return new Measure((end - start) * 1e-9, c.check(answer), 0, peakBytes());
    }

    /* Padding on both sides keeps the counters of two producers on different cache lines. */
    static class PadBefore {
        long p0, p1, p2, p3, p4, p5, p6, p7;
    }

    static class Counter extends PadBefore {
        long done;
    }

    static final class Producer extends Counter implements Runnable {
        static final int OUTSTANDING_MAX = 65536, OUTSTANDING_LOW = 32768;
        static final int OUTSTANDING_LOOK = 1024;
        static final long POLL_NS = 20_000;
        static final VarHandle DONE;
        long q0, q1, q2, q3, q4, q5, q6, q7;

        static {
            try {
                DONE = MethodHandles.lookup().findVarHandle(Counter.class, "done", long.class);
            } catch (ReflectiveOperationException e) {
                throw new ExceptionInInitializerError(e);
            }
        }

        final int count;
        final CountDownLatch gate;
        final Runnable body = this::countOne;
        long startNs, endNs;

        Producer(int count, CountDownLatch gate) {
            this.count = count;
            this.gate = gate;
        }

        void countOne() {
            long ignored = (long) DONE.getAndAddRelease(this, 1L);
        }

        long done() {
            return (long) DONE.getOpaque(this);
        }

        void awaitOutstanding(long sent, long most) {
            while (sent - done() > most) LockSupport.parkNanos(POLL_NS);
        }

        @Override
        public void run() {
            gate.countDown();
            try {
                gate.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            startNs = System.nanoTime();
            for (int sent = 0; sent < count; sent++) {
                if (sent % OUTSTANDING_LOOK == 0 && sent - done() > OUTSTANDING_MAX)
                    awaitOutstanding(sent, OUTSTANDING_LOW);
                pool.execute(body);
            }
            awaitOutstanding(count, 0);
            endNs = System.nanoTime();
        }
    }

    static Measure runSubmit(Case c) throws InterruptedException {
        int n = (int) (c.tasks / c.size);
        CountDownLatch gate = new CountDownLatch(n);
        Producer[] producers = new Producer[n];
        Thread[] threads = new Thread[n];
        long done = 0, start = Long.MAX_VALUE, end = Long.MIN_VALUE;
        for (int i = 0; i < n; i++) {
            producers[i] = new Producer(c.size, gate);
            threads[i] = new Thread(producers[i]);
            threads[i].start();
        }
        for (int i = 0; i < n; i++) {
            threads[i].join();
            start = Math.min(start, producers[i].startNs);
            end = Math.max(end, producers[i].endNs);
            done += producers[i].done();
        }
        return new Measure((end - start) * 1e-9, c.check(done));
    }

    static final class AlarmClock implements Runnable {
        final Semaphore rang = new Semaphore(0);
        long startedNs;

        @Override
        public void run() {
            startedNs = System.nanoTime();
            rang.release();
        }
    }

    static Measure runWake(Case c) throws InterruptedException {
        AlarmClock clock = new AlarmClock();
        long[] ns = new long[c.size];
        for (int i = 0; i < c.size; i++) {
            Thread.sleep(2);
            long start = System.nanoTime();
            pool.execute(clock);
            clock.rang.acquire();
            ns[i] = clock.startedNs - start;
        }
        return measureRounds(ns, true);
    }

    static long trips;

    /* The body of the task of a round trip. A round trip ends before the next one begins. */
    static void countTrip() {
        trips++;
    }

    static void roundTrip(ForkJoinPool p) throws InterruptedException {
        try {
            p.submit(Bench::countTrip).get();
        } catch (ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }

    /* Thread.sleep() has a resolution of only a millisecond. */
    static void pause(long ns) {
        long end = System.nanoTime() + ns;
        for (long left = ns; left > 0; left = end - System.nanoTime()) LockSupport.parkNanos(left);
    }

    static long tripPauseNs(String workload) {
        String unit = workload.endsWith("us") ? "us" : "ms";
        long n = Long.parseLong(workload.replace("trip-", "").replace(unit, ""));
        return n * (unit.equals("us") ? 1_000 : 1_000_000);
    }

    static Measure runTrip(Case c) throws InterruptedException {
        long pauseNs = tripPauseNs(c.workload);
        long[] ns = new long[c.size];
        trips = 0;
        for (int i = 0; i < c.size; i++) {
            pause(pauseNs);
            long start = System.nanoTime();
            roundTrip(pool);
            ns[i] = System.nanoTime() - start;
        }
        return measureRounds(ns, c.check(trips));
    }

    static Measure runPools(Case c, boolean whole) throws InterruptedException {
        long[] ns = new long[c.size];
        trips = 0;
        for (int i = 0; i < c.size; i++) {
            long begin = System.nanoTime();
            ForkJoinPool p = new ForkJoinPool(workers);
            roundTrip(p);
            long first = System.nanoTime();
            p.shutdown();
            p.awaitTermination(1, TimeUnit.MINUTES);
            ns[i] = (whole ? System.nanoTime() : first) - begin;
        }
        return measureRounds(ns, c.check(trips));
    }

    /* Adds up the times of all threads, because the process clock of the JVM has a resolution of
     * only a hundredth of a second. */
    static double cpuSeconds() throws IOException {
        long ns = 0;
        try (var tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks)
                ns += Long.parseLong(Files.readString(task.resolve("schedstat")).split(" ")[0]);
        }
        return ns * 1e-9;
    }

    static Measure runIdle(Case c) throws IOException, InterruptedException {
        Case busy = find("fib", true);
        boolean ok = busy.check(kernel(busy));
        Thread.sleep(100);
        double before = cpuSeconds();
        Thread.sleep(c.size);
        return new Measure(cpuSeconds() - before, ok);
    }

    static Measure run(Case c) throws IOException, InterruptedException {
        switch (c.workload) {
        case "submit-1":
        case "submit-2":
            return runSubmit(c);
        case "wake":
            return runWake(c);
        case "trip-200us":
        case "trip-5ms":
        case "trip-100ms":
            return runTrip(c);
        case "first":
        case "create":
            return runPools(c, c.workload.equals("create"));
        case "idle":
            return runIdle(c);
        default:
            return runKernel(c);
        }
    }

    /* ---- main ---- */

    /* A trip warms up with the shortest pause: more round trips run in the same time. */
    static Case warmUpCase(Case c) {
        if (c.workload.equals("idle")) return find("fib", true);
        if (c.workload.startsWith("trip-")) return find("trip-200us", false);
        return c;
    }

    static void warmUp(Case c) throws IOException, InterruptedException {
        Case warm = warmUpCase(c);
        long start = System.nanoTime(), spent = 0;
        for (int i = 0; spent < WARM_MOST_NS && (i < WARM_RUNS || spent < WARM_LEAST_NS); i++) {
            run(warm);
            spent = System.nanoTime() - start;
        }
    }

    static void printResult(Case c, Measure m) {
        String more = "";
        if (m.p99 > 0) more += String.format(Locale.ROOT, " p99=%.9f", m.p99);
        if (m.peakBytes > 0) more += " peak=" + m.peakBytes;
        System.out.printf(Locale.ROOT, "result %s java %d %.9f %d %d%s%n", c.workload, workers,
                          m.seconds, c.tasks, m.ok ? 1 : 0, more);
    }

    static int parse(String s) {
        try {
            return Integer.parseInt(s);
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    static int start(String[] args) throws IOException, InterruptedException {
        boolean quick = args.length == 4 && args[3].equals("--quick");
        workers = args.length < 3 ? 0 : parse(args[1]);
        int reps = args.length < 3 ? 0 : parse(args[2]);
        if ((args.length != 3 && !quick) || workers < 1 || reps < 1) {
            System.err.println("usage: java -cp DIR Bench WORKLOAD WORKERS REPS [--quick]");
            return 2;
        }
        if (args[0].equals("dd")) {
            System.err.println("java: unsupported workload: " + args[0]);
            return 3;
        }
        Case c = find(args[0], quick);
        if (c == null) {
            System.err.println("java: unknown workload: " + args[0]);
            return 2;
        }
        if (c.workload.equals("oversub")) workers = OVERSUB_WORKERS;

        int status = 0;
        pool = new ForkJoinPool(workers);
        warmUp(c);
        for (int i = 0; i < reps; i++) {
            Measure m = run(c);
            printResult(c, m);
            if (!m.ok) status = 1;
        }
        pool.shutdown();
        return status;
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        System.exit(start(args));
    }

    private Bench() {}
}
