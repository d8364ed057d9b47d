"""Commits offsets to a broker as a group without members, and asks a broker for log end offsets.

The one file of the pipeline that speaks Kafka's protocol without Spark's connector; it uses the command line's client.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from momus.client.kafka_client import Client

Partition: TypeAlias = tuple[str, int, str | None]  # topic, partition, topic id: None where it is not known
Positions: TypeAlias = Mapping[Partition, int]  # the next offset


class GroupOffsets:
    """One group at one broker. A failed commit is reported on standard error and tried again with the next one."""

    def __init__(self, bootstrap: str, group: str, metadata: str = "") -> None:
        self.bootstrap = bootstrap
        self.group = group
        self._metadata = metadata
        self._committed: dict[Partition, int] = {}
        self._failure = ""

    def commit(self, positions: Positions) -> int:
        """Commit the positions that changed since the last commit; returns the number of partitions committed.

        A position with a topic id is refused where the topic has another id by now (by brokers since Kafka 4.1).
        """
        moved = {where: offset for where, offset in positions.items() if self._committed.get(where) != offset}
        if not moved:
            return 0
        rows = [
            {
                "topic": topic,
                "topic_id": topic_id,
                "partition": partition,
                "offset": offset,
                "leader_epoch": -1,
                "metadata": self._metadata,
            }
            for (topic, partition, topic_id), offset in sorted(moved.items(), key=lambda each: each[0][:2])
        ]
        try:
            with Client(self.bootstrap) as client:
                refused = client.commit_offsets(self.group, rows)
        except OSError as error:
            self._say(f"group {self.group} cannot commit: {error}")
            return 0
        places = {(row["topic"], row["partition"]) for row in refused}
        moved = {place: offset for place, offset in moved.items() if place[:2] not in places}
        self._say(*(f"group {self.group}: {r['topic']}-{r['partition']} refused: {r['error']}" for r in refused))
        self._committed.update(moved)
        return len(moved)

    def _say(self, *lines: str) -> None:
        text = "\n".join(lines)
        if text and text != self._failure:  # once, not at every attempt
            sys.stderr.write(f"{text}\n")
        self._failure = text


def end_offsets(bootstrap: str, topics: Iterable[str]) -> dict[tuple[str, int], int]:
    """(topic, partition) -> its log end offset now; deleted topics are left out. Errors: OSError: no connection."""
    with Client(bootstrap) as client:
        known = {str(topic["name"]) for topic in client.topics()}
        rows = client.describe_topics(sorted(known & set(topics)))
    return {(row["name"], each["partition"]): each["end"] for row in rows for each in row["partitions"]}
