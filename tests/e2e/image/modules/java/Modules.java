// Testcontainers' containers for Kafka, each started with the image that the first word names, and a round trip.
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.kafka.ConfluentKafkaContainer;
import org.testcontainers.kafka.KafkaContainer;
import org.testcontainers.utility.DockerImageName;

public class Modules {
    static final String LOGIN =
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"alice\" password=\"pencil\"";

    public static void main(String[] words) throws Exception {
        DockerImageName image = DockerImageName.parse(words[0]);
        DockerImageName apache = image.asCompatibleSubstituteFor("apache/kafka");
        DockerImageName confluent = image.asCompatibleSubstituteFor("confluentinc/cp-kafka");
        try (var kafka = new KafkaContainer(apache)) {
            kafka.start();
            roundTrip("KafkaContainer", kafka.getBootstrapServers(), Map.of());
        }
        try (var kafka = new ConfluentKafkaContainer(confluent)) {
            kafka.start();
            roundTrip("ConfluentKafkaContainer", kafka.getBootstrapServers(), Map.of());
        }
        try (var kafka = new org.testcontainers.containers.KafkaContainer(confluent)) {
            kafka.start();
            roundTrip("KafkaContainer with ZooKeeper", kafka.getBootstrapServers(), Map.of());
        }
        try (var kafka = withLogin(new ConfluentKafkaContainer(confluent))) {
            kafka.start();
            roundTrip("ConfluentKafkaContainer with SASL", kafka.getBootstrapServers(), login());
        }
        try (var kafka = withLogin(new KafkaContainer(apache))) {
            kafka.start();
            roundTrip("KafkaContainer with SASL", kafka.getBootstrapServers(), login());
        }
    }

    // The modules have no method for SASL; this is how their own tests ask for it.
    static <C extends GenericContainer<C>> C withLogin(C kafka) {
        return kafka.withEnv(
                        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
                        "BROKER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT")
                .withEnv("KAFKA_LISTENER_NAME_PLAINTEXT_SASL_ENABLED_MECHANISMS", "PLAIN")
                .withEnv("KAFKA_LISTENER_NAME_PLAINTEXT_PLAIN_SASL_JAAS_CONFIG", LOGIN + " user_alice=\"pencil\";");
    }

    static Map<String, String> login() {
        return Map.of("security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN", "sasl.jaas.config", LOGIN + ";");
    }

    public static void roundTrip(String name, String servers, Map<String, String> security) throws Exception {
        Properties settings = new Properties();
        settings.putAll(security);
        settings.putAll(Map.of("bootstrap.servers", servers, "group.id", "g", "auto.offset.reset", "earliest"));
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
                var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            producer.send(new ProducerRecord<>("t", "one")).get();
            consumer.subscribe(List.of("t"));
            var records = consumer.poll(Duration.ofSeconds(1));
            while (records.isEmpty()) records = consumer.poll(Duration.ofSeconds(1));
            System.out.println(name + ": " + records.iterator().next().value());
        }
    }
}
