package momus;

import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * {@code @ExtendWith(MomusExtension.class)}: a test with a parameter of type MomusBroker.Cluster gets a cluster of its own, and
 * fails if a fault of it never acted. With such a parameter in the constructor or in a method of {@code @BeforeAll} the class has
 * one cluster, which its tests share. All tests of a run share one process, which ends with the run.
 */
public final class MomusExtension implements ParameterResolver {
    private static final ExtensionContext.Namespace NAMESPACE = ExtensionContext.Namespace.create(MomusExtension.class);

    /** The process; JUnit closes it when the run ends. */
    private static final class Shared implements ExtensionContext.Store.CloseableResource {
        private final MomusBroker broker;

        private Shared() {
            try {
                broker = MomusBroker.start();
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }

        @Override
        public void close() throws Throwable {
            broker.close();
        }
    }

    /** The cluster of a test or a class; JUnit closes it at the end of that, and an error then fails it. */
    private record Kept(MomusBroker.Cluster cluster) implements ExtensionContext.Store.CloseableResource {
        @Override
        public void close() throws Throwable {
            cluster.close();
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == MomusBroker.Cluster.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Shared shared = context.getRoot().getStore(NAMESPACE).getOrComputeIfAbsent(Shared.class, key -> new Shared(), Shared.class);
        return context.getStore(NAMESPACE).getOrComputeIfAbsent(Kept.class, key -> {
            try {
                return new Kept(shared.broker.newCluster());
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }, Kept.class).cluster();
    }
}
