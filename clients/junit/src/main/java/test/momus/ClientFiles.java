package test.momus;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** The files that clients of a cluster name in their settings, in folders that only their owner reads. */
final class ClientFiles {
    private final List<Path> folders = new ArrayList<>();

    /** The settings of an answer, with its files written. */
    synchronized Map<String, Object> settings(JsonNode answer) {
        String at = "";
        try {
            if (!answer.path("files").isEmpty()) {
                Path folder = Files.createTempDirectory("momus-client-");
                folders.add(folder);
                at = folder.toString();
                for (var each : (Iterable<Map.Entry<String, JsonNode>>) answer.path("files")::fields)
                    Files.write(folder.resolve(Path.of(each.getKey()).getFileName()), Base64.getDecoder().decode(each.getValue().asText()));
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        Map<String, Object> found = new LinkedHashMap<>();
        for (var each : (Iterable<Map.Entry<String, JsonNode>>) answer.path("settings")::fields)
            found.put(each.getKey(), each.getValue().asText().replace("{folder}", at));
        return found;
    }

    synchronized void remove() {
        for (Path folder : folders)
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(each -> each.toFile().delete());
            } catch (IOException error) {
                continue; // it is in the system's folder for temporary files
            }
        folders.clear();
    }
}
