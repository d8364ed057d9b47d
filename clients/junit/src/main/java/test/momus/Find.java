package test.momus;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** How momus is started: MOMUS_COMMAND, else the binary of the artifact momus-binary, else the momus on the PATH. */
final class Find {
    private Find() {}

    static List<String> command() {
        String told = System.getenv("MOMUS_COMMAND");
        if (told != null && !told.isBlank())
            return Files.isRegularFile(Path.of(told)) ? List.of(told) : List.of(told.strip().split("\\s+"));
        Path unpacked = Binary.unpacked(Find.class.getClassLoader(), platform(), cache());
        if (unpacked != null)
            return List.of(unpacked.toString());
        for (String folder : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path found = Path.of(folder, "momus");
            if (!folder.isEmpty() && Files.isExecutable(found) && !Files.isDirectory(found))
                return List.of(found.toString());
        }
        throw new MomusException("there is no momus: add the artifact momus-binary of version " + Momus.VERSION + " with the classifier "
            + platform() + ", or put one on the PATH (its wheel, installed by pip), or set MOMUS_COMMAND to how it is started", 0, null);
    }

    static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch").equals("amd64") ? "x86_64" : System.getProperty("os.arch");
        return (system.startsWith("mac") ? "darwin" : system.startsWith("windows") ? "windows" : system) + "-" + machine;
    }

    static Path cache() {
        String told = System.getenv("MOMUS_CACHE");
        if (told != null && !told.isEmpty())
            return Path.of(told);
        String xdg = System.getenv("XDG_CACHE_HOME");
        return (xdg != null && !xdg.isEmpty() ? Path.of(xdg) : Path.of(System.getProperty("user.home"), ".cache")).resolve("momus");
    }
}
