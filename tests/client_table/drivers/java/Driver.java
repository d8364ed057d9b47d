// The driver of Apache Kafka's own clients for Java; lines.py says what it speaks.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Driver {
    private static final String TOPIC = "orders";
    private static final String REQUEST_MS = "10000";
    private static final String WHOLE_MS = "30000";

    private KafkaProducer<String, String> producer;
    private KafkaConsumer<String, String> consumer;

    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver();
        Properties own = new Properties();
        own.load(KafkaProducer.class.getResourceAsStream("/kafka/kafka-version.properties"));
        say("client\tkafka-clients\t" + own.getProperty("version"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                say("ok" + driver.act(line.split("\t")));
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                String text = String.valueOf(cause.getMessage()).replaceAll("\\s+", " ");
                say("error\t" + cause.getClass().getSimpleName() + "\t" + text);
            }
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static Properties settings(String address) {
        Properties made = new Properties();
        made.put("bootstrap.servers", address);
        made.put("client.id", "driver");
        made.put("request.timeout.ms", REQUEST_MS);
        return made;
    }

    private String act(String[] words) throws Exception {
        switch (words[0]) {
            case "producer" -> {
                Properties settings = settings(words[1]);
                settings.put("delivery.timeout.ms", WHOLE_MS);
                settings.put("max.block.ms", WHOLE_MS);
                producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
            }
            case "consumer" -> {
                Properties settings = settings(words[1]);
                settings.put("group.id", words[2]);
                settings.put("group.protocol", "classic");
                settings.put("auto.offset.reset", "earliest");
                settings.put("enable.auto.commit", "false");
                settings.put("max.poll.records", "1");
                settings.put("default.api.timeout.ms", WHOLE_MS);
                consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
                consumer.subscribe(List.of(TOPIC));
            }
            case "produce" -> producer.send(new ProducerRecord<>(TOPIC, words[1])).get();
            case "consume" -> {
                while (true) {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                        return "\t" + record.offset() + "\t" + record.value();
                    }
                }
            }
            case "commit" -> consumer.commitSync();
            case "close" -> close();
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    private void close() {
        if (producer != null) {
            producer.close(Duration.ofSeconds(2));
        }
        if (consumer != null) {
            consumer.close(Duration.ofSeconds(2));
        }
        producer = null;
        consumer = null;
    }
}
