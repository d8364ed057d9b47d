package test.momus;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * One cluster of a momus. A call that is refused is a {@link MomusException}; a wait that is over an AssertionError.
 */
public final class Cluster implements AutoCloseable, Side {
    private static final int MOST_RECORDS = 10_000; // of one answer
    private static final Duration LONGEST = Duration.ofSeconds(20); // of one wait; longer ones ask again

    final Momus momus;
    final String path;
    private final String name;
    private String bootstrapServers;
    private final List<Cluster> forks = new ArrayList<>();
    private final ClientFiles files = new ClientFiles();
    private boolean isOpen = true;
    volatile boolean hasFailed; // a test that it was made for

    Cluster(Momus momus, JsonNode described) {
        this.momus = momus;
        name = described.path("name").asText();
        path = "/_admin/clusters" + Control.part(name);
        bootstrapServers = described.path("bootstrap_servers").asText();
    }

    static Cluster made(Momus momus, JsonNode described, ClusterOptions options) {
        Cluster made = new Cluster(momus, described);
        try {
            if (!options.topics.isEmpty())
                made.createTopics(options.topics);
            if (options.load != null)
                made.load(options.load, "fail");
            return made;
        } catch (RuntimeException error) {
            made.ask("DELETE", "", null);
            throw error;
        }
    }

    JsonNode ask(String method, String suffix, Object body) {
        return momus.control.ask(method, path + suffix, body);
    }

    /** Its name in the process. */
    public String name() {
        return name;
    }

    /** What clients take as one text: HOST:PORT,HOST:PORT. */
    public String bootstrapServers() {
        return bootstrapServers;
    }

    /** What clients take as a list, a HOST:PORT for each broker. */
    public List<String> addresses() {
        return List.of(bootstrapServers.split(","));
    }

    /** What is to go wrong. */
    public Faults faults() {
        return new Faults(this);
    }

    /** Its last requests. */
    public Journal journal() {
        return new Journal(this);
    }

    /** Its clock. */
    public Clock clock() {
        return new Clock(this);
    }

    /** Its virtual brokers. */
    public Brokers brokers() {
        return new Brokers(this);
    }

    /** Its users, ACLs and certificates. */
    public Security security() {
        return new Security(this);
    }

    // ---- topics and records

    /** Makes a topic. */
    public void createTopic(String topic, int partitions) {
        createTopic(topic, partitions, -1, Map.of());
    }

    /** Makes a topic; replicas -1: as the setting says. */
    public void createTopic(String topic, int partitions, int replicas, Map<String, String> config) {
        ask("POST", "/topics", Map.of("name", topic, "partitions", partitions, "replicas", replicas, "config", config));
    }

    /** Makes topics, name to partitions (-1: as the setting says): all of them or none. */
    public void createTopics(Map<String, Integer> topics) {
        ask("POST", "/create-topics", Map.of("topics", topics));
    }

    /**
     * Fills it with what a document says (docs/load.md): maps and lists, or a {@link Path} of a file or a folder of files, as
     * YAML, JSON or TOML, with what they name beside them. {@code ifPresent}: fail, or skip. Returns what was loaded.
     */
    public Map<String, Integer> load(Object load, String ifPresent) {
        JsonNode answer = load instanceof Path path ? LoadFiles.sent(this, path, ifPresent)
            : ask("POST", "/load", Map.of("document", load, "if_present", ifPresent));
        Map<String, Integer> loaded = new HashMap<>();
        answer.path("loaded").fields().forEachRemaining(each -> loaded.put(each.getKey(), each.getValue().asInt()));
        return loaded;
    }

    /** Appends records to a topic, which is made if it is not there. Returns where each of them is. */
    public List<Place> produce(String topic, Message... records) {
        List<Map<String, Object>> rows = Stream.of(records).map(Message::row).toList();
        List<Place> places = new ArrayList<>();
        ask("POST", "/topics" + Control.part(topic) + "/records", Map.of("records", rows))
            .forEach(each -> places.add(Control.JSON.convertValue(each, Place.class)));
        return places;
    }

    /** Appends records without keys. */
    public List<Place> produce(String topic, String... values) {
        return produce(topic, Stream.of(values).map(Message::of).toArray(Message[]::new));
    }

    /** Reads all records of a topic, once there are at least so many. If none are waited for, the topic must be there. */
    public List<Received> consume(String topic, int least) {
        return consume(topic, least, Reading.all());
    }

    /** Reads records of a topic, and waits for at least so many. */
    public List<Received> consume(String topic, int least, Reading reading) {
        Map<String, Object> body = new HashMap<>(reading.body);
        List<Received> found = new ArrayList<>();
        long endNs = System.nanoTime() + reading.within.toNanos();
        for (boolean more = true; more;) {
            long leftMs = Math.max(0, (endNs - System.nanoTime()) / 1_000_000);
            body.put("least", Math.max(0, Math.min(least - found.size(), MOST_RECORDS)));
            body.put("timeout_ms", Math.min(leftMs, LONGEST.toMillis()));
            JsonNode answer = ask("POST", "/topics" + Control.part(topic) + "/consume?check=false", body);
            answer.path("records").forEach(each -> found.add(received(topic, each)));
            more = answer.path("more").asBoolean();
            body.put("offsets", answer.path("offsets"));
            body.put("source", answer.path("source"));
            if (!answer.path("met").asBoolean()) {
                more = System.nanoTime() < endNs;
                if (!more)
                    throw new AssertionError(topic + " has " + found.size() + " records after " + reading.within + ", not " + least);
            }
        }
        return found;
    }

    private static Received received(String topic, JsonNode row) {
        List<Received.Header> headers = new ArrayList<>();
        row.path("headers").forEach(each -> headers.add(new Received.Header(each.path(0).asText(), bytes(each.path(1)))));
        return new Received(topic, row.path("partition").asInt(), row.path("offset").asLong(), row.path("timestamp_ms").asLong(),
            bytes(row.path("key")), bytes(row.path("value")), headers);
    }

    private static byte[] bytes(JsonNode value) {
        if (value.isNull() || value.isMissingNode())
            return null;
        return value.isTextual() ? value.asText().getBytes(java.nio.charset.StandardCharsets.UTF_8)
            : Base64.getDecoder().decode(value.path("base64").asText());
    }

    // ---- groups

    /** Topic, then partition, then the offset that a group has committed. */
    public Map<String, Map<Integer, Long>> committed(String group) {
        Map<String, Map<Integer, Long>> found = new LinkedHashMap<>();
        ask("GET", "/groups" + Control.part(group) + "/offsets", null).forEach(each -> found
            .computeIfAbsent(each.path("topic").asText(), topic -> new LinkedHashMap<>())
            .put(each.path("partition").asInt(), each.path("offset").asLong()));
        return found;
    }

    /** A group's state and the ids of its members; Dead where there is none. */
    public record Group(String group, String state, String type, List<String> members) {}

    /** Shows a group. */
    public Group group(String group) {
        return momus.control.ask("GET", path + "/groups" + Control.part(group), null, Group.class);
    }

    /** Waits until a group has a state (stable, empty, dead, ...) and so many members (-1: any). Returns their ids. */
    public List<String> waitForGroup(String group, String state, int members, Duration within) {
        Map<String, Object> body = new HashMap<>(Map.of("state", state));
        if (members >= 0)
            body.put("members", members);
        JsonNode answer = await("/groups" + Control.part(group) + "/wait", body, within);
        return Control.JSON.convertValue(answer, Group.class).members();
    }

    /** Waits until a group has committed these offsets of a topic, partition to offset, or later ones. */
    public void waitForCommitted(String group, String topic, Map<Integer, Long> offsets, Duration within) {
        List<Map<String, Object>> rows = offsets.entrySet().stream()
            .map(each -> Map.<String, Object>of("topic", topic, "partition", each.getKey(), "offset", each.getValue())).toList();
        await("/groups" + Control.part(group) + "/wait-for-offsets", new HashMap<>(Map.of("offsets", rows)), within);
    }

    /** Waits until a group is at most so many records after the ends of its partitions. */
    public void waitForLag(String group, int lag, Duration within) {
        waitForLag(group, lag, null, within);
    }

    /** Waits until a group is at most so many records after the ends of its partitions of a topic. */
    public void waitForLag(String group, int lag, String topic, Duration within) {
        Map<String, Object> body = new HashMap<>(Map.of("lag", lag));
        if (topic != null)
            body.put("topic", topic);
        await("/groups" + Control.part(group) + "/wait-for-lag", body, within);
    }

    /** Lets the members of a classic group join again; others get the next epoch. Returns their ids. */
    public List<String> rebalance(String group) {
        List<String> members = new ArrayList<>();
        ask("POST", "/groups" + Control.part(group) + "/rebalance", null).path("members").forEach(each -> members.add(each.asText()));
        return members;
    }

    /** Removes a member, by its id or instance id: its next request meets UNKNOWN_MEMBER_ID. */
    public void expelMember(String group, String member) {
        ask("POST", "/groups" + Control.part(group) + "/expel", Map.of("member", member));
    }

    /** Deletes a group without members, with its offsets. */
    public void deleteGroup(String group) {
        ask("DELETE", "/groups" + Control.part(group), null);
    }

    /** Asks until what is waited for is there. Errors: AssertionError: it is not in time. */
    JsonNode await(String suffix, Map<String, Object> body, Duration within) {
        long endNs = System.nanoTime() + within.toNanos();
        while (true) {
            long leftMs = Math.max(0, (endNs - System.nanoTime()) / 1_000_000);
            body.put("timeout_ms", Math.min(leftMs, LONGEST.toMillis()));
            JsonNode answer = ask("POST", suffix + "?check=false", body);
            if (answer.path("met").asBoolean())
                return answer;
            if (System.nanoTime() >= endNs)
                throw new AssertionError(answer.path("why").asText() + ", after " + within);
        }
    }

    // ---- state

    /** Drops all data, connections, faults and moves of the clock; ports, settings and expectations stay. */
    public void reset() {
        beginAnew("/reset", Map.of());
    }

    void beginAnew(String suffix, Map<String, ?> body) {
        bootstrapServers = ask("POST", suffix, body).path("bootstrap_servers").asText(bootstrapServers);
    }

    /** Keeps the cluster as it is. */
    public Snapshot snapshot() {
        return new Snapshot(this, ask("POST", "/snapshots", Map.of()).path("name").asText());
    }

    /** Keeps the cluster as it is, under a name. */
    public Snapshot snapshot(String snapshot) {
        return new Snapshot(this, ask("POST", "/snapshots", Map.of("name", snapshot)).path("name").asText());
    }

    /** Its snapshots, oldest first. */
    public List<Snapshot> snapshots() {
        List<Snapshot> found = new ArrayList<>();
        ask("GET", "/snapshots", null).forEach(each -> found.add(new Snapshot(this, each.path("name").asText())));
        return found;
    }

    /** Another cluster that goes on from this one as it is now. It is verified and removed with this one, or by close. */
    public Cluster fork() {
        return fork(Map.of());
    }

    Cluster fork(Map<String, ?> body) {
        Cluster fork = new Cluster(momus, Control.forCaller(() -> ask("POST", "/fork", body)));
        synchronized (forks) {
            forks.add(fork);
        }
        return fork;
    }

    @Override
    public Map<String, String> side() {
        return Map.of("cluster", name);
    }

    /** How many clients are connected. */
    public int connections() {
        return ask("GET", "", null).path("connections").asInt();
    }

    /** Its metrics, as Prometheus reads them. */
    public String metrics() {
        return momus.control.text("GET", path + "/metrics", null);
    }

    /** The URL of its schema registry, which is served from the first time that it is asked for. */
    public String registryUrl() {
        return ask("POST", "/registry", Map.of()).path("url").asText();
    }

    /** Whether its schema registry is served. */
    public boolean hasRegistry() {
        return ask("GET", "/registry", null).has("url");
    }

    /** The settings by which a client (java, confluent, ...) connects; files that they name go with the cluster. */
    public Map<String, Object> clientSettings(String client) {
        return clientSettings(client, null);
    }

    /** As a user, in a cluster with security. */
    public Map<String, Object> clientSettings(String client, String user) {
        JsonNode answer = ask("GET", "/security?client=" + Control.query(client) + (user == null ? "" : "&user=" + Control.query(user)), null);
        return files.settings(answer);
    }

    // ---- its run, and its end

    /** Begins again with the data that is there, and records whatever happens from then on. */
    public void record() {
        ask("POST", "/recording", Map.of());
    }

    /** What was recorded so far: a file for {@code momus replay} and {@code momus open}. */
    public byte[] recording() {
        return Base64.getDecoder().decode(ask("GET", "/recording", null).path("zip").asText());
    }

    /** Stops, and drops what was recorded. */
    public void endRecording() {
        ask("DELETE", "/recording", null);
    }

    /** What a test must fail for: a sentence for each fault that never acted and each expectation that is not met. */
    public List<String> unmet() {
        List<String> found = new ArrayList<>();
        ask("GET", "/verify", null).path("unmet").forEach(each -> found.add(each.asText()));
        synchronized (forks) {
            forks.stream().filter(each -> each.isOpen).forEach(each -> found.addAll(each.unmet()));
        }
        return found;
    }

    /** Errors: AssertionError: a fault never acted, or an expectation is not met. */
    public void verify() {
        List<String> wrong = unmet();
        if (!wrong.isEmpty())
            throw new AssertionError(String.join("\n", wrong));
    }

    /** Keeps its recording in a folder, as the run of a test. Returns the file. */
    Path keep(String folder, String test) throws IOException {
        Path file = Path.of(folder, test.replaceAll("[^\\w.-]+", "_") + "-" + name + ".momus");
        Files.createDirectories(file.getParent());
        return Files.write(file, recording());
    }

    /**
     * Verifies and removes the cluster and its forks; clients are disconnected. A second call does nothing.
     *
     * @throws AssertionError a fault never acted, or an expectation is not met; the cluster is removed.
     */
    @Override
    public void close() {
        if (!isOpen)
            return;
        isOpen = false;
        try {
            verify();
        } finally {
            synchronized (forks) {
                forks.stream().filter(each -> each.isOpen).forEach(Cluster::drop);
            }
            drop();
        }
    }

    private void drop() {
        isOpen = false;
        files.remove();
        ask("DELETE", "", null);
    }
}
