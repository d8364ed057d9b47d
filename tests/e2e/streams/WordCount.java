import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.GroupProtocol;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * One instance of a word count: lines to words by a repartition topic, words to counts in a store.
 *
 * Says on standard output which state it is in. Each line on standard input is a word to ask for: it answers which
 * instance has its count. The end of standard input stops it, as one stops an application that is to go on elsewhere.
 */
public final class WordCount {
    private static void count(StreamsBuilder builder, String lines, String counts) {
        builder.stream(lines, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split(" ")))
            .groupBy((key, word) -> word, Grouped.<String, String>as("words").withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
            .toStream()
            .to(counts, Produced.with(Serdes.String(), Serdes.Long()));
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        settings.put(StreamsConfig.APPLICATION_SERVER_CONFIG, arguments[5]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[6]);
        settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, GroupProtocol.STREAMS.name());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0); // every step of every count is seen
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        if (arguments.length > 7) {
            settings.put("group.instance.id", arguments[7]);
        }

        StreamsBuilder builder = new StreamsBuilder();
        count(builder, arguments[2], arguments[3]);
        CountDownLatch ended = new CountDownLatch(1);
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.setStateListener((now, before) -> {
                System.out.println("STATE " + now);
                if (now == KafkaStreams.State.ERROR) {
                    ended.countDown();
                }
            });
            streams.setUncaughtExceptionHandler(error -> {
                System.out.println("FAILED " + error);
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            Thread asked = new Thread(() -> answer(streams, ended));
            asked.setDaemon(true);
            asked.start();
            ended.await();
            streams.close(Duration.ofSeconds(30));
        }
        System.out.println("CLOSED");
    }

    private static void answer(KafkaStreams streams, CountDownLatch ended) {
        try (java.util.Scanner words = new java.util.Scanner(System.in)) {
            while (words.hasNextLine()) {
                String word = words.nextLine();
                KeyQueryMetadata where = streams.queryMetadataForKey("counts", word, Serdes.String().serializer());
                System.out.println("HOST " + word + " " + where.activeHost().port());
            }
        }
        ended.countDown();
    }
}
