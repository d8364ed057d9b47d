import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Runs all checks of Apache Kafka's Java clients in one JVM: `java Checks BROKER TRIO`, addresses of one broker and of
 * three. Prints `PASS name` or `FAIL name` with the trace in the lines below it. `java Checks` prints the names.
 */
public final class Checks {
    /** One behaviour; the topic, and the group, bear the check's name. */
    interface Check {
        void run(Cluster cluster, String name) throws Exception;
    }

    /** Where a check's clients connect to. */
    record Cluster(String servers) {
        Properties with(Object... settings) {
            Properties properties = new Properties();
            properties.put("bootstrap.servers", servers);
            for (int i = 0; i < settings.length; i += 2) {
                properties.put((String) settings[i], settings[i + 1]);
            }
            return properties;
        }
    }

    static final Map<String, Check> ON_ONE = new LinkedHashMap<>();
    static final Map<String, Check> ON_THREE = new LinkedHashMap<>();

    public static void main(String[] arguments) throws Exception {
        Records.register();
        Groups.register();
        Admins.register();
        Transactions.register();
        if (arguments.length == 0) {
            ON_ONE.keySet().forEach(System.out::println);
            ON_THREE.keySet().forEach(System.out::println);
            return;
        }
        PrintStream out = System.out;
        ExecutorService workers = Executors.newFixedThreadPool(4);
        List<Future<String>> results = new ArrayList<>();
        ON_ONE.forEach((name, check) -> results.add(workers.submit(run(name, check, arguments[0]))));
        ON_THREE.forEach((name, check) -> results.add(workers.submit(run(name, check, arguments[1]))));
        for (Future<String> result : results) {
            out.println(result.get());
        }
        System.exit(0); // a failed check may have left a consumer's thread behind
    }

    private static Callable<String> run(String name, Check check, String servers) {
        return () -> {
            try {
                check.run(new Cluster(servers), name);
                return "PASS " + name;
            } catch (Throwable failure) {
                StringBuilder text = new StringBuilder("FAIL " + name);
                for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
                    text.append("\n  ").append(cause);
                    for (StackTraceElement frame : cause.getStackTrace()) {
                        if (frame.getModuleName() == null && !frame.getClassName().startsWith("org.apache")) {
                            text.append("\n    at ").append(frame);
                        }
                    }
                }
                return text.toString();
            }
        };
    }

    static void equal(Object expected, Object found) {
        if (!java.util.Objects.equals(expected, found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** Waits until something holds; clients decide for themselves when they act. */
    static void until(Callable<Boolean> holds, String why) throws Exception {
        long end = System.nanoTime() + 120_000_000_000L;
        while (!holds.call()) {
            that(System.nanoTime() < end, "waited 120 s in vain: " + why);
            Thread.sleep(20);
        }
    }

    /** The error that a call to the broker ends with. */
    static Class<?> refusal(Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (java.util.concurrent.ExecutionException failure) {
            return failure.getCause().getClass();
        } catch (org.apache.kafka.common.KafkaException failure) {
            return failure.getClass();
        }
        return null;
    }
}
