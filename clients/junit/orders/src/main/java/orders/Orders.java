package orders;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Turns orders into invoices, each exactly once. It reads orders ("alice 3") and writes invoices ("alice 30"). The invoices and
 * the offsets that it has read up to belong to one transaction, so an invoice exists if and only if its order counts as read.
 */
public final class Orders implements AutoCloseable {
    public static final int PRICE = 10;
    private final String brokers;
    private final String worker;
    private final KafkaConsumer<String, String> consumer;
    private KafkaProducer<String, String> producer;
    private volatile boolean isDead;

    /** Takes over from whoever worked under this name before: that one is fenced. */
    public Orders(String brokers, String worker) {
        this.brokers = brokers;
        this.worker = worker;
        consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", brokers, "group.id", "orders", "auto.offset.reset", "earliest",
            "enable.auto.commit", false, "isolation.level", "read_committed", "max.poll.records", 5, "fetch.max.wait.ms", 200),
            new StringDeserializer(), new StringDeserializer());
        producer = newProducer();
        consumer.subscribe(List.of("orders"));
    }

    private KafkaProducer<String, String> newProducer() {
        KafkaProducer<String, String> made = new KafkaProducer<>(Map.of("bootstrap.servers", brokers, "transactional.id", worker,
            "client.id", worker, "retry.backoff.ms", 20, "transaction.timeout.ms", 60_000, "max.block.ms", 10_000),
            new StringSerializer(), new StringSerializer());
        made.initTransactions();
        return made;
    }

    /**
     * Works until so many orders have been invoiced.
     *
     * @throws ProducerFencedException another worker has this name now.
     */
    public void work(int wanted) {
        for (int done = 0; done < wanted && !isDead;) {
            ConsumerRecords<String, String> orders = consumer.poll(Duration.ofMillis(200));
            if (orders.isEmpty())
                continue;
            try {
                step(orders);
                done += orders.count();
            } catch (ProducerFencedException | InvalidProducerEpochException error) {
                throw new ProducerFencedException(error.getMessage());
            } catch (InterruptException error) {
                throw error;
            } catch (KafkaException error) {
                goBack();
            }
        }
    }

    /** One transaction: invoices, and the offsets after their orders. */
    private void step(ConsumerRecords<String, String> orders) {
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (ConsumerRecord<String, String> order : orders) {
            String[] words = order.value().split(" ");
            producer.send(new ProducerRecord<>("invoices", words[0] + " " + Integer.parseInt(words[1]) * PRICE));
            positions.put(new TopicPartition(order.topic(), order.partition()), new OffsetAndMetadata(order.offset() + 1));
        }
        producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
        producer.commitTransaction();
    }

    /**
     * Reads again what the aborted transaction had read, and writes with a new producer: the old one may be in any state.
     *
     * @throws ProducerFencedException another worker has this name now. A call that waited while the producer was fenced does not say
     *     so: sendOffsetsToTransaction of kafka-clients 4.0 to 4.3 waits for max.block.ms then. A new producer would fence the other worker.
     */
    private void goBack() {
        try {
            producer.abortTransaction();
        } catch (ProducerFencedException | InvalidProducerEpochException error) {
            throw new ProducerFencedException(error.getMessage());
        } catch (KafkaException | IllegalStateException error) {
            // the new producer aborts it
        }
        producer.close(Duration.ZERO);
        producer = newProducer();
        consumer.committed(consumer.assignment()).forEach((partition, committed) -> {
            if (committed == null)
                consumer.seekToBeginning(List.of(partition));
            else
                consumer.seek(partition, committed);
        });
    }

    /** Ends it where it is, from another thread: nothing is committed or aborted. */
    public void die() {
        isDead = true;
        producer.close(Duration.ZERO);
    }

    @Override
    public void close() {
        consumer.close();
        producer.close(Duration.ZERO);
    }
}
