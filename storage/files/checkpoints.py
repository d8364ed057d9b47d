"""Kafka's small text files: offset checkpoints, meta.properties, partition.metadata, the clean shutdown mark.

A checkpoint has the lines `0` (version), the number of entries, then an entry a line. All of them are written
aside, synced and renamed: a crash leaves the old file or the new one.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from storage.files.env import Files

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
COPY: Final = ".momus-copy"
UNFINISHED: Final = ".momus-unfinished"  # a copy or a reset is under way: what is there is not whole
PARTITION_METADATA: Final = "partition.metadata"
LOCK: Final = ".lock"


def read_lines(files: Files, path: str) -> list[str]:
    """The entries of a checkpoint; none when it is missing, damaged or short (the logs can make it again)."""
    try:
        lines = files.read_file(path).decode().split("\n")
    except (FileNotFoundError, UnicodeDecodeError):
        return []
    if len(lines) < 3 or lines[0] != "0" or not lines[1].isdigit() or lines[-1]:
        return []
    entries = [line for line in lines[2:] if line]
    return entries if len(entries) == int(lines[1]) else []


def write_lines(files: Files, path: str, entries: Sequence[str], *, sync: bool = True) -> None:
    """Write Kafka's checkpoint format: version 0, a count, a line an entry.

    Durable: with sync, when this returns.
    """
    files.write_file_atomic(path, "\n".join(("0", str(len(entries)), *entries, "")).encode(), sync)


def read_offsets(files: Files, path: str) -> dict[tuple[str, int], int]:
    """(topic, partition) -> offset."""
    offsets: dict[tuple[str, int], int] = {}
    for line in read_lines(files, path):
        parts = line.split(" ")
        if len(parts) != 3 or not parts[1].isdigit() or not parts[2].isdigit():
            return {}
        offsets[parts[0], int(parts[1])] = int(parts[2])
    return offsets


def write_offsets(files: Files, path: str, offsets: Mapping[tuple[str, int], int], *, sync: bool = True) -> None:
    """Write (topic, partition) -> offset. Durable: with sync, when this returns."""
    lines = [f"{topic} {index} {offset}" for (topic, index), offset in offsets.items()]
    write_lines(files, path, lines, sync=sync)


def read_properties(files: Files, path: str) -> dict[str, str] | None:
    """A Java properties file of plain keys and values; None when there is none."""
    try:
        text = files.read_file(path).decode()
    except FileNotFoundError:
        return None
    properties: dict[str, str] = {}
    for line in text.splitlines():
        key, found, value = line.strip().partition("=")
        if found and not key.startswith("#"):
            properties[key.strip()] = value.strip()
    return properties


def write_properties(files: Files, path: str, properties: Mapping[str, str]) -> None:
    """Write a Java properties file. Durable: when this returns."""
    files.write_file_atomic(path, "".join(f"{key}={value}\n" for key, value in properties.items()).encode(), True)


def uuid_text(raw: bytes) -> str:
    """16 bytes as Kafka writes them: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of Kafka's text form. Errors: ValueError."""
    raw = urlsafe_b64decode(text + "==")
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a Kafka UUID")
    return raw


def make_partition_directory(files: Files, directory: str, topic_id: bytes | None) -> None:
    """Make the directory of a partition, with the file that says whose it is, unless it is there. Errors: OSError."""
    if not files.exists(directory):
        files.makedirs(directory)
        if topic_id is not None:
            write_partition_metadata(files, directory, topic_id)


def write_partition_metadata(files: Files, directory: str, topic_id: bytes, *, sync: bool = False) -> None:
    """Say in a partition's directory whose it is. Durable: with sync, when this returns."""
    data = f"version: 0\ntopic_id: {uuid_text(topic_id)}\n".encode()
    files.write_file_atomic(f"{directory}/{PARTITION_METADATA}", data, sync)


def sync_partition_metadata(files: Files, directory: str, topic_id: bytes) -> None:
    """The same, durable when this returns. What is there already is not written again, so that two threads may do it:
    one that syncs the log, and the loop before it begins a new segment."""
    if read_partition_metadata(files, directory) != topic_id:
        write_partition_metadata(files, directory, topic_id, sync=True)
        return
    file = files.open_append(f"{directory}/{PARTITION_METADATA}")
    file.sync()
    file.close()
    files.sync_dir(directory)


def read_partition_metadata(files: Files, directory: str) -> bytes | None:
    """The topic id of a partition directory; None when the file is missing, says nothing, or is short: a loss of power
    may leave a part of it, before anything beside it is synced."""
    try:
        text = files.read_file(f"{directory}/{PARTITION_METADATA}").decode()
    except FileNotFoundError:
        return None
    for line in text.splitlines():
        if line.startswith("topic_id:"):
            with suppress(ValueError):
                return uuid_from_text(line.partition(":")[2].strip())
    return None


def mark_clean_shutdown(files: Files, data_directory: str) -> None:
    """Say that every log was closed whole, so that the next start need not scan."""
    files.write_file_atomic(f"{data_directory}/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":-1}', True)


def make_directory(files: Files, path: str, *, sync: bool = True) -> None:
    """Make a directory and those above it, unless it exists. Durable: with sync, when this returns."""
    missing, parent = [], path.rstrip("/")
    while parent and not files.exists(parent):
        parent = parent.rpartition("/")[0]
        missing.append(parent)
    files.makedirs(path)
    for parent in missing if sync else ():
        files.sync_dir(parent)


@contextmanager
def unfinished(files: Files, data_directory: str, *, sync: bool) -> Iterator[None]:
    """The directory is marked as not whole until the block ends well. Durable: with sync, both times."""
    path = f"{data_directory}/{UNFINISHED}"
    make_directory(files, data_directory, sync=sync)
    files.write_file_atomic(path, b"", sync)
    yield
    files.remove(path)
    if sync:
        files.sync_dir(data_directory)


def take_mark(files: Files, data_directory: str, name: str) -> bool:
    """Is it marked so? The mark (CLEAN_SHUTDOWN, COPY) is removed: it must not outlive the next crash."""
    path = f"{data_directory}/{name}"
    if not files.exists(path):
        return False
    files.remove(path)
    files.sync_dir(data_directory)
    return True
