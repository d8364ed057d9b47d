"""Commits offsets to a broker as a group without members, and asks a broker for log end offsets.

The one file of the pipeline that speaks Kafka's protocol without Spark's connector; it uses the command line's client.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from momus.offset_client import OffsetClient

Positions: TypeAlias = Mapping[tuple[str, int], int]  # (topic, partition) -> the next offset


class GroupOffsets:
    """One group at one broker. A failed commit is reported on standard error and tried again with the next one."""

    def __init__(self, bootstrap: str, group: str, metadata: str = "") -> None:
        self.bootstrap = bootstrap
        self.group = group
        self._metadata = metadata
        self._committed: dict[tuple[str, int], int] = {}
        self._failure = ""

    def commit(self, positions: Positions) -> int:
        """Commit the positions that changed since the last commit; returns the number of partitions committed."""
        moved = {where: offset for where, offset in positions.items() if self._committed.get(where) != offset}
        if not moved:
            return 0
        rows = [
            {"topic": topic, "partition": partition, "offset": offset, "leader_epoch": -1, "metadata": self._metadata}
            for (topic, partition), offset in sorted(moved.items())
        ]
        try:
            with OffsetClient(self.bootstrap) as client:
                refused = client.commit_offsets(self.group, rows)
        except OSError as error:
            self._say(f"group {self.group} cannot commit: {error}")
            return 0
        for row in refused:
            moved.pop((row["topic"], row["partition"]))
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
    with OffsetClient(bootstrap) as client:
        known = {str(topic["name"]) for topic in client.topics()}
        rows = client.describe_topics(sorted(known & set(topics)))
    return {(row["name"], each["partition"]): each["end"] for row in rows for each in row["partitions"]}
