package momus;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A momus process, or one that runs already: MOMUS_ADDRESS names its control endpoint, MOMUS_COMMAND how to start one
 * ("momus" if neither is set; "uvx --from PATH momus" works).
 */
public final class MomusBroker implements AutoCloseable {
    private static final Pattern SETTLED = Pattern.compile("\"settled\": *true");
    private static final Pattern PLACE = Pattern.compile("\"partition\": *(\\d+), *\"offset\": *(\\d+)");
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private final String control;
    private final Process process;
    private final Path dataDir;
    private final Set<Cluster> open = ConcurrentHashMap.newKeySet();

    MomusBroker(String control, Process process, Path dataDir) {
        this.control = control;
        this.process = process;
        this.dataDir = dataDir;
    }

    /** Starts a broker and waits until it serves, or takes the one of MOMUS_ADDRESS. */
    public static MomusBroker start() throws IOException {
        String running = System.getenv("MOMUS_ADDRESS");
        if (running != null && !running.isEmpty())
            return new MomusBroker(running, null, null);
        String told = System.getenv("MOMUS_COMMAND");
        List<String> command = new ArrayList<>(List.of((told == null || told.isEmpty() ? "momus" : told).trim().split("\\s+")));
        Path dataDir = Files.createTempDirectory("momus-");
        command.addAll(List.of("serve", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data-dir", dataDir.toString()));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream()));
        String ready = lines.readLine();
        String second = lines.readLine();
        if (ready == null || second == null || !second.startsWith("momus control ")) {
            new MomusBroker("", process, dataDir).close();
            throw new IOException("the broker did not start: " + String.join(" ", command));
        }
        return new MomusBroker(second.substring("momus control ".length()), process, dataDir);
    }

    /** Makes a cluster with its own ports, topics, groups and clock, in milliseconds. */
    public Cluster newCluster() throws IOException {
        String made = ask("POST", "/_admin/clusters", "{}");
        Cluster cluster = new Cluster(field(made, "name"), field(made, "bootstrap_servers"));
        open.add(cluster);
        return cluster;
    }

    /**
     * Closes the clusters that are open, ends a process that start() began, and removes its data.
     *
     * @throws AssertionError a fault of one of the clusters never acted.
     */
    @Override
    public void close() throws IOException {
        Throwable wrong = null;
        for (Cluster each : open)
            try {
                each.close();
            } catch (IOException | AssertionError error) {
                if (wrong == null)
                    wrong = error;
                else
                    wrong.addSuppressed(error);
            }
        end();
        if (wrong instanceof AssertionError unmet)
            throw unmet;
        if (wrong instanceof IOException failed)
            throw failed;
    }

    private void end() throws IOException {
        if (process == null || !Files.exists(dataDir))
            return;
        process.destroy();
        try {
            process.waitFor();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        try (Stream<Path> files = Files.walk(dataDir)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }

    private String ask(String method, String path, String body) throws IOException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://" + control + path))
            .method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body));
        String token = System.getenv("MOMUS_CONTROL_TOKEN");
        if (token != null && !token.isEmpty())
            request.header("Authorization", "Bearer " + token);
        try {
            HttpResponse<String> reply = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (reply.statusCode() >= 300)
                throw new IOException(method + " " + path + ": " + reply.statusCode() + " " + reply.body());
            return reply.body();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IOException(interrupted);
        }
    }

    /** A text field of a flat JSON object that momus wrote. */
    private static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\": *\"([^\"]*)\"").matcher(json);
        if (!found.find())
            throw new IllegalStateException("no " + name + " in " + json);
        return found.group(1);
    }

    /**
     * A record to produce. A key is a text, bytes or null; a value may also be a map or a list, which becomes JSON.
     *
     * @param partition null: where Java's producer sends the key; without a key, each partition in turn, from 0 on.
     */
    public record Message(Object key, Object value, Integer partition) {
        /** A record without a key. */
        public static Message of(Object value) {
            return new Message(null, value, null);
        }

        /** A record with a key. */
        public static Message of(Object key, Object value) {
            return new Message(key, value, null);
        }

        private String json() {
            String partitioned = partition == null ? "" : ", \"partition\": " + partition;
            String text = value instanceof Map || value instanceof List ? Json.of(Json.of(value)) : Json.ofBytes(value);
            return "{\"key\": " + Json.ofBytes(key) + ", \"value\": " + text + partitioned + "}";
        }
    }

    /** Where a record is. */
    public record Place(int partition, long offset) {}

    /** One cluster of the process. */
    public final class Cluster implements AutoCloseable {
        private final String path;
        private final String bootstrapServers;

        private Cluster(String name, String bootstrapServers) {
            this.path = "/_admin/clusters/" + name;
            this.bootstrapServers = bootstrapServers;
        }

        /** What clients take as bootstrap.servers. */
        public String bootstrapServers() {
            return bootstrapServers;
        }

        /** Makes a topic. */
        public void createTopic(String name, int partitions) throws IOException {
            ask("POST", path + "/topics", "{\"name\": \"" + name + "\", \"partitions\": " + partitions + "}");
        }

        /** Appends records to a topic, which is made if it is not there. Returns where each of them is. */
        public List<Place> produce(String topic, Message... records) throws IOException {
            String rows = Stream.of(records).map(Message::json).collect(Collectors.joining(", "));
            String name = URLEncoder.encode(topic, StandardCharsets.UTF_8).replace("+", "%20");
            String answer = ask("POST", path + "/topics/" + name + "/records", "{\"records\": [" + rows + "]}");
            return PLACE.matcher(answer).results()
                .map(each -> new Place(Integer.parseInt(each.group(1)), Long.parseLong(each.group(2))))
                .toList();
        }

        /** Appends records without keys. */
        public List<Place> produce(String topic, String... values) throws IOException {
            return produce(topic, Stream.of(values).map(Message::of).toArray(Message[]::new));
        }

        /**
         * Lets time pass: sessions, transactions and retention expire as they would.
         *
         * @throws IOException also if not all that became due was done in time; the clock has moved then.
         */
        public void advanceClock(Duration by) throws IOException {
            String answer = ask("POST", path + "/clock", "{\"advance_ms\": " + by.toMillis() + "}");
            if (!SETTLED.matcher(answer).find())
                throw new IOException("the clock has moved, but not all that became due was done in time");
        }

        /** Lets something go wrong, as docs/faults.md tells: {"fault": "inject_error", "api": ..., "error": ...}. */
        public void addFault(String json) throws IOException {
            ask("POST", path + "/faults", json);
        }

        /** Removes all faults, also those that never acted; what they keep goes on. */
        public void clearFaults() throws IOException {
            ask("DELETE", path + "/faults", null);
        }

        /**
         * Asks whether all faults that are set have acted. What a test meant to happen did not, where one has not.
         *
         * @throws AssertionError names those that never acted.
         */
        public void verify() throws IOException {
            String idle = ask("GET", path + "/faults?unmet=true", null);
            if (!idle.strip().equals("[]"))
                throw new AssertionError("faults that never acted; calls are the requests that matched one: " + idle.strip());
        }

        /** Drops topics, groups and records, and disconnects clients. */
        public void reset() throws IOException {
            ask("POST", path + "/reset", null);
        }

        /**
         * Removes the cluster; its clients are disconnected. A second call does nothing.
         *
         * @throws AssertionError a fault never acted; the cluster is removed.
         */
        @Override
        public void close() throws IOException {
            if (!open.remove(this))
                return;
            try {
                verify();
            } finally {
                ask("DELETE", path, null);
            }
        }
    }
}
