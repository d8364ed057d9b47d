import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * What the broker of one Apache Kafka release answers to ApiVersions, by the classes of that release.
 *
 * Class path: kafka-clients, and since 3.3 kafka-server-common, of the release. Argument: "zk" or "broker", the listener.
 * Prints `apis {key=oldest-newest, ...}` and `feature NAME LOWEST HIGHEST DEFAULT`, a line each.
 */
public class ReleaseTable {
    public static void main(String[] args) throws Exception {
        Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        Map<Integer, String> rows = new TreeMap<>();
        for (Object api : apis(keys, args[0].equals("broker"))) {
            short oldest = (Short) keys.getMethod("oldestVersion").invoke(api);
            short newest = newest(keys, api);
            if (newest >= oldest)
                rows.put(((Number) keys.getField("id").get(api)).intValue(), oldest + "-" + newest);
        }
        System.out.println("apis " + rows);
        if (args[0].equals("broker"))
            features();
    }

    /** The APIs of a listener: no release tells them by the same method as all others. */
    private static Collection<?> apis(Class<?> keys, boolean kraft) throws Exception {
        try {
            Class<?> kinds = Class.forName("org.apache.kafka.common.message.ApiMessageType$ListenerType");
            for (Object kind : kinds.getEnumConstants())
                if (kind.toString().equals(kraft ? "BROKER" : "ZK_BROKER"))
                    return (Collection<?>) keys.getMethod("apisForListener", kinds).invoke(null, kind);
        } catch (ClassNotFoundException | NoSuchMethodException before28) {
            // 2.7 tells them without the raft APIs, and before there were no others than a broker's
        }
        try {
            return (Collection<?>) keys.getMethod("enabledApis").invoke(null);
        } catch (NoSuchMethodException before27) {
            return Arrays.asList(keys.getEnumConstants());
        }
    }

    private static short newest(Class<?> keys, Object api) throws Exception {
        try {
            return (Short) keys.getMethod("latestVersion", boolean.class).invoke(api, false);
        } catch (NoSuchMethodException before34) {
            return (Short) keys.getMethod("latestVersion").invoke(api);
        }
    }

    private static void features() throws Exception {
        Class<?> versions = Class.forName("org.apache.kafka.server.common.MetadataVersion");
        Object newest = constant(versions, "LATEST_PRODUCTION", "latestProduction", "latest");
        Object oldest = constant(versions, "MINIMUM_VERSION", "MINIMUM_KRAFT_VERSION");
        Method level = versions.getMethod("featureLevel");
        System.out.println("feature metadata.version " + level.invoke(oldest) + " " + level.invoke(newest) + " " + level.invoke(newest));
        Class<?> kinds;
        try {
            kinds = Class.forName("org.apache.kafka.server.common.Feature");
        } catch (ClassNotFoundException before40) {
            return; // 3.9 has Features, none of which a broker offers at a level above 0
        }
        for (Object kind : kinds.getEnumConstants()) {
            String name = (String) kinds.getMethod("featureName").invoke(kind);
            Object highest = kinds.getMethod("latestProduction").invoke(kind);
            if (!name.contains("test"))
                System.out.println("feature " + name + " 0 " + highest + " " + kinds.getMethod("defaultLevel", versions).invoke(kind, newest));
        }
    }

    private static Object constant(Class<?> of, String... names) throws Exception {
        for (String name : names) {
            try {
                return of.getField(name).get(null);
            } catch (NoSuchFieldException noField) {
                try {
                    return of.getMethod(name).invoke(null);
                } catch (NoSuchMethodException noMethod) {
                    // another release's
                }
            }
        }
        throw new IllegalStateException("none of " + Optional.of(Arrays.toString(names)).get());
    }
}
