package test.momus;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives each test that has a parameter {@link Cluster} one of its own, made as this says; on a method it wins over the class.
 * With the parameter in a constructor or a method of {@code @BeforeAll} the tests of the class share one. A test of Spring has
 * the cluster of its context, and {@code spring.kafka.bootstrap-servers} set to it.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
@ExtendWith(MomusExtension.class)
public @interface MomusCluster {
    /** Virtual brokers. */
    int brokers() default 1;

    /** Topics, each as "orders:6"; without a number it has one partition. */
    String[] topics() default {};

    /** Kafka's broker settings, or momus' own, each as "min.insync.replicas=2". */
    String[] config() default {};

    /** memory, os or fsync: what an acknowledged record survives. */
    String flush() default "memory";

    /** Ids repeat; -1: they do not. */
    long seed() default -1;

    /** The moment at which the clock stands, as 2030-01-01T00:00:00Z; none: it runs. */
    String at() default "";

    /** sasl_ssl, sasl_plaintext, ssl or mtls; none: no security. */
    String security() default "";

    /** Users, each as "alice:secret". */
    String[] users() default {};

    /** A file or a folder that fills it (docs/load.md), from the folder of the run or on the class path; none: nothing. */
    String load() default "";

    /** Bytes of the last requests that are kept; 0: none. */
    int journalBytes() default 4 << 20;
}
