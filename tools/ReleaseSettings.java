import java.util.Map;
import java.util.TreeMap;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/**
 * The settings and errors of one Apache Kafka release, by the classes of that release.
 *
 * Class path: kafka-server of the release, with what it depends on. Prints lines with tabs between their words:
 * `setting broker|topic|group KEY TYPE DEFAULT ALLOWED` and `error CODE NAME true|false`, whether a client may try again.
 */
public class ReleaseSettings {
    public static void main(String[] args) throws Exception {
        print("broker", (ConfigDef) of("server.config.AbstractKafkaConfig").getField("CONFIG_DEF").get(null));
        print("topic", (ConfigDef) of("storage.internals.log.LogConfig").getMethod("configDefCopy").invoke(null));
        print("group", (ConfigDef) of("coordinator.group.GroupConfig").getField("CONFIG_DEF").get(null));
        for (Errors error : Errors.values())
            line("error", error.code(), error.name(), error.exception() instanceof RetriableException);
    }

    private static Class<?> of(String name) throws ClassNotFoundException {
        return Class.forName("org.apache.kafka." + name);
    }

    private static void print(String kind, ConfigDef settings) {
        for (Map.Entry<String, ConfigDef.ConfigKey> each : new TreeMap<>(settings.configKeys()).entrySet()) {
            ConfigDef.ConfigKey key = each.getValue();
            String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : "(none: required)";
            line("setting", kind, each.getKey(), key.type, value, key.validator == null ? "" : key.validator);
        }
    }

    private static void line(Object... words) {
        StringBuilder text = new StringBuilder();
        for (Object word : words)
            text.append(text.length() == 0 ? "" : "\t").append(String.valueOf(word).replaceAll("[\\t\\r\\n]", " "));
        System.out.println(text);
    }
}
