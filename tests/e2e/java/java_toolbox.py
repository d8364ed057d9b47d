"""Apache Kafka's console tools in one JVM, which takes a second to start."""

from __future__ import annotations

import struct
import subprocess

from java_checks import JVM


class Toolbox:
    """Kafka's console tools, unmodified, one after the other in one JVM."""

    def __init__(self, class_path: str) -> None:
        command = [*JVM, "-cp", class_path, "Tools"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, *words: str, text: str = "") -> tuple[int, str]:
        """Run a tool: its class and arguments. Returns the exit code and what it printed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        encoded = [word.encode() for word in (*words, text)]
        frame = b"".join(struct.pack(">i", len(word)) + word for word in encoded)
        self.process.stdin.write(struct.pack(">i", len(words)) + frame)
        self.process.stdin.flush()
        code, size = struct.unpack(">ii", self.process.stdout.read(8))
        return code, self.process.stdout.read(size).decode()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
