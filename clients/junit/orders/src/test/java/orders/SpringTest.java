package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import test.momus.Cluster;
import test.momus.MomusCluster;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.test.context.junit.jupiter.SpringJUnitConfig;

/** A test of Spring: spring.kafka.bootstrap-servers is that of the cluster of its context. */
@SpringJUnitConfig
@MomusCluster(topics = "orders")
class SpringTest {
    @Configuration
    @EnableKafka
    static class Service {
        final BlockingQueue<String> read = new LinkedBlockingQueue<>();

        @Bean
        ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory(@Value("${spring.kafka.bootstrap-servers}") String servers) {
            var factory = new ConcurrentKafkaListenerContainerFactory<String, String>();
            factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(Map.of("bootstrap.servers", servers, "auto.offset.reset", "earliest"),
                new StringDeserializer(), new StringDeserializer()));
            return factory;
        }

        @KafkaListener(id = "billing", topics = "orders")
        void listen(String order) {
            read.add(order);
        }
    }

    @Test
    void listenerReadsOfTheClusterOfItsContext(Cluster cluster, @org.springframework.beans.factory.annotation.Autowired Service service)
        throws InterruptedException {
        cluster.produce("orders", "one coffee");
        assertEquals("one coffee", service.read.poll(60, TimeUnit.SECONDS));
        cluster.waitForCommitted("billing", "orders", Map.of(0, 1L), java.time.Duration.ofMinutes(1));
    }
}
