"""A client that moves what groups have committed. Only where use_packages() has run."""

from __future__ import annotations

from collections.abc import Iterable

from broker.base.seek import Facts, target
from momus.cli.groups.reset import Reset, ResetError, TopicPartition
from momus.client.kafka_client import EARLIEST, LATEST, Client, Row

INACTIVE = ("Empty", "Dead", None)


class GroupClient(Client):
    """A client for `momus group seek`."""

    def states(self) -> dict[str, str | None]:
        """Group that commits offsets -> its state. Share groups do not."""
        return {row["group"]: row["state"] for row in self.groups() if row["type"] != "share"}

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Partition -> committed offset."""
        rows = self.committed_offsets(group)
        return {(row["topic"], row["partition"]): row["offset"] for row in rows if row["offset"] >= 0}

    def plan(
        self, group: str, reset: Reset, scope: Iterable[tuple[str, list[int] | None]] | None, state: str | None
    ) -> list[Row]:
        """Where each partition goes, in order. `scope` None: all topics that the group has committed.

        Errors: ResetError: the group has members, or a topic or partition is not there; RequestFailedError.
        """
        if state not in INACTIVE:
            raise ResetError(f"group {group} is {state}: stop its members first")
        committed = self.committed(group)
        named = (reset.offsets or {}).get(group, {})
        if reset.offsets is not None:
            scope = [(topic, [partition]) for topic, partition in sorted(named)]
        elif scope is None:
            scope = [(topic, [partition]) for topic, partition in sorted(committed)]
        wanted: dict[str, set[int] | None] = {}
        for topic, partitions in scope:
            before = wanted.get(topic, set())
            wanted[topic] = None if partitions is None or before is None else {*before, *partitions}
        rows = []
        for topic, some in wanted.items():
            facts = self._facts(topic, some, committed, reset)
            for partition, each in sorted(facts.items()):
                try:
                    found = target(reset.word, named.get((topic, partition), reset.number), each)
                except ValueError as error:
                    raise ResetError(f"{topic}-{partition}: {error}") from None
                row = {"group": group, "topic": topic, "partition": partition, "committed": each.committed}
                rows.append({**row, "offset": found.offset, "remark": found.remark})
        return rows

    def _facts(
        self, topic: str, some: set[int] | None, committed: dict[TopicPartition, int], reset: Reset
    ) -> dict[int, Facts]:
        leaders = self.leaders(topic)
        absent = sorted((some or set()) - leaders.keys())
        if absent:
            raise ResetError(f"{topic} has no partition {absent[0]}, but 0 to {len(leaders) - 1}")
        leaders = {each: leader for each, leader in leaders.items() if some is None or each in some}
        first = self._offsets(topic, leaders, EARLIEST)
        end = self._offsets(topic, leaders, LATEST)
        at_time = self._offsets(topic, leaders, reset.number) if reset.word == "time" else {}
        found = [first, end, at_time] if reset.word == "time" else [first, end]
        without = sorted({each for each in leaders for offsets in found if each not in offsets})
        if without:
            raise ResetError(f"{topic}-{without[0]} has no leader")
        return {
            each: Facts(
                committed.get((topic, each)),
                first[each],
                end[each],
                at_time[each] if at_time.get(each, -1) >= 0 else None,
            )
            for each in leaders
        }

    def seek(self, group: str, plan: list[Row]) -> list[Row]:
        """Commit what was planned, all in one request; the rows that were refused."""
        rows = [{**row, "leader_epoch": -1, "metadata": ""} for row in plan]
        return self.commit_offsets(group, rows) if rows else []
