package test.momus;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * A momus with any number of clusters. The first use of {@link #ofRun()} starts one for the run of the tests; it ends with
 * this JVM, however that ends.
 */
public final class Momus implements AutoCloseable {
    /** That of this kit, and of the momus that it is made for. */
    public static final String VERSION = "0.1.0";
    private static final int API = 1; // the number of the control plane's words that this kit knows
    private static Momus ofRun;

    final Control control;
    private final Process process; // null: another's
    private final Path log;

    private Momus(Control control, Process process, Path log) {
        this.control = control;
        this.process = process;
        this.log = log;
    }

    /** That of the run, which is started by the first call; MOMUS_ADDRESS names the control endpoint of another. */
    public static synchronized Momus ofRun() {
        if (ofRun == null || !ofRun.isUp()) {
            String address = System.getenv("MOMUS_ADDRESS");
            ofRun = address != null && !address.isEmpty() ? connect(address) : start();
        }
        return ofRun;
    }

    /** Starts one, with further options of {@code momus serve}, and waits until it serves. */
    public static Momus start(String... options) {
        return start(Find.command(), options);
    }

    static Momus start(List<String> found, String... options) {
        List<String> command = new ArrayList<>(found);
        command.add("kit");
        command.addAll(List.of(options));
        Process process = null;
        try {
            Path log = Files.createTempFile("momus-", ".log");
            log.toFile().deleteOnExit();
            // Its standard input is a pipe that the system closes when this JVM ends.
            process = new ProcessBuilder(command).redirectError(log.toFile()).start();
            BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            String ready = lines.readLine(), at = lines.readLine();
            if (ready == null || at == null || !at.startsWith("momus control ")) {
                process.destroy();
                process.waitFor();
                String said = Files.readString(log);
                if (said.contains("No such command 'kit'"))
                    throw new MomusException(command.get(0) + " is older than this kit, which is of " + VERSION + ": install that version", 0, null);
                throw new MomusException("it did not start: " + said.strip(), 0, null);
            }
            Momus made = new Momus(new Control(at.substring("momus control ".length()).strip()), process, log);
            try {
                made.agree();
            } catch (MomusException error) {
                made.close();
                throw error;
            }
            return made;
        } catch (IOException error) {
            throw new MomusException(String.join(" ", command) + ": " + error.getMessage(), 0, error);
        } catch (InterruptedException error) {
            process.destroy();
            Thread.currentThread().interrupt();
            throw new MomusException("interrupted while it started", 0, error);
        }
    }

    /** Uses one that runs, by the address of its control endpoint, and with MOMUS_CONTROL_TOKEN. */
    public static Momus connect(String address) {
        Momus made = new Momus(new Control(address), null, null);
        made.agree();
        return made;
    }

    private void agree() {
        JsonNode answer;
        try {
            answer = control.ask("GET", "/version", null);
        } catch (MomusException error) {
            if (error.status() != 404)
                throw error;
            throw new MomusException("what serves at " + control.address + " is older than this kit, which is of " + VERSION
                + ": install that version", 0, null);
        }
        if (answer.path("api").asInt() != API)
            throw new MomusException("this kit is of " + VERSION + " and speaks version " + API + " of the control plane, what serves at "
                + control.address + " is of " + answer.path("version").asText() + " and speaks version " + answer.path("api").asInt()
                + ": install the kit and the momus of one version", 0, null);
    }

    private boolean isUp() {
        return process == null || process.isAlive();
    }

    /** HOST:PORT of its control endpoint. */
    public String address() {
        return control.address;
    }

    /** What it has logged; empty for another's process. */
    public String log() {
        try {
            return log == null ? "" : Files.readString(log);
        } catch (IOException error) {
            return "";
        }
    }

    /** Makes a cluster, which {@link Cluster#close} verifies and removes. */
    public Cluster newCluster() {
        return newCluster(ClusterOptions.none());
    }

    /** Makes a cluster, which {@link Cluster#close} verifies and removes. */
    public Cluster newCluster(ClusterOptions options) {
        return Cluster.made(this, Control.forCaller(() -> control.ask("POST", "/_admin/clusters", options.body())), options);
    }

    /** The cluster that it begins with, whose name is default. */
    public Cluster defaultCluster() {
        return new Cluster(this, control.ask("GET", "/_admin/clusters/default", null));
    }

    /** The names of the clusters that are there. */
    public List<String> clusters() {
        List<String> names = new ArrayList<>();
        control.ask("GET", "/_admin/clusters", null).forEach(each -> names.add(each.path("name").asText()));
        return names;
    }

    /** What is different between two sides: each a {@link Cluster} as it is now, or a {@link Snapshot}. */
    public Difference diff(Side first, Side second) {
        return Difference.of(control.ask("POST", "/_admin/diff", Map.of("first", first.side(), "second", second.side())));
    }

    /** All paths of the control plane, each with its methods and what they are for. */
    public Map<String, Map<String, String>> routes() {
        Map<String, Map<String, String>> found = new TreeMap<>();
        control.ask("GET", "/", null).fields().forEachRemaining(path -> {
            Map<String, String> methods = new TreeMap<>();
            path.getValue().fields().forEachRemaining(each -> methods.put(each.getKey(), each.getValue().asText()));
            found.put(path.getKey(), methods);
        });
        return found;
    }

    /** The description of the control plane. */
    public Map<String, Object> openApi() {
        return Control.map(control.ask("GET", "/openapi.json", null));
    }

    /** Whether it runs. */
    public boolean isHealthy() {
        return answers("/healthz");
    }

    /** Whether all groups are loaded. */
    public boolean isReady() {
        return answers("/readyz");
    }

    private boolean answers(String path) {
        try {
            control.ask("GET", path, null);
            return true;
        } catch (MomusException error) {
            return false;
        }
    }

    /** The metrics of the cluster default, as Prometheus reads them. */
    public String metrics() {
        return control.text("GET", "/metrics", null);
    }

    /** Cuts off all clients of all clusters for good, so that what they have sent can be counted before the end. */
    public void hangUp() {
        control.ask("POST", "/_admin/hang-up", null);
    }

    /** Ends a process that {@link #start} has begun. One that is only connected goes on. */
    @Override
    public void close() {
        if (process == null)
            return;
        try {
            process.getOutputStream().close();
            process.destroy();
            if (!process.waitFor(30, TimeUnit.SECONDS))
                process.destroyForcibly();
        } catch (IOException error) {
            process.destroyForcibly();
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
