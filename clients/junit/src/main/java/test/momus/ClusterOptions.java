package test.momus;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What a cluster begins with: {@code ClusterOptions.none().brokers(3).topic("orders", 6)}. The defaults are one broker, in
 * memory, the machine's time, no security, and a journal of 4 MB.
 */
public final class ClusterOptions {
    private final Map<String, Object> body = new LinkedHashMap<>(Map.of("journal_bytes", 4 << 20));
    private final Map<String, String> config = new LinkedHashMap<>();
    private final Map<String, String> users = new LinkedHashMap<>();
    final Map<String, Integer> topics = new LinkedHashMap<>();
    Object load;

    private ClusterOptions() {}

    /** The defaults. */
    public static ClusterOptions none() {
        return new ClusterOptions();
    }

    private ClusterOptions with(String name, Object value) {
        body.put(name, value);
        return this;
    }

    /** Its name; one is made up otherwise. */
    public ClusterOptions name(String name) {
        return with("name", name);
    }

    /** Virtual brokers. */
    public ClusterOptions brokers(int number) {
        return with("brokers", number);
    }

    /** One of Kafka's own broker settings, or of momus', as as.version. */
    public ClusterOptions config(String name, Object value) {
        config.put(name, String.valueOf(value));
        return with("config", config);
    }

    /** A topic. */
    public ClusterOptions topic(String name, int partitions) {
        topics.put(name, partitions);
        return this;
    }

    /** memory, os or fsync: what an acknowledged record survives. */
    public ClusterOptions flush(String level) {
        return with("flush", level);
    }

    /** Ids repeat. */
    public ClusterOptions seed(long seed) {
        return with("seed", seed);
    }

    /** The moment, in Unix milliseconds, at which its clock stands. */
    public ClusterOptions atMs(long atMs) {
        return with("clock_ms", atMs);
    }

    /** sasl_ssl, sasl_plaintext, ssl or mtls. */
    public ClusterOptions security(String word) {
        return with("security", word);
    }

    /** A user of a cluster with security. */
    public ClusterOptions user(String name, String password) {
        users.put(name, password);
        return with("users", users);
    }

    /** Bytes of the last requests that are kept; 0: none. */
    public ClusterOptions journalBytes(int bytes) {
        return with("journal_bytes", bytes);
    }

    /** Where it listens; 127.0.0.1 and a free port otherwise. */
    public ClusterOptions listen(String address) {
        return with("listen", address);
    }

    /** What it is filled with, as docs/load.md tells: maps and lists, or the {@link java.nio.file.Path} of a file or a folder. */
    public ClusterOptions load(Object document) {
        load = document;
        return this;
    }

    Map<String, Object> body() {
        return body;
    }
}
