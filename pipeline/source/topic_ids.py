"""Which topic a log belongs to: the id in `partition.metadata`, and positions that name it.

A topic that is deleted and created again has logs of the same names, whose offsets begin again. Only the id tells the
two apart. So a position is kept under a key, `LOG@ID`, and a position of another topic does not count for the log that
is there now. Where there is no `partition.metadata` (brokers before Kafka 2.8, copies without it), the key is `LOG`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from pyarrow import fs

from pipeline.errors import PipelineError

FILE: Final = "partition.metadata"
_ID: Final = re.compile(r"^topic_id: *(\S{22})$", re.MULTILINE)
_BEFORE_ID: Final = "version: 0\ntopic_id: "


def read_topic_id(files: fs.FileSystem, folder: str) -> str | None:
    """The topic id of a log's folder, in Kafka's text form; None: it names none, or is only begun.

    A copy of a file that is being written, and a loss of power, leave its first part.

    Errors:  PipelineError: the file holds something else.
    """
    path = f"{folder}/{FILE}"
    try:
        with files.open_input_stream(path) as stream:
            text = bytes(stream.read()).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    found = _ID.search(text)
    if found is None and _is_begun(text):
        return None
    if found is None:
        raise PipelineError(
            f"{path} is damaged: without it, a topic that was created again cannot be told apart. Restore it from a "
            "copy, or remove it"
        )
    return found[1]


def _is_begun(text: str) -> bool:
    """Whether it is the first part of what a broker writes."""
    begun_id = re.fullmatch(r"[\w-]{0,21}", text.removeprefix(_BEFORE_ID), re.ASCII)
    return _BEFORE_ID.startswith(text) or (text.startswith(_BEFORE_ID) and begun_id is not None)


def log_key(log: str, topic_id: str | None) -> str:
    """`LOG@ID`, or `LOG` where the id is not known. Neither names nor ids hold an @."""
    return log if topic_id is None else f"{log}@{topic_id}"


def of_key(key: str) -> tuple[str, str | None]:
    """(log, topic id or None) of a key."""
    log, _, topic_id = key.partition("@")
    return log, topic_id or None


def log_of(key: str) -> str:
    """The log of a key."""
    return of_key(key)[0]


def by_log(positions: Mapping[str, int]) -> dict[str, int]:
    """Positions by the names of logs, where each log has one."""
    return {log_of(key): offset for key, offset in positions.items()}


def key_in(positions: Mapping[str, int], key: str) -> str | None:
    """The key under which positions may have that of a log; None: they have none of this topic.

    Positions that were kept before ids were, and logs without an id, are those of whatever topic has the name.
    """
    if key in positions:
        return key
    log, topic_id = of_key(key)
    if topic_id is not None:
        return log if log in positions else None
    return next((each for each in positions if log_of(each) == log), None)


def is_same(one: str | None, other: str | None) -> bool:
    """Whether two ids of logs of one name may be of the same topic."""
    return one is None or other is None or one == other


def keys_of(logs: Iterable[tuple[str, str | None]], start: Mapping[str, int]) -> dict[str, str]:
    """Log -> its key in positions that follow `start`. A log that has lost its id keeps the one that it had."""
    found = {}
    for log, topic_id in logs:
        known = None if topic_id is not None else key_in(start, log)
        found[log] = known or log_key(log, topic_id)
    return found
