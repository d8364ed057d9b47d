"""Where logs start: the offsets below which DeleteRecords or retention has deleted records that files still hold.

Brokers keep these in `log-start-offset-checkpoint` (momus at once, Apache Kafka once a minute and when it stops):
after a stop that was not clean, newer ones are missing. An archive keeps those of its data directory in
`_log_starts.json`, under the keys of logs (topic_ids.py), and those of deleted topics too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pyarrow import fs

from pipeline.errors import PipelineError
from pipeline.files import join_path, open_directory, read_json, write_json
from pipeline.source.archived_topics import of_newest_topics
from pipeline.source.topic_ids import log_of

CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
ARCHIVED: Final = "_log_starts.json"


class LogStarts(NamedTuple):
    """The start of each log that has one above its first segment."""

    offsets: dict[str, int]  # log -> first offset that a consumer can read
    was_clean: bool  # the broker has stopped and written all of them

    def as_json(self) -> dict[str, object]:
        """For a file."""
        return {"offsets": self.offsets, "was_clean": self.was_clean}


def log_starts(files: fs.FileSystem, root: str) -> LogStarts:
    """Those of a data directory. Errors: PipelineError: the checkpoint cannot be read."""
    was_clean = files.get_file_info(f"{root}/{CLEAN_SHUTDOWN}").type == fs.FileType.File
    offsets = read_checkpoint(files, f"{root}/{CHECKPOINT}", "deleted records would come back")
    return LogStarts({log: offset for log, offset in (offsets or {}).items() if offset > 0}, was_clean)


def read_checkpoint(files: fs.FileSystem, path: str, otherwise: str) -> dict[str, int] | None:
    """Log -> offset, of a checkpoint file of Kafka's; None: it is empty or not there, and says nothing.

    Apache Kafka makes its checkpoints empty, and writes them a minute later.

    Errors:  PipelineError: it is damaged, and `otherwise` follows.
    """
    try:
        with files.open_input_stream(path) as stream:
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    if not lines:
        return None
    try:
        version, count, *rows = lines
        entries = [row.rsplit(" ", 2) for row in rows if row]
        offsets = {f"{topic}-{int(partition)}": int(offset) for topic, partition, offset in entries}
    except ValueError:
        offsets, version, count = {}, "", ""
    if version != "0" or count != str(len(offsets)):
        raise PipelineError(f"{path} is damaged: without it, {otherwise}. Restore it from a copy")
    return offsets


def starts_of(path: str) -> LogStarts:
    """Those of a data directory, or those that an archive has kept. Errors: PipelineError: see log_starts."""
    kept = read_json(join_path(path, ARCHIVED))
    if kept is not None:
        return LogStarts(of_newest_topics(path, kept["offsets"]), kept["was_clean"])
    return log_starts(*open_directory(path))


def keep_starts(archive: str, starts: LogStarts, keys: Iterable[str]) -> None:
    """Store them in an archive. keys: of the logs that are there now."""
    path = join_path(archive, ARCHIVED)
    found = {key: starts.offsets[log_of(key)] for key in keys if log_of(key) in starts.offsets}
    before = (read_json(path) or {}).get("offsets", {})
    write_json(path, starts._replace(offsets=before | found).as_json())
