import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Writes messages by Kafka's own classes. Reads lines "NAME VERSION JSON"; answers each with "HEX", and for a request
 * with "HEX HEX": its bytes and those of the response that refuses it whole with NOT_COORDINATOR. In place of what
 * Kafka cannot do stands "! why".
 */
public final class Golden {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 3);
            System.out.println(answer(words[0], Short.parseShort(words[1]), words[2]));
        }
    }

    private static String answer(String name, short version, String json) {
        String hex = "";
        try {
            byte[] written = written(read(name, version, json), version);
            hex = HexFormat.of().formatHex(written);
            if (!name.endsWith("Request")) {
                return hex;
            }
            return hex + " " + HexFormat.of().formatHex(refusal(name, version, written));
        } catch (ReflectiveOperationException | RuntimeException failure) {
            Throwable cause = failure.getCause() == null ? failure : failure.getCause();
            return (hex + " ! ").strip() + " " + cause.toString().replace('\n', ' ');
        }
    }

    private static ApiMessage read(String name, short version, String json) throws ReflectiveOperationException {
        Class<?> converter = Class.forName("org.apache.kafka.common.message." + name + "DataJsonConverter");
        try {
            JsonNode tree = JSON.readTree(json);
            return (ApiMessage) converter.getMethod("read", JsonNode.class, short.class).invoke(null, tree, version);
        } catch (com.fasterxml.jackson.core.JsonProcessingException malformed) {
            throw new IllegalArgumentException(malformed);
        }
    }

    private static byte[] written(ApiMessage message, short version) {
        var cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("size and bytes differ");
        }
        return buffer.array();
    }

    private static byte[] refusal(String name, short version, byte[] body) throws ReflectiveOperationException {
        Method parse = Arrays.stream(AbstractRequest.class.getMethods())
            .filter(each -> each.getName().equals("parseRequest")).findFirst().orElseThrow();
        ByteBuffer buffer = ByteBuffer.wrap(body);
        boolean isOld = parse.getParameterTypes()[2] == ByteBuffer.class; // Kafka 3.9
        ApiKeys key = Arrays.stream(ApiKeys.values())
            .filter(each -> (each.messageType.name + "Request").equals(name)).findFirst().orElseThrow();
        Object parsed = parse.invoke(null, key, version, isOld ? buffer : new ByteBufferAccessor(buffer));
        AbstractRequest request = (AbstractRequest) parsed.getClass().getField("request").get(parsed);
        AbstractResponse response = request.getErrorResponse(0, Errors.NOT_COORDINATOR.exception());
        return written(response.data(), version);
    }
}
