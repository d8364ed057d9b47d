"""Asks Apache Kafka whether it starts with each case's settings; run as a program it records the answers. Needs java
and mvn.

`PYTHONPATH=tests python -m differential.start_live`, or `make starts`: 260 starts in one JVM, four minutes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from differential.start_case import Case
from differential.start_cases import RECORDED, cases, with_files, write_material
from differential.start_texts import MODULES, TEXTS

MOST_AGAIN = 5  # JVMs for one question
SOURCE = Path(__file__).parent.parent / "e2e" / "java" / "src" / "Starts.java"
JVM: tuple[str, ...] = (
    "java",
    "-Xmx600m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
)
JVM += ("-Dlog4j2.level=OFF", "-Dfile.encoding=UTF-8")


class Kafka:
    """A JVM that answers questions, one at a time.

    Nodes that did not start keep memory: when it is used up, the JVM ends, and another one is asked.
    """

    def __init__(self, libs: str, folder: Path, log: IO[bytes]) -> None:
        self._libs = libs
        self._folder = folder
        self._log = log
        self._lives = 0
        self._process = self._begin()

    def _begin(self) -> subprocess.Popen[str]:
        self._lives += 1
        return subprocess.Popen(
            [*JVM, "-cp", self._libs, str(SOURCE), str(self._folder / f"life-{self._lives}")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer, as Starts.java describes it."""
        line = self._line(question)
        for _ in range(MOST_AGAIN):
            if line:
                break
            self.close()
            self._process = self._begin()
            line = self._line(question)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _line(self, question: dict[str, Any]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the JVM."""
        self._process.kill()
        self._process.communicate()

    def start(self, case: Case) -> dict[str, Any]:
        """Whether it starts, and why not: the sentences of the exception and its causes."""
        settings = with_files(case.settings(str(self._folder / "files")), self._folder / "files")
        answer = self.ask({"properties": settings, "jaas": case.jaas})
        if "why" in answer:
            answer["why"] = list(dict.fromkeys(self._steady(text) for text in answer["why"]))
        return answer

    def _steady(self, text: str) -> str:
        """A sentence without what differs between two recordings: ports and folders."""
        return re.sub(
            r"\b\d{4,5}\b", "PORT", re.sub(r"/life-\d+/case-\d+", "", text.replace(str(self._folder), "FOLDER"))[:600]
        )


@contextmanager
def kafka(libs: str, folder: Path) -> Iterator[Kafka]:
    """A JVM with Kafka's classes, and the files that cases of TLS name."""
    (folder / "files").mkdir()
    write_material(folder / "files")
    with open(folder / "log", "wb") as log:
        made = Kafka(libs, folder, log)
        try:
            yield made
        finally:
            made.close()


def ask_kafka(asked: Kafka) -> dict[str, Any]:
    """What a Kafka says of all cases and texts."""
    starts = {}
    for case in cases():
        assert case.name not in starts, case.name
        starts[case.name] = asked.start(case)
        sys.stderr.write(f"{case.name}: {starts[case.name].get('starts')}\n")
    return {
        "starts": starts,
        "texts": [asked.ask({"text": text}) for text in TEXTS],
        "modules": [asked.ask({"module": text}) for text in MODULES],
    }


def main() -> None:
    """Record what Apache Kafka says."""
    from kafka_jars import fetch_jars  # type: ignore[import-untyped,unused-ignore]  # tests have no types

    with tempfile.TemporaryDirectory() as folder, kafka(f"{fetch_jars('current')}/*", Path(folder)) as asked:
        found = ask_kafka(asked)
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    refused = sum(each["starts"] is False for each in found["starts"].values())
    sys.stdout.write(f"{len(found['starts'])} cases, {refused} refused\n")


if __name__ == "__main__":
    main()
