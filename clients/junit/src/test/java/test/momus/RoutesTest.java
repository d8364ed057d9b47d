package test.momus;

import static test.momus.Word.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Calls each method of the kit once: a route of /openapi.json that none of them asks for fails the test. */
class RoutesTest {
    // `momus open` and its page steer a kept run; a proxy removes what a run of pytest has created. What only the page asks for
    // has its tag.
    private static final Set<String> NOT_OF_KITS = Set.of("show_step", "step", "fetch_step", "tell_step", "remove_created",
        "list_events", "tell_requests", "left_wrong"); // momus explore asks the last three
    private static final Duration SOON = Duration.ofSeconds(10);

    @Test
    void eachRouteHasAMethod() {
        Set<String> asked = new ConcurrentSkipListSet<>();
        try (Momus momus = Momus.start()) {
            momus.control.asked = asked::add;
            momus.control.ask("GET", "/version", null); // as start does
            callAll(momus);
            Set<String> missing = new TreeSet<>();
            int[] routes = {0};
            momus.control.asked = call -> {};
            JsonNode described = Control.JSON.valueToTree(momus.openApi());
            asked.add("GET /openapi.json");
            described.path("paths").fields().forEachRemaining(path -> path.getValue().fields().forEachRemaining(method -> {
                JsonNode operation = method.getValue();
                String name = operation.path("operationId").asText();
                if (NOT_OF_KITS.contains(name) || name.endsWith("_of_default") || operation.path("tags").path(0).asText().equals("page"))
                    return;
                routes[0]++;
                String call = method.getKey().toUpperCase() + " " + path.getKey();
                Pattern pattern = Pattern.compile(call.replaceAll("\\{\\w+}", "[^/]+").replace(".", "\\.") + "(\\?.*)?");
                if (asked.stream().noneMatch(each -> pattern.matcher(each).matches()))
                    missing.add(call);
            }));
            assertEquals(Set.of(), missing, "routes that the kit has no method for");
            assertTrue(routes[0] > 60);
        }
    }

    private static void callAll(Momus momus) {
        assertTrue(momus.clusters().contains("default"));
        assertTrue(momus.routes().containsKey("/healthz"));
        assertTrue(momus.metrics().startsWith("# HELP"));
        assertTrue(momus.isHealthy() && momus.isReady());
        Cluster cluster = momus.newCluster(ClusterOptions.none().name("all").brokers(3).config("num.partitions", 2));
        cluster.createTopic("one", 1, 3, Map.of("retention.ms", "1000"));
        cluster.createTopics(Map.of("two", 2));
        assertEquals(1, cluster.load(Map.of("topics", List.of(Map.of("name", "three"))), "skip").get("topics"));
        cluster.produce("two", "a", "b");
        cluster.consume("two", 2);
        steer(cluster);
        groups(cluster);
        meet(cluster);
        Snapshot full = cluster.snapshot();
        assertEquals(1, cluster.snapshots().size());
        momus.diff(cluster.fork(), full);
        full.restore();
        full.remove();
        cluster.record();
        assertTrue(cluster.recording().length > 0);
        cluster.endRecording();
        assertFalse(cluster.hasRegistry());
        assertTrue(cluster.registryUrl().startsWith("http://"));
        cluster.reset();
        assertTrue(cluster.metrics().startsWith("# HELP"));
        assertEquals(0, cluster.connections());
        cluster.close();
        assertTrue(momus.defaultCluster().unmet().isEmpty());
        try (Cluster guarded = momus.newCluster(ClusterOptions.none().security("sasl_ssl").user("alice", "secret")
            .config("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"))) {
            secure(guarded);
        }
        momus.hangUp();
    }

    private static void steer(Cluster cluster) {
        cluster.clock().freeze();
        assertTrue(cluster.clock().stands());
        cluster.clock().set(cluster.clock().now().plusSeconds(60));
        cluster.clock().passWaits(Duration.ofSeconds(1));
        cluster.clock().resume();
        Brokers brokers = cluster.brokers();
        brokers.stop(2);
        brokers.start(2);
        brokers.lag(2);
        brokers.release(2);
        brokers.pause(3);
        assertTrue(brokers.list().get(2).paused() && brokers.list().get(0).up());
        brokers.resume(3);
    }

    private static void groups(Cluster cluster) {
        cluster.load(Map.of("groups", List.of(Map.of("name", "billing",
            "offsets", List.of(Map.of("topic", "two", "partition", 0, "offset", 1))))), "skip");
        cluster.waitForCommitted("billing", "two", Map.of(0, 1L), SOON);
        cluster.waitForLag("billing", 1, "two", SOON);
        cluster.waitForGroup("billing", "empty", 0, SOON);
        assertEquals("Empty", cluster.group("billing").state());
        assertEquals(Map.of("two", Map.of(0, 1L)), cluster.committed("billing"));
        assertThrows(AssertionError.class, () -> cluster.waitForGroup("billing", "stable", 1, Duration.ZERO));
        assertThrows(MomusException.class, () -> cluster.rebalance("billing"));
        assertThrows(MomusException.class, () -> cluster.expelMember("billing", "nobody"));
        cluster.deleteGroup("billing");
    }

    private static void meet(Cluster cluster) {
        Faults faults = cluster.faults();
        Fault first = faults.injectError("Fetch", "NOT_LEADER_OR_FOLLOWER", times(2), topic("orders"), partition(0), versions(0, 99));
        faults.delayOn("EndTxn", Duration.ofSeconds(1), apis("EndTxn", "Produce"), onCall(5), transactionalId("x*"));
        faults.makeEvent("rebalance", "EndTxn", after());
        faults.hold("EndTxn", before(), probability(0.5, 7), principal("User:alice"));
        faults.disconnectOn("EndTxn", middle(), listener("L"), onBroker(2));
        faults.blackholeClient("nobody", connection("127.0.0.1:1"), everyTime());
        faults.throttle(5, clientId("nobody"), named("slow"));
        faults.corruptReply("EndTxn", field("at", 3));
        faults.deliverTwice("EndTxn");
        faults.slowDisk(Duration.ofMillis(1), topic("nothing"));
        faults.fullDisk(1L << 40, topic("nothing"));
        faults.failWrite(topic("nothing"));
        faults.failFsync(topic("nothing"));
        faults.failDeadLetter("REQUEST_TIMED_OUT", group("g"));
        faults.registry("error", field("status", 503), field("code", 50003), route("RegisterSchema"), subject("s"), after());
        Set<String> set = new TreeSet<>();
        faults.list().forEach(each -> set.add(each.fault()));
        assertEquals(faults.kinds().size(), set.size(), "the kit sets " + set);
        assertEquals("NOT_LEADER_OR_FOLLOWER", first.state().words().get("error"));
        first.remove();
        faults.clear();
        Fault held = faults.hold("ApiVersions", once());
        Thread client = new Thread(() -> MomusExtensionTest.greet(cluster));
        client.start();
        held.waitUntilHeld();
        assertEquals(1, held.held());
        assertEquals(0, held.release(1) + held.release() - 1);
        held.waitUntilHit();
        assertEquals(1, held.hits());
        assertEquals(1, held.calls());
        Journal journal = cluster.journal();
        journal.verify(Limits.between(0, 5), api("ApiVersions"), error("NOT_COORDINATOR"));
        List<JournalEntry> entries = journal.entries(api("ApiVersions"));
        assertEquals(1, entries.size());
        JournalEntry entry = entries.get(0);
        assertEquals(List.of("ApiVersions", 0, List.of()), List.of(entry.api(), entry.version(), entry.errors()));
        assertTrue(entry.latencyMs() >= 0 && entry.why() == null && entry.fields().get("api").equals("ApiVersions"), entry.toString());
        assertTrue(entry.response().containsKey("api_keys"), entry.toString());
        assertEquals(List.of(), journal.whys());
        assertTrue(String.join("", journal.last(5)).contains("ApiVersions"));
        journal.expect(Limits.exactly(7), api("EndTxn"));
        journal.expectNothing();
        journal.keep(1 << 20);
        journal.clear();
        assertEquals(List.of(), cluster.unmet());
    }

    private static void secure(Cluster cluster) {
        Security security = cluster.security();
        security.addUser("carol", "pencil");
        assertEquals(List.of("alice", "carol"), security.users());
        assertEquals("pencil", security.passwords().get("carol"));
        security.removeUser("carol");
        security.allow("alice", "topic", "orders", "read", "describe");
        security.deny("User:bob", "group", "billing", "read");
        assertEquals(3, security.acls().size());
        assertTrue(security.acls().contains(new Acl("User:bob", "*", "read", "group", "billing", "literal", "deny")), security.acls().toString());
        assertEquals(1, security.removeAcls("bob"));
        security.expireCertificate("server");
        security.issueCertificate("server", "localhost");
        security.rotateCertificates();
        security.rotateAuthority();
        Map<String, Object> settings = cluster.clientSettings("java", "alice");
        assertTrue(String.valueOf(settings.get("sasl.jaas.config")).contains("alice"), settings.toString());
        assertFalse(settings.toString().contains("{folder}"));
    }
}
