package orders;

import static test.momus.Word.after;
import static test.momus.Word.before;
import static test.momus.Word.clientId;
import static test.momus.Word.once;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import test.momus.Cluster;
import test.momus.ClusterOptions;
import test.momus.Fault;
import test.momus.Message;
import test.momus.Momus;
import test.momus.Reading;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Whatever goes wrong, each order has exactly one invoice. */
class OrdersTest {
    private static final int COUNT = 20;
    private static final List<String> EXPECTED =
        IntStream.range(0, COUNT).mapToObj(number -> "customer-" + number + " " + number * Orders.PRICE).sorted().toList();
    private static Cluster template;
    private Cluster cluster;
    private Orders service;

    /** A cluster with 20 orders, made once and forked for each test. As of 3.9, a client asks for each step of a transaction. */
    @BeforeAll
    static void arrange() {
        template = Momus.ofRun().newCluster(ClusterOptions.none().seed(2026).topic("orders", 2).topic("invoices", 1)
            .config("as.version", "3.9").config("transaction.state.log.num.partitions", 2).config("offsets.topic.num.partitions", 2));
        for (int number = 0; number < COUNT; number++)
            template.produce("orders", Message.of("customer-" + number + " " + number).partition(number % 2));
    }

    @AfterAll
    static void end() {
        template.close();
    }

    @BeforeEach
    void begin() {
        cluster = template.fork();
        service = new Orders(cluster.bootstrapServers(), "orders-1");
    }

    @AfterEach
    void verify() {
        service.close();
        cluster.close(); // fails for a fault that never acted
    }

    /** What a careful reader sees. */
    private List<String> invoices(int least) {
        return cluster.consume("invoices", least, Reading.all().committed()).stream().map(each -> each.text()).sorted().toList();
    }

    @Test
    void eachOrderHasItsInvoice() {
        service.work(COUNT);
        assertEquals(EXPECTED, invoices(COUNT));
        assertEquals(Map.of("orders", Map.of(0, 10L, 1, 10L)), cluster.committed("orders"));
    }

    @ParameterizedTest
    @CsvSource({"AddPartitionsToTxn, before", "AddPartitionsToTxn, after", "Produce, before", "Produce, after", "AddOffsetsToTxn, before",
        "AddOffsetsToTxn, after", "TxnOffsetCommit, before", "TxnOffsetCommit, after", "EndTxn, before", "EndTxn, after"})
    void connectionThatBreaksAtAnyStepCostsNoInvoiceAndAddsNone(String api, String when) {
        Fault fault = cluster.faults().disconnectOn(api, when.equals("before") ? before() : after(), once(), clientId("orders-1"));
        service.work(COUNT);
        assertEquals(1, fault.hits());
        assertEquals(EXPECTED, invoices(COUNT));
    }

    @ParameterizedTest
    @CsvSource({"AddPartitionsToTxn, NOT_COORDINATOR", "Produce, NOT_LEADER_OR_FOLLOWER", "AddOffsetsToTxn, NOT_COORDINATOR",
        "TxnOffsetCommit, NOT_COORDINATOR", "EndTxn, NOT_COORDINATOR"})
    void coordinatorThatMovesAtAnyStepCostsNoInvoiceAndAddsNone(String api, String error) {
        cluster.faults().injectError(api, error, once());
        service.work(COUNT);
        assertEquals(EXPECTED, invoices(COUNT));
    }

    /** Works until the first transaction is to end, and calls what happens then. The worker dies there. */
    private void atTheEnd(Runnable then) throws InterruptedException {
        Fault held = cluster.faults().hold("EndTxn", before(), once());
        Thread working = new Thread(() -> {
            try {
                service.work(COUNT);
            } catch (RuntimeException error) {
                return; // it has died
            }
        });
        working.start();
        held.waitUntilHeld(1, Duration.ofMinutes(1));
        then.run();
        service.die();
        working.join();
        held.remove();
    }

    @Test
    void workerThatDiesBetweenOffsetsAndCommitLeavesNoTrace() throws InterruptedException {
        atTheEnd(() -> {
            assertEquals(List.of(), invoices(0));
            assertEquals(Map.of(), cluster.committed("orders"));
        });
    }

    @Test
    void zombieIsFencedAndToldWhy() {
        service.work(5);
        try (Orders successor = new Orders(cluster.bootstrapServers(), "orders-1")) {
            assertThrows(ProducerFencedException.class, () -> service.work(COUNT));
            String sentence = "the producer sent id \\d+, epoch 0; transactional id orders-1 is \\w+, with producer id \\d+, epoch 1";
            List<String> whys = cluster.journal().whys();
            assertTrue(whys.stream().anyMatch(why -> why.matches(sentence)), whys.toString());
            service.close();
            successor.work(COUNT - invoices(0).size());
        }
        assertEquals(EXPECTED, invoices(COUNT));
    }

    @Test
    void transactionOfAWorkerThatFellSilentIsAbortedAfterAMinute() throws InterruptedException {
        atTheEnd(() -> {
            cluster.produce("invoices", "by hand 1");
            assertEquals(List.of(), invoices(0)); // after the open transaction
            cluster.clock().advance(Duration.ofSeconds(61));
            assertEquals(List.of("by hand 1"), invoices(1));
        });
    }
}
