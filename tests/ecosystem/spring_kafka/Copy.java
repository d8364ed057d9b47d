import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.kafka.transaction.KafkaTransactionManager;

/** A listener that copies "in" to "out", each record in a transaction with its offset; every 50th is rolled back twice. */
@Configuration
@EnableKafka
public class Copy {
    private static final int ROLLED_BACK = 2;
    private static String bootstrap;

    private final Map<String, Integer> failures = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws InterruptedException {
        bootstrap = arguments[0];
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Copy.class);
        context.registerShutdownHook();
        System.out.println("listening");
        Thread.currentThread().join();
    }

    @Bean
    ProducerFactory<String, String> producers() {
        DefaultKafkaProducerFactory<String, String> producers = new DefaultKafkaProducerFactory<>(
                Map.of("bootstrap.servers", bootstrap, "transaction.timeout.ms", 5000),
                new StringSerializer(), new StringSerializer());
        producers.setTransactionIdPrefix("copy-");
        return producers;
    }

    @Bean
    ConsumerFactory<String, String> consumers() {
        return new DefaultKafkaConsumerFactory<>(
                Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest",
                        "session.timeout.ms", 6000, "isolation.level", "read_committed"),
                new StringDeserializer(), new StringDeserializer());
    }

    @Bean
    KafkaTemplate<String, String> template(ProducerFactory<String, String> producers) {
        return new KafkaTemplate<>(producers);
    }

    @Bean
    KafkaTransactionManager<String, String> transactions(ProducerFactory<String, String> producers) {
        return new KafkaTransactionManager<>(producers);
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory(
            ConsumerFactory<String, String> consumers, KafkaTransactionManager<String, String> transactions) {
        ConcurrentKafkaListenerContainerFactory<String, String> containers =
                new ConcurrentKafkaListenerContainerFactory<>();
        containers.setConsumerFactory(consumers);
        containers.setConcurrency(2);
        containers.getContainerProperties().setKafkaAwareTransactionManager(transactions);
        return containers;
    }

    @Bean
    Listener listener(KafkaTemplate<String, String> template) {
        return new Listener(template, failures);
    }

    public static class Listener {
        private final KafkaTemplate<String, String> template;
        private final Map<String, Integer> failures;

        Listener(KafkaTemplate<String, String> template, Map<String, Integer> failures) {
            this.template = template;
            this.failures = failures;
        }

        @KafkaListener(id = "copy", topics = "in")
        public void copy(ConsumerRecord<String, String> record) {
            String value = record.value();
            template.send("out", record.partition(), null, value.toUpperCase());
            boolean fails = Integer.parseInt(value.split(" ")[1]) % 50 == 49;
            if (fails && failures.merge(value, 1, Integer::sum) <= ROLLED_BACK) {
                template.flush(); // so that the record is in the log that the rollback leaves
                throw new IllegalStateException("rolled back: " + value);
            }
        }
    }
}
