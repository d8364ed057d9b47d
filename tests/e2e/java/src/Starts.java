import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.common.utils.Time;

/**
 * Says of settings whether Apache Kafka starts with them, of texts how java.util.Properties and Kafka's JAAS reader read them.
 *
 * Starts FOLDER, a question in JSON on each line of standard input, an answer in JSON on each line of standard output:
 * {"properties": {...}, "jaas": "text of the file", "node": "1"} -> {"starts": true|false|null, "why": [messages, the outermost first]};
 * null: it waits for others. {"text": "..."} -> {"read": {...}}. {"module": "..."} -> {"options": {...}} or {"why": [...]}.
 * A start is that of kafka.Kafka: the settings are parsed, the node is started on a new directory, and stopped. All in one JVM.
 */
public class Starts {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int PATIENCE_S = 12;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // what Kafka prints is no answer
        Exit.setExitProcedure((code, message) -> {
            throw new IllegalStateException("exit " + code + (message == null ? "" : ": " + message));
        });
        Exit.setHaltProcedure((code, message) -> {
            throw new IllegalStateException("halt " + code + (message == null ? "" : ": " + message));
        });
        Path folder = Path.of(arguments[0]);
        int number = 0;
        try (var lines = new java.util.Scanner(System.in, "UTF-8")) {
            while (lines.hasNextLine()) {
                JsonNode question = JSON.readTree(lines.nextLine());
                ObjectNode answer = JSON.createObjectNode();
                if (question.has("text")) {
                    read(question.get("text").asText(), answer);
                } else if (question.has("module")) {
                    options(question.get("module").asText(), answer);
                } else {
                    start(question, Files.createDirectories(folder.resolve("case-" + number++)), answer);
                }
                out.println(JSON.writeValueAsString(answer));
                out.flush();
            }
        }
        Runtime.getRuntime().halt(0); // nodes that wait for others are not waited for
    }

    private static void read(String text, ObjectNode answer) {
        Properties found = new Properties();
        try {
            found.load(new StringReader(text));
        } catch (Exception error) {
            why(error, answer);
            return;
        }
        ObjectNode values = answer.putObject("read");
        found.stringPropertyNames().stream().sorted().forEach(key -> values.put(key, found.getProperty(key)));
    }

    private static void options(String module, ObjectNode answer) {
        try {
            AppConfigurationEntry entry = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(module)))
                .configurationEntries().get(0);
            answer.put("name", entry.getLoginModuleName());
            ObjectNode values = answer.putObject("options");
            entry.getOptions().forEach((key, value) -> values.put(key, String.valueOf(value)));
        } catch (Exception error) {
            why(error, answer);
        }
    }

    private static void start(JsonNode question, Path folder, ObjectNode answer) throws Exception {
        Properties settings = new Properties();
        question.get("properties").fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
        if (!settings.containsKey("log.dirs")) {
            settings.put("log.dirs", folder.resolve("logs").toString());
        }
        settings.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152"); // 128 MB for each node that stays
        System.clearProperty("java.security.auth.login.config");
        if (question.has("jaas") && !question.get("jaas").isNull()) {
            Path file = Files.writeString(folder.resolve("jaas.conf"), question.get("jaas").asText());
            System.setProperty("java.security.auth.login.config", file.toString());
        }
        Configuration.setConfiguration(null);
        try {
            kafka.server.KafkaConfig config = kafka.server.KafkaConfig.fromProps(settings, false);
            format(folder, config);
            kafka.server.KafkaRaftServer server = new kafka.server.KafkaRaftServer(config, Time.SYSTEM);
            run(server, answer);
        } catch (Throwable error) {
            answer.put("starts", false);
            why(error instanceof ExecutionException ? error.getCause() : error, answer);
        }
    }

    private static void run(kafka.server.KafkaRaftServer server, ObjectNode answer) throws Exception {
        FutureTask<Void> started = new FutureTask<>(server::startup, null);
        Thread thread = new Thread(started, "start");
        thread.setDaemon(true);
        thread.start();
        try {
            started.get(PATIENCE_S, TimeUnit.SECONDS);
            answer.put("starts", true);
            server.shutdown();
        } catch (TimeoutException error) {
            answer.putNull("starts");
            thread.interrupt();
            quietly(server::shutdown);
        } catch (ExecutionException error) {
            quietly(server::shutdown);
            throw error;
        }
    }

    /** The directory of a new node, by the tool that operators use, with settings of which only the id matters. */
    private static void format(Path folder, kafka.server.KafkaConfig config) throws Exception {
        Map<String, String> plain = new LinkedHashMap<>();
        plain.put("process.roles", "broker,controller");
        plain.put("node.id", Integer.toString(config.nodeId()));
        plain.put("listeners", "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2");
        plain.put("controller.listener.names", "CONTROLLER");
        plain.put("controller.quorum.voters", config.nodeId() + "@127.0.0.1:2");
        plain.put("log.dirs", String.join(",", config.logDirs()));
        Path file = folder.resolve("format.properties");
        StringBuilder text = new StringBuilder();
        plain.forEach((key, value) -> text.append(key).append('=').append(value).append('\n'));
        Files.writeString(file, text);
        String[] arguments = {"format", "-g", "-t", "momusmomusmomusmomusAA", "-c", file.toString()};
        int code = kafka.tools.StorageTool.execute(arguments, System.err);
        if (code != 0) {
            throw new IllegalStateException("format ended with " + code);
        }
    }

    private static void quietly(Runnable call) {
        try {
            call.run();
        } catch (Throwable error) {
            System.err.println("at its end: " + error);
        }
    }

    private static void why(Throwable error, ObjectNode answer) {
        var found = answer.putArray("why");
        for (Throwable each = error; each != null; each = each.getCause()) {
            found.add(String.valueOf(each.getMessage()));
        }
    }
}
