"""Which topics an archive holds under the name of each log: `_topics.json` in its folder.

A topic that was deleted and created again has rows of both in the archive; the column `topic_id` tells them apart. Jobs
read the newest topic of each log, as a data directory would show it; the rows of earlier ones stay in the tables.

Archives that were begun before ids were kept have rows without one. They belong to the topic that their log has when
the archive is next written to, if that log is as long as the archive's position in it; else to one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pipeline.files import join_path, read_json, write_json
from pipeline.source.topic_ids import of_key

_FILE: Final = "_topics.json"

# Log -> its topics, oldest first: {"ids": the column topic_id of its rows, "end": of the rows without an id, if any}.
Topics = dict[str, list[dict[str, Any]]]


def read_topics(archive: str) -> Topics:
    """Those of an archive; empty for one that was never written to since ids are kept."""
    found: Topics = read_json(join_path(archive, _FILE)) or {}
    return found


def add_topics(archive: str, positions: Mapping[str, int]) -> None:
    """Note the topics that the archive's positions name, key -> offset, and that it did not have before."""
    known = read_topics(archive)
    made = False
    for key, offset in positions.items():
        log, topic_id = of_key(key)
        topics = known.setdefault(log, [])
        if topics and topic_id in topics[-1]["ids"]:
            continue
        made = True
        if topics and topics[-1]["ids"] == [None] and offset >= topics[-1]["end"]:
            topics[-1]["ids"].append(topic_id)
        else:
            topics.append({"ids": [topic_id]} | ({"end": offset} if topic_id is None else {}))
    if made:
        write_json(join_path(archive, _FILE), known)


def earlier_topics(archive: str) -> list[tuple[str, str | None]]:
    """(log, topic_id) of the rows that belong to no log's newest topic."""
    return [
        (log, topic_id)
        for log, topics in read_topics(archive).items()
        for each in topics[:-1]
        for topic_id in each["ids"]
    ]


def of_newest_topics(archive: str, by_key: Mapping[str, int], pick: Callable[[int, int], int] = max) -> dict[str, int]:
    """Values by key as values by log, of each log's newest topic; pick: of two that belong to the same topic."""
    topics = read_topics(archive)
    found: dict[str, int] = {}
    for key, value in by_key.items():
        log, topic_id = of_key(key)
        if log not in topics or topic_id in topics[log][-1]["ids"]:
            found[log] = pick(found[log], value) if log in found else value
    return found
