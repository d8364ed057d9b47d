package test.momus;

import java.util.Optional;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Asks Spring's context of a test for its cluster, where Spring is there: the kit does not need it. */
final class SpringBridge {
    private static final boolean IS_THERE = isThere();

    private SpringBridge() {}

    private static boolean isThere() {
        try {
            Class.forName("org.springframework.test.context.junit.jupiter.SpringExtension");
            return true;
        } catch (ClassNotFoundException error) {
            return false;
        }
    }

    static Optional<Cluster> clusterOf(ExtensionContext context) {
        return IS_THERE ? SpringContexts.clusterOf(context) : Optional.empty();
    }
}
