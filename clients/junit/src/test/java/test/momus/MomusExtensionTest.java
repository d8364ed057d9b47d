package test.momus;

import static test.momus.Word.api;
import static test.momus.Word.group;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary.Failure;

@MomusCluster(topics = {"orders:3", "invoices"})
class MomusExtensionTest {
    /** Sends an ApiVersions v0 and waits for the answer, or the end of the connection. */
    static void greet(Cluster cluster) {
        String[] at = cluster.addresses().get(0).split(":");
        try (Socket client = new Socket(at[0], Integer.parseInt(at[1]))) {
            client.getOutputStream().write(new byte[] {0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, -1, -1});
            client.getInputStream().readNBytes(4);
        } catch (IOException error) {
            return; // it was cut
        }
    }

    @Test
    void recordsGoThereAndBack(Cluster cluster) {
        List<Place> places = cluster.produce("orders", Message.of("a"), Message.of(new byte[] {-1}), Message.of(Map.of("n", 1)),
            Message.of(List.of(2)), Message.of("b").key("table 4").header("h", new byte[] {-2}).header("none", null).timestampMs(1_700_000_000_000L),
            Message.of(null).partition(2));
        assertEquals(List.of(new Place(0, 0), new Place(1, 0), new Place(2, 0), new Place(0, 1), new Place(2, 1), new Place(2, 2)), places);
        List<Received> found = cluster.consume("orders", 6);
        assertEquals(Arrays.asList("a", "[2]", "{\"n\":1}", "b", null),
            found.stream().filter(each -> each.partition() != 1).map(Received::text).toList());
        Received keyed = cluster.consume("orders", 1, Reading.all().key("table 4").partition(2, 0)).get(0);
        assertEquals("table 4", keyed.keyText());
        assertEquals(1_700_000_000_000L, keyed.timestampMs());
        assertEquals(-2, keyed.headers().get(0).value()[0]);
        assertNull(keyed.headers().get(1).value());
        AssertionError few = assertThrows(AssertionError.class,
            () -> cluster.consume("orders", 7, Reading.all().within(Duration.ofMillis(50))));
        assertTrue(few.getMessage().contains("orders has 6 records"), few.getMessage());
    }

    @Test
    void allRecordsAreConsumedHoweverManyAnswersTheyTake(Cluster cluster) {
        cluster.produce("many", Stream.generate(() -> "x").limit(10_005).toArray(String[]::new));
        assertEquals(10_005, cluster.consume("many", 0).size());
        assertEquals(10_005, cluster.consume("many", 10_005).size());
    }

    @Test
    void eachTestHasAClusterOfItsOwn(Cluster cluster, Momus momus) {
        assertEquals(List.of(), cluster.consume("orders", 0));
        assertEquals(momus.address(), Momus.ofRun().address());
        try (Cluster other = momus.newCluster()) {
            assertNotEquals(other.bootstrapServers(), cluster.bootstrapServers());
        }
    }

    @Test
    @MomusCluster(brokers = 3, at = "2030-01-01T00:00:00Z", config = "num.partitions=4", seed = 7)
    void wordsOfTheMethodWin(Cluster cluster) {
        assertEquals(cluster.addresses(), cluster.brokers().list().stream().map(each -> each.listeners().values().iterator().next()).toList());
        assertEquals(Instant.parse("2030-01-01T00:00:00Z"), cluster.clock().now());
        cluster.clock().advance(Duration.ofDays(8));
        assertEquals(Instant.parse("2030-01-09T00:00:00Z"), cluster.clock().now());
        assertThrows(MomusException.class, () -> cluster.consume("orders", 0));
    }

    @Test
    @MomusCluster(load = "load/orders.json")
    void clusterIsFilledFromAFileOnTheClassPathAndWhatItNames(Cluster cluster) {
        Received found = cluster.consume("orders", 1).get(0);
        assertEquals("7", new String(found.key()));
        assertEquals("{\"id\":\"7\",\"item\":\"coffee\"}", new String(found.value()));
    }

    @Test
    void clusterIsFilledFromAFolder(Momus momus) {
        try (Cluster cluster = momus.newCluster(ClusterOptions.none().load(Path.of("src/test/resources/load")))) {
            assertEquals(1, cluster.consume("orders", 1).size());
            assertThrows(MomusException.class, () -> cluster.load(Path.of("nothing.json"), "fail"));
        }
    }

    @Test
    void forkGoesOnAloneAndDiffTellsWhatIsDifferent(Cluster cluster, Momus momus) {
        cluster.produce("orders", "a");
        Snapshot full = cluster.snapshot("full");
        Cluster fork = full.fork();
        assertFalse(momus.diff(full, fork).isDifferent());
        fork.produce("orders", "b");
        Difference difference = momus.diff(full, fork);
        assertTrue(difference.isDifferent() && difference.toString().contains("records {\"topic\":\"orders\""), difference.toString());
        assertEquals(1, cluster.consume("orders", 0).size());
    }

    // ---- what fails a test: run by the tests below, not by themselves

    static void never(Cluster cluster) {
        cluster.faults().injectError("OffsetCommit", "NOT_COORDINATOR", group("billing"));
    }

    @MomusCluster
    static class Failing {
        @Test
        void faultNeverActs(Cluster cluster) {
            never(cluster);
        }

        @Test
        void faultOfAForkNeverActs(Cluster cluster) {
            never(cluster.fork());
        }

        @Test
        void expectationIsNotMet(Cluster cluster) {
            cluster.journal().expect(Limits.exactly(2), api("ApiVersions"));
            greet(cluster);
            cluster.reset();
        }

        @Test
        void failsItself(Cluster cluster) {
            greet(cluster);
            throw new IllegalStateException("of its own");
        }

        @Test
        void verifyFails(Cluster cluster) {
            greet(cluster);
            cluster.journal().verify(Limits.atLeast(1), api("ApiVersions"));
            cluster.journal().verify(Limits.exactly(3), api("ApiVersions"));
        }
    }

    @MomusCluster
    static class Passing {
        @Test
        void faultActs(Cluster cluster) {
            cluster.faults().disconnectOn("ApiVersions", Word.before());
            greet(cluster);
        }

        @Test
        void faultIsTakenAway(Cluster cluster) {
            never(cluster);
            cluster.faults().clear();
        }

        @Test
        void clusterIsReset(Cluster cluster) {
            never(cluster);
            cluster.reset();
        }
    }

    @MomusCluster
    static class FailingClass {
        private static Cluster shared;

        @BeforeAll
        static void arrange(Cluster cluster) {
            shared = cluster;
        }

        @Test
        void clusterIsThatOfTheClass(Cluster cluster) {
            assertEquals(shared, cluster);
            never(cluster);
        }
    }

    static Map<String, Throwable> failures(Class<?> tests) {
        SummaryGeneratingListener listener = new SummaryGeneratingListener();
        LauncherFactory.create().execute(
            LauncherDiscoveryRequestBuilder.request().selectors(DiscoverySelectors.selectClass(tests)).build(), listener);
        assertTrue(listener.getSummary().getTestsStartedCount() > 0);
        Map<String, Throwable> found = new java.util.TreeMap<>();
        for (Failure each : listener.getSummary().getFailures())
            found.put(each.getTestIdentifier().getDisplayName().replace("(Cluster)", ""), each.getException());
        return found;
    }

    @Test
    void faultsThatNeverActedAndExpectationsFailTheirTestsAndTheReportHasTheLastRequests() {
        Map<String, Throwable> failed = failures(Failing.class);
        assertEquals(Set.of("faultNeverActs", "faultOfAForkNeverActs", "expectationIsNotMet", "failsItself", "verifyFails"), failed.keySet());
        assertTrue(failed.get("faultNeverActs").getMessage().contains("the fault fault-1 never acted (no request matched it)"));
        assertTrue(failed.get("faultOfAForkNeverActs").getMessage().contains("never acted"));
        assertTrue(failed.get("expectationIsNotMet").getMessage().contains("api=ApiVersions came 1 time, expected exactly 2"));
        assertTrue(failed.get("verifyFails").getMessage().contains("came 1 time, expected exactly 3"));
        assertEquals("of its own", failed.get("failsItself").getMessage());
        for (String each : List.of("failsItself", "verifyFails"))
            assertTrue(failed.get(each).getSuppressed()[0].getMessage().contains("ApiVersions v0"), each);
    }

    @Test
    void faultThatActedOrIsGoneFailsNothing() {
        assertEquals(Set.of(), failures(Passing.class).keySet());
    }

    @Test
    void faultOfTheClusterOfAClassFailsItOnce() {
        Map<String, Throwable> failed = failures(FailingClass.class);
        assertEquals(1, failed.size(), failed.toString());
        assertTrue(failed.values().iterator().next().getMessage().contains("never acted"));
    }

    @Test
    void runOfAFailedTestIsKept(@TempDir Path folder) throws Exception {
        System.setProperty("momus.keepFailed", folder.toString());
        try {
            failures(Failing.class);
            failures(Passing.class);
        } finally {
            System.clearProperty("momus.keepFailed");
        }
        try (Stream<Path> kept = Files.list(folder)) {
            List<Path> files = kept.sorted().toList();
            assertEquals(5, files.size(), files.toString());
            List<String> command = new ArrayList<>(Find.command());
            command.addAll(List.of("replay", files.get(2).toString()));
            Process replayed = new ProcessBuilder(command).redirectErrorStream(true).start();
            String said = new String(replayed.getInputStream().readAllBytes());
            assertEquals(0, replayed.waitFor(), said);
        }
    }

    @Test
    void clusterIsVerifiedOnceWhoeverClosesIt(Momus momus) {
        Cluster cluster = momus.newCluster();
        never(cluster);
        assertThrows(AssertionError.class, cluster::close);
        cluster.close();
        assertFalse(momus.clusters().contains(cluster.name()));
    }

    @Test
    void refusalSaysWhyAndItsStatus(Cluster cluster) {
        MomusException refused = assertThrows(MomusException.class, () -> cluster.faults().injectError("OffsetCommit", "SINGING"));
        assertEquals(400, refused.status());
        assertTrue(refused.getMessage().contains("SINGING"), refused.getMessage());
    }

    // ---- the process

    private static String said(int status, String answer) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(status, answer.length());
            exchange.getResponseBody().write(answer.getBytes());
            exchange.close();
        });
        server.start();
        try {
            Momus.connect("127.0.0.1:" + server.getAddress().getPort());
            return "";
        } catch (MomusException error) {
            return error.getMessage();
        } finally {
            server.stop(0);
        }
    }

    @Test
    void kitAndMomusOfOtherVersionsSaySo() throws IOException {
        assertEquals("", said(200, "{\"version\": \"9.9.9\", \"api\": 1, \"more\": \"tolerated\"}"));
        String other = said(200, "{\"version\": \"9.9.9\", \"api\": 2}");
        assertTrue(other.contains("of 9.9.9 and speaks version 2"), other);
        String older = said(404, "{}");
        assertTrue(older.contains("is older than this kit"), older);
    }

    @Test
    void startThatFailsSaysWhy() {
        MomusException wrong = assertThrows(MomusException.class, () -> Momus.start("--set", "num.partitions=none"));
        assertTrue(wrong.getMessage().contains("num.partitions"), wrong.getMessage());
        MomusException none = assertThrows(MomusException.class, () -> Momus.start(List.of("no-such-momus")));
        assertTrue(none.getMessage().contains("no-such-momus"), none.getMessage());
    }

    /** The run of the test below that is killed. */
    public static final class Child {
        public static void main(String[] words) throws InterruptedException {
            System.out.println(Momus.start().address());
            Thread.sleep(Long.MAX_VALUE);
        }
    }

    @Test
    void processEndsWithTheRunEvenByKill9() throws Exception {
        Process child = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
            System.getProperty("java.class.path"), Child.class.getName()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String[] at = child.inputReader().readLine().split(":");
        try (Socket there = new Socket(at[0], Integer.parseInt(at[1]))) {
            assertTrue(there.isConnected());
        }
        child.destroyForcibly().waitFor();
        for (long endNs = System.nanoTime() + 60_000_000_000L; System.nanoTime() < endNs; Thread.sleep(20))
            try (Socket there = new Socket(at[0], Integer.parseInt(at[1]))) {
                assertTrue(there.isConnected());
            } catch (IOException error) {
                return;
            }
        throw new AssertionError("the process outlives the run that has started it");
    }
}
