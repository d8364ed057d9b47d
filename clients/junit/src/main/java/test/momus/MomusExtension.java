package test.momus;

import java.io.IOException;
import java.time.Instant;
import java.util.Optional;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * Makes a cluster for each test that has a parameter for it, in one process of the run. When the test is over, a fault that
 * never acted and an expectation that is not met fail it; the report of a failed test has the last requests.
 */
public final class MomusExtension implements ParameterResolver, AfterEachCallback, AfterAllCallback {
    private static final ExtensionContext.Namespace SPACE = ExtensionContext.Namespace.create(MomusExtension.class);
    private static final int TOLD = 20;

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == Cluster.class || type == Momus.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        if (parameter.getParameter().getType() == Momus.class)
            return Momus.ofRun();
        ExtensionContext.Store store = context.getStore(SPACE);
        Cluster found = store.get(Cluster.class, Cluster.class);
        if (found == null) {
            Optional<Cluster> ofSpring = SpringBridge.clusterOf(context);
            found = ofSpring.orElseGet(() -> made(context));
            store.put(Cluster.class, found);
            if (ofSpring.isEmpty())
                store.put(Ends.class, new Ends());
        }
        return found;
    }

    /** Marks that the extension has made the cluster of a store, and is to close it. */
    private static final class Ends {}

    private static Cluster made(ExtensionContext context) {
        Optional<MomusCluster> words = context.getTestMethod().flatMap(method -> AnnotationSupport.findAnnotation(method, MomusCluster.class))
            .or(() -> context.getTestClass().flatMap(MomusExtension::ofClass));
        ClusterOptions options = words.map(MomusExtension::options).orElseGet(ClusterOptions::none);
        Cluster made = Control.forTest(nameOf(context), () -> Momus.ofRun().newCluster(options));
        if (keepsFailed() != null)
            made.record();
        return made;
    }

    /** A test as reports name it, or the class whose tests share a cluster. */
    private static String nameOf(ExtensionContext context) {
        String type = context.getTestClass().map(Class::getSimpleName).orElse("");
        return context.getTestMethod().map(method -> {
            boolean isOne = context.getDisplayName().startsWith(method.getName() + "(");
            return type + "." + method.getName() + (isOne ? "" : " " + context.getDisplayName());
        }).orElse(type);
    }

    /** That of a test class, or of one around it. */
    private static Optional<MomusCluster> ofClass(Class<?> type) {
        Optional<MomusCluster> found = AnnotationSupport.findAnnotation(type, MomusCluster.class);
        return found.isPresent() || type.getEnclosingClass() == null ? found : ofClass(type.getEnclosingClass());
    }

    private static String keepsFailed() {
        String folder = System.getenv("MOMUS_KEEP_FAILED");
        return folder == null || folder.isEmpty() ? System.getProperty("momus.keepFailed") : folder;
    }

    static ClusterOptions options(MomusCluster words) {
        ClusterOptions options = ClusterOptions.none().brokers(words.brokers()).flush(words.flush()).journalBytes(words.journalBytes());
        for (String each : words.topics()) {
            String[] parts = each.split(":", 2);
            options.topic(parts[0], parts.length == 1 ? 1 : Integer.parseInt(parts[1]));
        }
        for (String each : words.config()) {
            String[] parts = each.split("=", 2);
            if (parts.length == 1)
                throw new IllegalArgumentException("@MomusCluster(config): \"" + each + "\" is not NAME=VALUE");
            options.config(parts[0], parts[1]);
        }
        if (!words.load().isEmpty())
            options.load(LoadFiles.named(words.load(), Thread.currentThread().getContextClassLoader()));
        for (String each : words.users()) {
            String[] parts = each.split(":", 2);
            options.user(parts[0], parts.length == 1 ? "" : parts[1]);
        }
        if (words.seed() >= 0)
            options.seed(words.seed());
        if (!words.at().isEmpty())
            options.atMs(Instant.parse(words.at()).toEpochMilli());
        if (!words.security().isEmpty())
            options.security(words.security());
        return options;
    }

    @Override
    public void afterEach(ExtensionContext context) {
        end(context);
    }

    @Override
    public void afterAll(ExtensionContext context) {
        end(context);
    }

    private static void end(ExtensionContext context) {
        ExtensionContext.Store store = context.getStore(SPACE);
        Cluster cluster = store.get(Cluster.class, Cluster.class);
        if (cluster == null)
            return;
        // A test sees the cluster of its class, which is verified for it, and ended by the class.
        boolean isOwn = store.remove(Cluster.class) != null;
        boolean ends = isOwn && store.remove(Ends.class) != null;
        Throwable failure = context.getExecutionException().orElse(null);
        AssertionError unmet = null;
        try {
            cluster.verify();
        } catch (AssertionError error) {
            unmet = error;
        }
        Throwable wrong = failure != null ? failure : unmet;
        if (wrong != null) {
            cluster.hasFailed = true;
            tell(context, cluster, wrong);
        }
        if (ends)
            Control.afterTest(cluster.hasFailed, () -> drop(cluster));
        else if (unmet != null)
            cluster.faults().clear(); // told once
        if (unmet != null && failure == null)
            throw unmet;
        if (unmet != null)
            failure.addSuppressed(unmet);
    }

    static void drop(Cluster cluster) {
        try {
            cluster.close();
        } catch (AssertionError error) {
            return; // it has been told
        }
    }

    private static void tell(ExtensionContext context, Cluster cluster, Throwable wrong) {
        String test = context.getTestClass().map(Class::getName).orElse("") + "." + context.getDisplayName();
        String lines = String.join("\n", cluster.journal().last(TOLD));
        if (!lines.isEmpty())
            wrong.addSuppressed(new LastRequests("the last requests of momus cluster " + cluster.name() + ":\n" + lines));
        String folder = keepsFailed();
        if (folder == null)
            return;
        try {
            wrong.addSuppressed(new LastRequests("the run is kept: momus replay " + cluster.keep(folder, test)));
        } catch (IOException | MomusException error) {
            wrong.addSuppressed(new LastRequests("the run is not kept: " + error.getMessage()));
        }
    }

    /** What the report of a failed test has beside its failure. */
    static final class LastRequests extends RuntimeException {
        private static final long serialVersionUID = 1;

        LastRequests(String message) {
            super(message, null, false, false);
        }
    }
}
