package test.momus;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.test.context.ContextConfigurationAttributes;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.ContextCustomizerFactory;
import org.springframework.test.context.MergedContextConfiguration;
import org.springframework.test.context.TestContextAnnotationUtils;
import org.springframework.test.context.junit.jupiter.SpringExtension;

/**
 * Makes a cluster for each context of a test class with {@link MomusCluster}, names it in spring.kafka.bootstrap-servers, and
 * closes it with the context. Spring finds it by META-INF/spring.factories.
 */
public final class SpringContexts implements ContextCustomizerFactory {
    private static final String BEAN = "momusCluster";

    @Override
    public ContextCustomizer createContextCustomizer(Class<?> test, List<ContextConfigurationAttributes> attributes) {
        MomusCluster words = TestContextAnnotationUtils.findMergedAnnotation(test, MomusCluster.class);
        return words == null ? null : new OfCluster(words);
    }

    /** Contexts of tests with the same words are the same. */
    private record OfCluster(MomusCluster words) implements ContextCustomizer {
        @Override
        public void customizeContext(ConfigurableApplicationContext context, MergedContextConfiguration configuration) {
            Cluster cluster = Momus.ofRun().newCluster(MomusExtension.options(words));
            context.getEnvironment().getPropertySources().addFirst(
                new MapPropertySource("momus", Map.of("spring.kafka.bootstrap-servers", cluster.bootstrapServers())));
            context.getBeanFactory().registerSingleton(BEAN, cluster);
            context.addApplicationListener(event -> {
                if (event instanceof org.springframework.context.event.ContextClosedEvent closed && closed.getApplicationContext() == context)
                    MomusExtension.drop(cluster);
            });
        }
    }

    static Optional<Cluster> clusterOf(ExtensionContext context) {
        boolean isOfSpring = context.getTestClass().map(type -> org.junit.platform.commons.support.AnnotationSupport
            .findRepeatableAnnotations(type, org.junit.jupiter.api.extension.ExtendWith.class).stream()
            .flatMap(each -> java.util.Arrays.stream(each.value())).anyMatch(SpringExtension.class::equals)).orElse(false);
        if (!isOfSpring)
            return Optional.empty();
        var beans = SpringExtension.getApplicationContext(context);
        return beans.containsBean(BEAN) ? Optional.of(beans.getBean(BEAN, Cluster.class)) : Optional.empty();
    }
}
