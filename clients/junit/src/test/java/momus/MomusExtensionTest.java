package momus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

@ExtendWith(MomusExtension.class)
class MomusExtensionTest {
    private static RecordMetadata produce(MomusBroker.Cluster cluster, String value) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", cluster.bootstrapServers());
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            return producer.send(new ProducerRecord<>("orders", value)).get();
        }
    }

    @Test
    void recordsGoThereAndBack(MomusBroker.Cluster cluster) throws Exception {
        produce(cluster, "one coffee");
        Map<String, Object> config = Map.of("bootstrap.servers", cluster.bootstrapServers(), "group.id", "bar", "auto.offset.reset", "earliest");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"));
            for (;;)
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofSeconds(1))) {
                    assertEquals("one coffee", each.value());
                    return;
                }
        }
    }

    @Test
    void eachTestHasAClusterOfItsOwn(MomusBroker.Cluster cluster) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", cluster.bootstrapServers()))) {
            assertEquals(Set.of(), admin.listTopics().names().get());
            cluster.createTopic("made", 3);
            assertEquals(Set.of("made"), admin.listTopics().names().get());
            cluster.reset();
        }
    }

    @Test
    void producedRecordsGoByTheirKeyElseRoundAndTheirPlacesAreTold(MomusBroker.Cluster cluster) throws Exception {
        cluster.createTopic("orders", 3);
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("a \"b\"\n", List.of(1, true, 0.5));
        json.put("none", null);
        List<MomusBroker.Place> places = cluster.produce("orders", MomusBroker.Message.of("x"),
            MomusBroker.Message.of(new byte[] {(byte) 0xff}), MomusBroker.Message.of(json),
            MomusBroker.Message.of("table 4", "y"), new MomusBroker.Message(null, "z", 2), MomusBroker.Message.of("w"));
        assertEquals(List.of(new MomusBroker.Place(0, 0), new MomusBroker.Place(1, 0), new MomusBroker.Place(2, 0),
            new MomusBroker.Place(2, 1), new MomusBroker.Place(2, 2), new MomusBroker.Place(0, 1)), places);
        assertEquals(List.of(new MomusBroker.Place(1, 1)), cluster.produce("orders", "goes on"));
        Map<String, Object> config = Map.of("bootstrap.servers", cluster.bootstrapServers(), "auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(new TopicPartition("orders", 2)));
            List<String> values = new ArrayList<>();
            while (values.size() < 3)
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofSeconds(1)))
                    values.add(new String(each.value()));
            assertEquals(List.of("{\"a \\\"b\\\"\\u000a\":[1,true,0.5],\"none\":null}", "y", "z"), values);
        }
        assertThrows(IllegalArgumentException.class, () -> cluster.produce("orders", MomusBroker.Message.of(5)));
    }

    @Test
    void clockMovesForTheClusterAlone(MomusBroker.Cluster cluster) throws Exception {
        cluster.advanceClock(Duration.ofDays(8));
        long least = System.currentTimeMillis() + Duration.ofDays(7).toMillis();
        Map<String, Object> config = Map.of("bootstrap.servers", cluster.bootstrapServers());
        try (Admin admin = Admin.create(config)) {
            admin.createTopics(List.of(new org.apache.kafka.clients.admin.NewTopic("orders", 1, (short) 1)
                .configs(Map.of("message.timestamp.type", "LogAppendTime")))).all().get();
        }
        assertTrue(produce(cluster, "later").timestamp() > least);
    }

    @Test
    void clockThatCouldNotDoAllThatBecameDueIsAnError() throws Exception {
        boolean[] settled = {true};
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            byte[] answer = ("{\"name\": \"c\", \"bootstrap_servers\": \"b\", \"settled\": " + settled[0] + "}").getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
        try {
            MomusBroker.Cluster cluster = new MomusBroker("127.0.0.1:" + server.getAddress().getPort(), null, null).newCluster();
            cluster.advanceClock(Duration.ofSeconds(1));
            settled[0] = false;
            assertThrows(IOException.class, () -> cluster.advanceClock(Duration.ofSeconds(1)));
        } finally {
            server.stop(0);
        }
    }

    @Test
    void whatIsRefusedIsToldInWords(MomusBroker.Cluster cluster) {
        IOException refused = assertThrows(IOException.class, () -> cluster.addFault("{\"fault\": \"sing\"}"));
        assertTrue(refused.getMessage().contains("400"), refused.getMessage());
    }

    private static final String FAULT = "{\"fault\": \"inject_error\", \"api\": \"OffsetCommit\", \"error\": \"NOT_COORDINATOR\"}";

    /** Run by the tests below, not by itself: classes in others are not looked at. */
    @ExtendWith(MomusExtension.class)
    static class Faulty {
        @Test
        void faultNeverActs(MomusBroker.Cluster cluster) throws Exception {
            cluster.addFault(FAULT);
        }

        @Test
        void faultActs(MomusBroker.Cluster cluster) throws Exception {
            cluster.addFault("{\"fault\": \"delay_on\", \"api\": \"Produce\", \"ms\": 1}");
            produce(cluster, "late");
        }

        @Test
        void faultIsTakenAway(MomusBroker.Cluster cluster) throws Exception {
            cluster.addFault(FAULT);
            cluster.clearFaults();
        }
    }

    @ExtendWith(MomusExtension.class)
    static class FaultyClass {
        private static MomusBroker.Cluster shared;

        @BeforeAll
        static void arrange(MomusBroker.Cluster cluster) throws Exception {
            shared = cluster;
            cluster.addFault(FAULT);
        }

        @Test
        void clusterIsThatOfTheClass(MomusBroker.Cluster cluster) {
            assertEquals(shared, cluster);
        }
    }

    private static List<String> failures(Class<?> tests) {
        SummaryGeneratingListener listener = new SummaryGeneratingListener();
        LauncherFactory.create().execute(
            LauncherDiscoveryRequestBuilder.request().selectors(DiscoverySelectors.selectClass(tests)).build(), listener);
        assertTrue(listener.getSummary().getTestsStartedCount() > 0);
        return listener.getSummary().getFailures().stream()
            .map(each -> each.getTestIdentifier().getDisplayName() + ": " + each.getException().getMessage()).toList();
    }

    @Test
    void faultThatNeverActedFailsItsTest() {
        List<String> failed = failures(Faulty.class);
        assertEquals(1, failed.size(), failed.toString());
        assertTrue(failed.get(0).startsWith("faultNeverActs(Cluster): faults that never acted"), failed.get(0));
        assertTrue(failed.get(0).contains("OffsetCommit"), failed.get(0));
    }

    @Test
    void faultOfTheClusterOfAClassThatNeverActedFailsTheClass() {
        List<String> failed = failures(FaultyClass.class);
        assertEquals(1, failed.size(), failed.toString());
        assertTrue(failed.get(0).contains("faults that never acted"), failed.get(0));
    }

    @Test
    void clusterIsAskedOnceWhoeverClosesIt() throws Exception {
        MomusBroker broker = MomusBroker.start();
        try {
            MomusBroker.Cluster left = broker.newCluster();
            left.addFault(FAULT);
            MomusBroker.Cluster closed = broker.newCluster();
            closed.addFault(FAULT);
            assertThrows(AssertionError.class, closed::close);
            assertThrows(IOException.class, () -> closed.createTopic("t", 1));
            closed.close();
            assertThrows(AssertionError.class, broker::close);
        } finally {
            broker.close();
        }
    }
}
