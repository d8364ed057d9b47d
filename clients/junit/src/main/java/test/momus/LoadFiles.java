package test.momus;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** Reads the files that fill a cluster, in the process of the test: the broker may be on another machine. */
final class LoadFiles {
    private LoadFiles() {}

    /** The answer to the file of a path, or those in the folder, with all that they name. Errors: MomusException. */
    static JsonNode sent(Cluster cluster, Path path, String ifPresent) {
        Map<String, String> files = new LinkedHashMap<>();
        try {
            for (List<String> needs = documents(path);;) {
                for (String name : needs)
                    files.put(name, Files.readString(Path.of(name)));
                JsonNode answer = cluster.ask("POST", "/load", Map.of("files", files, "if_present", ifPresent));
                if (answer.path("needs").isEmpty())
                    return answer;
                needs = Control.JSON.convertValue(answer.path("needs"), Control.JSON.getTypeFactory().constructCollectionType(List.class, String.class));
            }
        } catch (IOException error) {
            throw new MomusException("cannot read " + error.getMessage(), 0, error);
        }
    }

    private static List<String> documents(Path path) throws IOException {
        if (!Files.isDirectory(path))
            return List.of(slashed(path));
        try (Stream<Path> found = Files.list(path)) {
            return found.filter(each -> each.getFileName().toString().matches("[^.].*\\.(json|toml|ya?ml)") && Files.isRegularFile(each))
                .map(LoadFiles::slashed).sorted().toList();
        }
    }

    private static String slashed(Path path) {
        return path.toString().replace('\\', '/');
    }

    /** A path of an annotation: from the folder of the run, or else a resource of the test's class path. */
    static Path named(String name, ClassLoader loader) {
        Path path = Path.of(name);
        URL resource = Files.exists(path) ? null : loader.getResource(name);
        try {
            return resource != null && resource.getProtocol().equals("file") ? Path.of(resource.toURI()) : path;
        } catch (URISyntaxException error) {
            return path;
        }
    }
}
