// SPDX-License-Identifier: MIT
//
// Algo.java - the algorithms of the Java library: parallel streams and java.util.Arrays
//
// The workloads are those of algo.h. The kernels run inside a ForkJoinPool with the requested
// number of workers. The methods of Arrays split by the size of the common pool, so algo.py
// limits that pool too (-Djava.util.concurrent.ForkJoinPool.common.parallelism).

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Locale;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveAction;
import java.util.stream.IntStream;

final class Algo {
    static final int TINY_LOOP = 10, TINY_STEP = 16, TINY_TURNS = 70, EVEN_TURNS = 4;
    static final int TRIANGLE = 256, HEAVY_COUNT = 16, HEAVY_STEP = 1000, HEAVY_TURNS = 3000000;
    static final int BINS = 1024, FEW = 16, FOUND = 0xfffffffb;
    static final int WARM_RUNS = 10;
    static final long WARM_LEAST_NS = 1_000_000_000L, WARM_MOST_NS = 3_000_000_000L;

    static ForkJoinPool pool;

    /* One workload at one size. run() is timed, reset() is not. */
    abstract static class Work {
        String name, variant;
        int n;
        long bytes;

        void prepare() {}

        void reset() {}

        abstract void run();

        abstract boolean check();
    }

    // ---- pieces of work ----

    static long mix(long z) {
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }

    static long random(long i) {
        return mix((i + 1) * 0x9e3779b97f4a7c15L);
    }

    static int turns(long x, int turns) {
        for (int i = 0; i < turns; i++) x = (x ^ (x >>> 29)) * 0xbf58476d1ce4e5b9L;
        return (int) (x >>> 32);
    }

    static int heavy(int i, int n) {
        int k = i - n / 2;
        boolean one = k >= 0 && k % HEAVY_STEP == 0 && k / HEAVY_STEP < HEAVY_COUNT;
        return turns(i, one ? HEAVY_TURNS : TINY_STEP);
    }

    // ---- loops ----

    interface Element {
        int at(int i);
    }

    static class Loop extends Work {
        final Element element;
        int[] out;
        long answer;

        Loop(Element element) {
            this.element = element;
        }

        @Override
        void prepare() {
            out = new int[n];
            for (int i = 0; i < n; i++) answer += element.at(i);
        }

        @Override
        void reset() {
            Arrays.fill(out, 0);
        }

        @Override
        void run() {
            IntStream.range(0, n).parallel().forEach(i -> out[i] = element.at(i));
        }

        @Override
        boolean check() {
            long sum = 0;
            for (int x : out) sum += x;
            return sum == answer;
        }
    }

    static final class Tree extends RecursiveAction {
        private static final long serialVersionUID = 1;
        final transient Loop loop;
        final int lo, hi;

        Tree(Loop loop, int lo, int hi) {
            this.loop = loop;
            this.lo = lo;
            this.hi = hi;
        }

        @Override
        protected void compute() {
            if (hi - lo == 1) {
                loop.out[lo] = loop.element.at(lo);
                return;
            }
            int mid = lo + (hi - lo) / 2;
            Tree right = new Tree(loop, mid, hi);
            right.fork();
            new Tree(loop, lo, mid).compute();
            right.join();
        }
    }

    static final class Grain1 extends Loop {
        Grain1() {
            super(i -> i * 0x9e3779b1 + 1);
        }

        @Override
        void run() {
            new Tree(this, 0, n).invoke();
        }
    }

    static final class Tiny extends Work {
        final int[] out = new int[TINY_LOOP * TINY_STEP];

        @Override
        void reset() {
            Arrays.fill(out, 0);
        }

        @Override
        void run() {
            for (int k = 0; k < n; k++)
                IntStream.range(0, TINY_LOOP).parallel()
                    .forEach(i -> out[i * TINY_STEP] += turns(i + 1, TINY_TURNS) | 1);
        }

        @Override
        boolean check() {
            for (int i = 0; i < TINY_LOOP; i++)
                if (out[i * TINY_STEP] != (turns(i + 1, TINY_TURNS) | 1) * n) return false;
            return true;
        }
    }

    // ---- sums and scans ----

    static final class Sum extends Work {
        double[] in;
        double result;
        long answer;

        @Override
        void prepare() {
            in = new double[n];
            for (int i = 0; i < n; i++) {
                in[i] = random(i) & 1023;
                answer += (long) in[i];
            }
        }

        @Override
        void run() {
            result = Arrays.stream(in).parallel().reduce(0, Double::sum);
        }

        @Override
        boolean check() {
            return (long) result == answer;
        }
    }

    static final class ScanLong extends Work {
        long[] in, out;

        @Override
        void prepare() {
            in = new long[n];
            out = new long[n];
            for (int i = 0; i < n; i++) in[i] = random(i) & 1023;
        }

        @Override
        void reset() {
            System.arraycopy(in, 0, out, 0, n);
        }

        @Override
        void run() {
            Arrays.parallelPrefix(out, Long::sum);
        }

        @Override
        boolean check() {
            long sum = 0;
            for (int i = 0; i < n; i++) if (out[i] != (sum += in[i])) return false;
            return true;
        }
    }

    static final class ScanDouble extends Work {
        double[] in, out;

        @Override
        void prepare() {
            in = new double[n];
            out = new double[n];
            for (int i = 0; i < n; i++) in[i] = random(i) & 1023;
        }

        @Override
        void reset() {
            System.arraycopy(in, 0, out, 0, n);
        }

        @Override
        void run() {
            Arrays.parallelPrefix(out, Double::sum);
        }

        @Override
        boolean check() {
            double sum = 0;
            for (int i = 0; i < n; i++) if (out[i] != (sum += in[i])) return false;
            return true;
        }
    }

    // ---- filter and find ----

    static final class Filter extends Work {
        int[] in, out;

        @Override
        void prepare() {
            in = new int[n];
            for (int i = 0; i < n; i++) in[i] = (int) random(i);
        }

        @Override
        void run() {
            out = Arrays.stream(in).parallel().filter(x -> (x >>> 9 & 1) != 0).toArray();
        }

        @Override
        boolean check() {
            int k = 0;
            for (int x : in) if ((x >>> 9 & 1) != 0 && out[k++] != x) return false;
            return k == out.length;
        }
    }

    static final class Find extends Work {
        int[] in;
        int at;

        @Override
        void prepare() {
            in = new int[n];
            for (int i = 0; i < n; i++) in[i] = (int) random(i) >>> 1;
            in[n / 4 * 3] = FOUND;
        }

        @Override
        void run() {
            at = IntStream.range(0, n).parallel().filter(i -> in[i] == FOUND).findFirst().orElse(n);
        }

        @Override
        boolean check() {
            return at == n / 4 * 3;
        }
    }

    // ---- sorts ----

    static final class SortInt extends Work {
        int[] in, out;
        long answer;

        int key(int i) {
            switch (name) {
            case "sort-u32-sorted":
                return i * 3;
            case "sort-u32-reversed":
                return (n - i) * 3;
            case "sort-u32-equal":
                return 42;
            case "sort-u32-organ":
                return i < n / 2 ? i : n - i;
            case "sort-u32-few":
                return (int) Long.remainderUnsigned(random(i), FEW);
            default:
                return (int) random(i);
            }
        }

        long sum(int[] a) {
            long sum = 0;
            for (int x : a) sum += mix(x);
            return sum;
        }

        @Override
        void prepare() {
            in = new int[n];
            for (int i = 0; i < n; i++) in[i] = key(i);
            answer = sum(in);
        }

        @Override
        void reset() {
            out = in.clone();
        }

        @Override
        void run() {
            Arrays.parallelSort(out);
        }

        @Override
        boolean check() {
            for (int i = 1; i < n; i++) if (out[i - 1] > out[i]) return false;
            return sum(out) == answer;
        }
    }

    static final class Pair {
        final long key, value;

        Pair(long key, long value) {
            this.key = key;
            this.value = value;
        }
    }

    static final class SortPair extends Work {
        Pair[] in, out;

        @Override
        void prepare() {
            in = new Pair[n];
            for (int i = 0; i < n; i++) in[i] = new Pair(random(i), i);
        }

        @Override
        void reset() {
            out = in.clone();
        }

        @Override
        void run() {
            Arrays.parallelSort(out, Comparator.comparingLong((Pair p) -> p.key));
        }

        @Override
        boolean check() {
            for (int i = 1; i < n; i++) if (out[i - 1].key > out[i].key) return false;
            return true;
        }
    }

    static final class SortText extends Work {
        String[] in, out;

        static String text(int i) {
            long r = random(i);
            int letters = 8 + (int) Long.remainderUnsigned(r, 12);
            StringBuilder s = new StringBuilder((r & 4096) != 0 ? "long " : "");
            for (; s.length() < letters; r = mix(r + 1)) s.append((char) ('a' + (r >>> 20) % 26));
            return s.toString();
        }

        @Override
        void prepare() {
            in = new String[n];
            for (int i = 0; i < n; i++) in[i] = text(i);
        }

        @Override
        void reset() {
            out = in.clone();
        }

        @Override
        void run() {
            Arrays.parallelSort(out);
        }

        @Override
        boolean check() {
            for (int i = 1; i < n; i++) if (out[i - 1].compareTo(out[i]) > 0) return false;
            return true;
        }
    }

    // ---- main ----

    static Work make(String name) {
        switch (name) {
        case "for-even":
            return new Loop(i -> turns(i, EVEN_TURNS));
        case "for-triangle":
            return new Loop(i -> turns(i, i / TRIANGLE));
        case "for-heavy":
            return null; // needs the number of elements: see find()
        case "for-grain1":
            return new Grain1();
        case "for-tiny":
        case "for-tiny-inside":
            return new Tiny();
        case "sum":
            return new Sum();
        case "scan-i64":
            return new ScanLong();
        case "scan-f64":
            return new ScanDouble();
        case "filter":
            return new Filter();
        case "find":
            return new Find();
        case "sort-struct":
            return new SortPair();
        case "sort-strings":
            return new SortText();
        default:
            return name.startsWith("sort-u32") ? new SortInt() : null;
        }
    }

    static final Object[][] SIZES = {
        {"for-even", 10000000, 500000, 0},      {"for-triangle", 200000, 50000, 0},
        {"for-heavy", 1000000, 50000, 0},       {"for-grain1", 10000000, 500000, 0},
        {"for-tiny", 100000, 5000, 0},          {"for-tiny-inside", 100000, 5000, 0},
        {"sum", 64000000, 3200000, 8},          {"scan-i64", 64000000, 3200000, 16},
        {"scan-f64", 64000000, 3200000, 16},    {"filter", 32000000, 1600000, 6},
        {"find", 64000000, 3200000, 3},         {"sort-u32", 10000000, 500000, 0},
        {"sort-struct", 2000000, 100000, 0},    {"sort-strings", 1000000, 50000, 0},
        {"sort-u32-sorted", 4000000, 200000, 0}, {"sort-u32-reversed", 4000000, 200000, 0},
        {"sort-u32-equal", 4000000, 200000, 0}, {"sort-u32-organ", 4000000, 200000, 0},
        {"sort-u32-few", 4000000, 200000, 0},
    };

    static Work find(String name, boolean quick) {
        for (Object[] s : SIZES) {
            if (!s[0].equals(name)) continue;
            int n = (Integer) s[quick ? 2 : 1];
            Work w = name.equals("for-heavy") ? new Loop(i -> heavy(i, n)) : make(name);
            w.name = name;
            w.n = n;
            w.bytes = (Integer) s[3];
            w.variant = variant(name);
            return w;
        }
        return null;
    }

    static String variant(String name) {
        if (name.startsWith("scan")) return "parallelPrefix";
        if (name.startsWith("sort")) return "parallelSort";
        return name.equals("for-grain1") ? "forks" : "stream";
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

    static double measure(Work w) {
        w.reset();
        long start = System.nanoTime();
        if (w.name.equals("for-tiny"))
            w.run();
        else
            pool.submit(w::run).join();
        return (System.nanoTime() - start) * 1e-9;
    }

    static int parse(String s) {
        try {
            return Integer.parseInt(s);
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    static int start(String[] args) throws IOException {
        boolean quick = args.length == 4 && args[3].equals("--quick");
        int workers = args.length < 3 ? 0 : parse(args[1]);
        int reps = args.length < 3 ? 0 : parse(args[2]);
        if ((args.length != 3 && !quick) || workers < 1 || reps < 1) {
            System.err.println("usage: java -cp DIR Algo WORKLOAD WORKERS REPS [--quick]");
            return 2;
        }
        Work w = find(args[0], quick);
        if (w == null) return 3;

        int status = 0;
        pool = new ForkJoinPool(workers);
        w.prepare();
        long start = System.nanoTime(), spent = 0;
        for (int i = 0; spent < WARM_MOST_NS && (i < WARM_RUNS || spent < WARM_LEAST_NS); i++) {
            measure(w);
            spent = System.nanoTime() - start;
        }
        for (int i = 0; i < reps; i++) {
            double before = cpuSeconds(), seconds = measure(w), cpu = cpuSeconds() - before;
            boolean ok = w.check();
            System.out.printf(Locale.ROOT, "result %s java %s %d %.9f %.9f %d %d %d%n", w.name,
                              w.variant, workers, seconds, cpu, w.n, w.bytes, ok ? 1 : 0);
            if (!ok) status = 1;
        }
        pool.shutdown();
        return status;
    }

    public static void main(String[] args) throws IOException {
        System.exit(start(args));
    }

    private Algo() {}
}
