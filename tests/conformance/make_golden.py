"""Writes the golden files by Apache Kafka's own classes: `make golden`. Needs java and mvn.

golden_frames.txt    every declared request and response in every version, from the values of golden_values.py
golden_refusals.txt  what Kafka answers when it refuses those requests whole
golden_message_sets.txt  three records as message sets of magic 0 and 1, with each codec
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]  # run as a program, not by pytest

from golden_values import as_json, golden_kinds, golden_value  # noqa: E402  # the path comes first
from kafka_jars import JAVA, fetch_jars  # noqa: E402  # the same

from protocol.api import ApiKey, is_declared, request_class, response_class  # noqa: E402  # the same
from protocol.declare import Message  # noqa: E402  # the same

CURRENT, OLD = "4.4.0", "3.9.1"  # as pom.xml has them
OLD_VERSIONS = {  # Kafka 4 has them no more
    "Produce": (0, 1, 2),
    "Fetch": (0, 1, 2, 3),
    "ListOffsets": (0,),
    "OffsetCommit": (0, 1),
    "OffsetFetch": (0,),
}
OLD_NAMES = "Produce 0-2, Fetch 0-3, ListOffsets 0, OffsetCommit 0-1 and OffsetFetch 0"
FRAMES_HEAD = f"""\
# Messages in every version: name, version, kind of value (golden_values.py), bytes of the body in hex.
# Provenance: made by `make golden`. Kafka's JsonConverter classes read the values, its Data classes wrote the bytes:
# kafka-clients {CURRENT}; for {OLD_NAMES},
# which it no longer has, kafka-clients {OLD}.
"""
REFUSALS_HEAD = f"""\
# Whole requests refused with NOT_COORDINATOR: name, version, kind of value, bytes of the response's body in hex.
# Provenance: made by `make golden`. AbstractRequest.parseRequest of kafka-clients {CURRENT} read the frame of the same
# name, version and kind in golden_frames.txt; its getErrorResponse(0, Errors.NOT_COORDINATOR.exception()) answered.
# For {OLD_NAMES}: kafka-clients {OLD}.
"""
SETS_HEAD = f"""\
# Message sets of three records: magic, codec, create or append (kind of timestamp), bytes in hex.
# Provenance: made by `make golden`: tests/e2e/java/src/MessageSets.java, by MemoryRecords of kafka-clients {OLD}.
"""

Case = tuple[type[Message], int, str]  # message, version, kind


def cases() -> list[Case]:
    """All frames that there must be."""
    classes = [of(key) for key in ApiKey if is_declared(key) for of in (request_class, response_class)]
    versions = [(cls, version) for cls in classes for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)]
    return [(*each, kind) for each in versions for kind in golden_kinds(*each)]


def is_old(case: Case) -> bool:
    """Whether only Kafka 3.9 has this version."""
    api = case[0].__name__.removesuffix("Request").removesuffix("Response")
    return case[1] in OLD_VERSIONS.get(api, ())


def run_kafka(class_path: str, asked: list[Case]) -> list[str]:
    """What Golden.java answers to each."""
    values = [json.dumps(as_json(golden_value(*case), case[1]), separators=(",", ":")) for case in asked]
    lines = [f"{cls.__name__} {version} {value}\n" for (cls, version, _), value in zip(asked, values, strict=True)]
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", class_path, str(JAVA / "src" / "Golden.java")]
    done = subprocess.run(command, input="".join(lines), capture_output=True, text=True, timeout=300)
    answers = done.stdout.splitlines()
    assert len(answers) == len(asked), done.stderr
    return answers


def message_sets(class_path: str) -> str:
    """The lines of MessageSets.java."""
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", class_path, str(JAVA / "src" / "MessageSets.java")]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def _may_fail(kind: str, text: str) -> bool:
    """Kafka writes null records and a null list of users, and then fails to refuse these requests."""
    return kind == "null" and not text.startswith("!") and "NullPointerException" in text


def main() -> None:
    """Write the files; a message that Kafka does not take ends the program before."""
    current, old = fetch_jars("current"), fetch_jars("old-client")
    old_path = f"{old}/kafka-clients-{OLD}.jar:{current}/*"  # JSON comes from the current tools
    asked = cases()
    answers: dict[Case, str] = {}
    for class_path, some in (
        (f"{current}/*", [each for each in asked if not is_old(each)]),
        (old_path, [each for each in asked if is_old(each)]),
    ):
        answers.update(zip(some, run_kafka(class_path, some), strict=True))
    bad = [(case, text) for case, text in answers.items() if "!" in text]
    refused = [
        f"{cls.__name__} v{version} {kind}: {text}" for (cls, version, kind), text in bad if not _may_fail(kind, text)
    ]
    if refused:
        raise SystemExit("\n".join(["Kafka does not take these:", *refused]))
    frames, refusals = [], []
    for case in asked:
        frame, _, refusal = answers[case].partition(" ")
        name = f"{case[0].__name__} {case[1]} {case[2]}"
        frames.append(f"{name} {frame}\n")
        if refusal and "!" not in refusal:
            refusals.append(f"{name} {refusal}\n")
    (HERE / "golden_frames.txt").write_text(FRAMES_HEAD + "".join(frames))
    (HERE / "golden_refusals.txt").write_text(REFUSALS_HEAD + "".join(refusals))
    (HERE / "golden_message_sets.txt").write_text(SETS_HEAD + message_sets(f"{old}/*"))
    sys.stdout.write(f"{len(frames)} frames and {len(refusals)} refusals written to {HERE}\n")


if __name__ == "__main__":
    main()
