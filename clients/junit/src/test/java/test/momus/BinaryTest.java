package test.momus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.compressors.gzip.GzipCompressorOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the artifact momus-binary brings is unpacked once. */
class BinaryTest {
    private static ClassLoader artifact(Path folder, String name) throws IOException {
        Path at = Files.createDirectories(folder.resolve("momus/binary"));
        try (TarArchiveOutputStream entries = new TarArchiveOutputStream(new GzipCompressorOutputStream(Files.newOutputStream(at.resolve("any.tar.gz"))))) {
            TarArchiveEntry entry = new TarArchiveEntry(name);
            entry.setSize(9);
            entry.setMode(0755);
            entries.putArchiveEntry(entry);
            entries.write("a program".getBytes());
            entries.closeArchiveEntry();
        }
        Files.writeString(at.resolve("any.tar.gz.sha256"), "0123456789abcdef0123  any.tar.gz\n");
        return new URLClassLoader(new URL[] {folder.toUri().toURL()}, null);
    }

    @Test
    void programIsUnpackedOnceAndCanBeRun(@TempDir Path folder) throws IOException {
        ClassLoader loader = artifact(folder.resolve("artifact"), "momus-0-any/momus");
        Path cache = folder.resolve("a cache");
        Path program = Binary.unpacked(loader, "any", cache);
        assertEquals(cache.resolve("any-0123456789abcdef").resolve("momus"), program);
        assertTrue(Files.isExecutable(program));
        Files.writeString(program, "as it was left");
        assertEquals("as it was left", Files.readString(Binary.unpacked(loader, "any", cache)));
        try (var left = Files.list(cache)) {
            assertEquals(1, left.count());
        }
    }

    @Test
    void archiveThatLeavesItsFolderIsRefused(@TempDir Path folder) throws IOException {
        ClassLoader loader = artifact(folder.resolve("artifact"), "x/../../evil");
        MomusException refused = assertThrows(MomusException.class, () -> Binary.unpacked(loader, "any", folder.resolve("cache")));
        assertTrue(refused.getMessage().contains("outside of itself"), refused.getMessage());
    }

    @Test
    void withoutTheArtifactThereIsNone(@TempDir Path folder) {
        assertNull(Binary.unpacked(new ClassLoader(null) {}, "any", folder));
    }
}
