package test.momus;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.stream.Stream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.apache.commons.compress.compressors.gzip.GzipCompressorInputStream;

/**
 * The binary that the artifact momus-binary brings, unpacked once into the cache folder: another version, or another build of
 * it, has a folder of its own.
 */
final class Binary {
    private Binary() {}

    /** The program; null: there is no such artifact. Errors: MomusException. */
    static Path unpacked(ClassLoader loader, String platform, Path cache) {
        String resource = "momus/binary/" + platform + ".tar.gz";
        try (InputStream sum = loader.getResourceAsStream(resource + ".sha256")) {
            if (sum == null)
                return null;
            String stated = new String(sum.readAllBytes(), StandardCharsets.UTF_8).strip().split("\\s+")[0];
            Path folder = cache.resolve(platform + "-" + stated.substring(0, 16));
            Path program = folder.resolve("momus");
            if (!Files.exists(program))
                unpack(loader, resource, folder);
            return program;
        } catch (IOException error) {
            throw new MomusException("the binary could not be unpacked into " + cache + " (MOMUS_CACHE names another folder): " + error, 0, error);
        }
    }

    private static void unpack(ClassLoader loader, String resource, Path folder) throws IOException {
        Files.createDirectories(folder.getParent());
        Path fresh = Files.createTempDirectory(folder.getParent(), ".new-");
        try {
            try (InputStream data = loader.getResourceAsStream(resource);
                TarArchiveInputStream entries = new TarArchiveInputStream(new GzipCompressorInputStream(data))) {
                for (TarArchiveEntry entry = entries.getNextEntry(); entry != null; entry = entries.getNextEntry())
                    write(fresh, entry, entries);
            }
            // What is moved is whole; where another run was faster, its folder stays.
            Files.move(fresh, folder, StandardCopyOption.ATOMIC_MOVE);
        } catch (FileAlreadyExistsException | DirectoryNotEmptyException error) {
            return;
        } finally {
            if (Files.exists(fresh))
                try (Stream<Path> left = Files.walk(fresh)) {
                    left.sorted(Comparator.reverseOrder()).forEach(each -> each.toFile().delete());
                }
        }
    }

    private static void write(Path fresh, TarArchiveEntry entry, InputStream data) throws IOException {
        Path name = Path.of(entry.getName());
        if (name.getNameCount() < 2)
            return; // the folder itself
        Path at = fresh.resolve(name.subpath(1, name.getNameCount())).normalize();
        if (!at.startsWith(fresh))
            throw new IOException("the archive has a file outside of itself: " + name);
        if (entry.isDirectory()) {
            Files.createDirectories(at);
        } else if (entry.isSymbolicLink()) {
            Files.createDirectories(at.getParent());
            Files.createSymbolicLink(at, Path.of(entry.getLinkName()));
        } else {
            Files.createDirectories(at.getParent());
            Files.copy(data, at);
            at.toFile().setExecutable((entry.getMode() & 0100) != 0);
        }
    }
}
