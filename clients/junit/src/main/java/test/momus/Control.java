package test.momus;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** One endpoint of a momus: HTTP with JSON. */
final class Control {
    // Additions of a later momus are tolerated.
    static final ObjectMapper JSON = JsonMapper.builder()
        .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
        .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
        .disable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
        .build();
    static final Duration LIMIT = Duration.ofSeconds(60);

    final String address;
    private final String token = System.getenv("MOMUS_CONTROL_TOKEN");
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    Consumer<String> asked = call -> {}; // told of each call, for the test of the routes
    // A further field of the calls of a thread, by which `momus explore` knows whose cluster is made, and what came of its test.
    private static final ThreadLocal<String[]> FIELD = new ThreadLocal<>();
    private static final Set<String> OWN = Stream.of(Control.class, Momus.class, Cluster.class, Snapshot.class, MomusExtension.class)
        .map(Class::getName).collect(Collectors.toSet()); // make clusters for callers

    Control(String address) {
        this.address = address;
    }

    /** Makes calls for a test. */
    static <T> T forTest(String test, Supplier<T> calls) {
        return with("Momus-Test", query(test), calls);
    }

    /** Makes a call for whichever method of a test or of its set-up asks for it, unless it is known for which test that is. */
    static <T> T forCaller(Supplier<T> call) {
        if (FIELD.get() != null)
            return call.get();
        String caller = StackWalker.getInstance().walk(frames -> frames
            .filter(each -> !OWN.contains(each.getClassName()) && !each.getMethodName().startsWith("lambda$"))
            .findFirst()
            .map(each -> each.getClassName().substring(each.getClassName().lastIndexOf('.') + 1) + "." + each.getMethodName())
            .orElse("main"));
        return forTest(caller, call);
    }

    /** Makes the call that removes the cluster of a test. */
    static void afterTest(boolean hasFailed, Runnable call) {
        with("Momus-Test-Failed", String.valueOf(hasFailed), () -> {
            call.run();
            return null;
        });
    }

    private static <T> T with(String name, String value, Supplier<T> calls) {
        FIELD.set(new String[] {name, value});
        try {
            return calls.get();
        } finally {
            FIELD.remove();
        }
    }

    /** Makes a call. Errors: MomusException. */
    JsonNode ask(String method, String path, Object body) {
        try {
            return JSON.readTree(text(method, path, body));
        } catch (IOException error) {
            throw new MomusException(method + " " + path + ": the answer is no JSON", 0, error);
        }
    }

    <T> T ask(String method, String path, Object body, Class<T> answer) {
        return JSON.convertValue(ask(method, path, body), answer);
    }

    String text(String method, String path, Object body) {
        asked.accept(method + " " + path);
        try {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://" + address + path)).timeout(LIMIT);
            if (token != null && !token.isEmpty())
                request.header("Authorization", "Bearer " + token);
            String[] field = FIELD.get();
            if (field != null)
                request.header(field[0], field[1]);
            request.method(method, body == null ? HttpRequest.BodyPublishers.noBody()
                : HttpRequest.BodyPublishers.ofByteArray(JSON.writeValueAsBytes(body)));
            HttpResponse<String> answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200)
                throw new MomusException(method + " " + path + ": " + why(answer.body()), answer.statusCode(), null);
            return answer.body();
        } catch (IOException error) {
            throw new MomusException(method + " " + path + ": nothing answers at " + address + ": " + error.getMessage(), 0, error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new MomusException(method + " " + path + ": interrupted", 0, error);
        }
    }

    /** An object with its fields in their order; null where there is none. */
    static Map<String, Object> map(JsonNode object) {
        return object.isObject() ? JSON.convertValue(object, new TypeReference<LinkedHashMap<String, Object>>() {}) : null;
    }

    static List<Map<String, Object>> maps(JsonNode array) {
        return stream(array).map(Control::map).toList();
    }

    static List<String> texts(JsonNode array) {
        return stream(array).map(JsonNode::asText).toList();
    }

    static <T> List<T> rows(JsonNode array, Class<T> row) {
        return stream(array).map(each -> JSON.convertValue(each, row)).toList();
    }

    static Stream<JsonNode> stream(JsonNode array) {
        return StreamSupport.stream(array.spliterator(), false);
    }

    private static String why(String body) {
        try {
            return JSON.readTree(body).path("error").asText(body);
        } catch (IOException error) {
            return body;
        }
    }

    /** A name as a part of a path. */
    static String part(String name) {
        return "/" + query(name);
    }

    static String query(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }
}
