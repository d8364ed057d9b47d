"""Fills a cluster with what files say: all is checked against the cluster first, and then done as clients would ask.

Order: the clock, users, ACLs, quotas, schemas, topics with their records, committed offsets, faults. What the control
plane has a call for is done by that call. Records are appended in batches, so what is done of a topic is known by where
its partitions end: a load that was cut off by a kill goes on there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from broker.asks import groups, topics
from broker.asks.ask import label
from broker.asks.records import produce
from broker.config.authorizer_setting import is_authorizer_set
from broker.faults.errors import FaultError
from broker.load.problems import LoadError, Problem
from broker.registry.errors import RegistryError
from broker.shell.asking import Asking, ask
from broker.shell.control.calls import records as calls
from broker.shell.control.calls.acls import add_acls
from broker.shell.control.http import in_slices
from broker.shell.control.of_cluster.clock import LAST_MS, move_clock
from broker.shell.control.routes import Call, RefusedError
from broker.shell.load.batches import RecordBatch, batches_of, rules_of, spreading
from broker.shell.load.credentials import add_user, check_user_item
from broker.shell.load.present import entity_name, find_present, places
from broker.shell.load.quotas import alter_quotas

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.load.items import Load, OffsetItem, TopicItem
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.load.present import Present
    from broker.shell.load.schemas import Schemas

logger = logging.getLogger("momus.load")

SLICE: Final = 1  # batches made before clients are served again: one of 500 records takes 2 ms


class Filling:
    """One load into one cluster.

    is_resumed   an earlier process has begun it, and no client has been served since.
    present      what was there before that one began; None: it is found out.
    """

    def __init__(
        self, cluster: ClusterServer, load: Load, *, is_resumed: bool = False, present: Present | None = None
    ) -> None:
        self._cluster = cluster
        self._load = load
        self._is_resumed = is_resumed
        self._known = present
        self.present: Present = {}
        self._schemas: Schemas | None = None
        self._batches: dict[tuple[str, int], list[RecordBatch]] = {}
        self.counts = {"topics": 0, "records": 0, "groups": 0, "users": 0, "acls": 0, "quotas": 0, "schemas": 0}
        self.counts["faults"] = 0

    async def run(self, if_present: str, begin: Callable[[Present], None] = lambda present: None) -> dict[str, int]:
        """Check all, then do it. Returns what was done, in numbers.

        if_present   fail: what is there already is an error; skip: it stays as it is.
        begin        is called between the check and the first change.
        Errors:      LoadError: nothing was done. RefusedError, OSError: some of it was.
        """
        try:
            await self._check(if_present)
            begin(self.present)
            await self._do()
        finally:
            if self._schemas is not None:
                self._schemas.close()
        return {what: number for what, number in self.counts.items() if number}

    # -- the check

    async def _check(self, if_present: str) -> None:
        """Errors: LoadError."""
        while self._cluster.broker.is_loading:  # the offsets of groups are not known before
            await asyncio.sleep(0.001)
        load = self._load
        if load.schemas:
            from broker.shell.load.schemas import Schemas  # 15 ms: few loads have schemas

            self._schemas = Schemas(self._cluster)
        self.present = await find_present(self._cluster, load, self._schemas) if self._known is None else self._known
        problems = self._check_present(if_present)
        for topic in load.topics:
            problems += await self._check_topic(topic)
        counts = self._partition_counts()
        for group in load.groups:
            problems += [problem for offset in group.offsets if (problem := self._check_offset(offset, counts))]
            await asyncio.sleep(0)  # of ten thousand groups each lets others have their turn
        if load.schemas and self._schemas is not None:
            problems += await self._schemas.check(self._new("subject", load.schemas, lambda each: each.subject))
        problems += self._check_clients()
        problems += await self._check_quotas()
        problems += self._check_clock() + self._check_faults()
        if problems:
            raise LoadError(problems)

    def _check_present(self, if_present: str) -> list[Problem]:
        if if_present == "skip" or self._is_resumed:
            return []
        where = places(self._load)
        return [
            where[kind][name].problem(f"{kind} {name} is there already: --load-if-present skip leaves it as it is")
            for kind, names in self.present.items()
            for name in names
        ]

    def _new(self, kind: str, items: list[Any], name: Callable[[Any], str]) -> list[Any]:
        """Those that are to be made, or gone on with."""
        present = set(self.present.get(kind, ()))
        return [each for each in items if name(each) not in present]

    async def _check_topic(self, topic: TopicItem) -> list[Problem]:
        if topic.name in self.present["topic"]:
            return []
        cluster = self._cluster
        there = cluster.broker.metadata.topics.get(topic.name)
        if there is None:
            wanted = topics.new_topic(topic.name, topic.partitions, self._replicas(topic), topic.config)
            (row,) = await ask(cluster, topics.create([wanted], only_check=True))
            if row.error_code:
                message = row.error_message or label(row.error_code)
                key = next((("config", key) for key in topic.config if key in message), ())
                return [topic.where.problem(message, *key)]
            count = row.num_partitions
        else:
            count = len(there.partitions)
            if topic.partitions not in (-1, count):
                return [topic.where.problem(f"the topic that was made before has {count} partitions", "partitions")]
        return await self._make_batches(topic, count)

    async def _make_batches(self, topic: TopicItem, count: int) -> list[Problem]:
        cluster = self._cluster
        rules, now_ms = rules_of(cluster.config, topic.config), self._now_ms()
        by_partition, problems = await in_slices(spreading(topic, count))
        made = 0
        for partition, rows in sorted(by_partition.items()):
            place = f"{topic.name}-{partition}"
            done = self._end_of(topic.name, partition)
            if done > len(rows):
                problems.append(topic.where.problem(f"{place} has {done} records, and {len(rows)} are to be loaded"))
                continue
            mine = self._batches[(topic.name, partition)] = []
            for batch, wrong in batches_of(rows[done:], rules, now_ms, place):
                problems += wrong
                mine.append(batch)
                made += 1
                if made % SLICE == 0:
                    await asyncio.sleep(0)
        return problems

    def _now_ms(self) -> int:
        """The time of records that have none: that of the clock once it is moved."""
        now_ms, clock = self._cluster.broker.turn.env.clock.now_ms(), self._load.clock
        if clock is None:
            return now_ms
        return (now_ms if clock.set_ms is None else clock.set_ms) + clock.advance_ms

    def _end_of(self, topic: str, partition: int) -> int:
        """How many records an earlier process has appended."""
        broker = self._cluster.broker
        there = broker.metadata.topics.get(topic)
        return 0 if there is None else int(broker.partitions.get(there, partition).log.end_offset)

    def _replicas(self, topic: TopicItem) -> int:
        """As many as are asked for, if there are brokers for them."""
        return min(topic.replicas, len(self._cluster.broker.metadata.node_ids))

    def _partition_counts(self) -> dict[str, int]:
        """How many partitions each topic has, or will have."""
        counts = {name: len(topic.partitions) for name, topic in self._cluster.broker.metadata.topics.items()}
        default = self._cluster.config.num_partitions
        for topic in self._load.topics:
            counts.setdefault(topic.name, default if topic.partitions < 0 else topic.partitions)
        return counts

    def _check_offset(self, offset: OffsetItem, counts: dict[str, int]) -> Problem | None:
        if offset.topic not in counts:
            return offset.where.problem(f"there is no topic {offset.topic}, here or in the cluster", "topic")
        if offset.partition >= counts[offset.topic]:
            why = f"{offset.topic} has no partition {offset.partition}, but 0 to {counts[offset.topic] - 1}"
            return offset.where.problem(why, "partition")
        if len(offset.metadata.encode()) > (limit := self._cluster.config.offset_metadata_max_bytes):
            return offset.where.problem(f"has more than {limit} bytes: offset.metadata.max.bytes", "metadata")
        return None

    def _check_clients(self) -> list[Problem]:
        """Users and ACLs need a cluster that asks who its clients are."""
        load, cluster = self._load, self._cluster
        problems = [problem for user in load.users if (problem := check_user_item(cluster, user))]
        if load.acls and not is_authorizer_set(cluster.config):
            why = "there is no authorizer: --security, security= or authorizer.class.name sets one"
            problems.append(load.acls[0].where.problem(why))
        return problems

    async def _check_quotas(self) -> list[Problem]:
        quotas = self._new("quota", self._load.quotas, lambda each: entity_name(each.entity))
        refused = await alter_quotas(self._cluster, quotas, validate_only=True)
        return [quota.where.problem(why) for quota, why in refused]

    def _check_clock(self) -> list[Problem]:
        clock, now_ms = self._load.clock, self._cluster.broker.turn.env.clock.now_ms()
        if clock is not None and (clock.set_ms or now_ms) < now_ms:
            return [clock.where.problem(f"the clock is at {now_ms} and moves only forward", "set")]
        if clock is not None and (clock.set_ms or now_ms) + clock.advance_ms > LAST_MS:
            return [clock.where.problem("the clock ends with the year 9999")]
        return []

    def _check_faults(self) -> list[Problem]:
        if not self._load.faults:
            return []
        from broker.faults.fault import parse  # 2 ms: few loads have faults
        from storage.files.env import Rng  # there already, 0 ms

        problems, names = [], {each.name for each in self._cluster.broker.faults.all()}
        for fault in self._load.faults:
            try:
                name = parse(fault.body, f"fault {len(names)}".replace(" ", "-0"), Rng, lambda: 0).name
                if "name" in fault.body and name in names:
                    problems.append(fault.where.problem(f"a fault named {name} is set already", "name"))
                names.add(name)
            except FaultError as error:
                problems.append(fault.where.problem(str(error)))
        return problems

    # -- the changes

    async def _do(self) -> None:
        """Errors: RefusedError, RegistryError, OSError."""
        load, cluster, counts = self._load, self._cluster, self.counts
        await self._move_clock()
        for user in self._new("user", load.users, lambda each: each.name):
            counts["users"] += await add_user(cluster, user)
        if load.acls:
            await add_acls(cluster, Call({}, {}, {"acls": [each.body for each in load.acls]}))
            counts["acls"] = len(load.acls)
        quotas = self._new("quota", load.quotas, lambda each: entity_name(each.entity))
        for _, why in await alter_quotas(cluster, quotas):
            raise RefusedError(409, why)
        counts["quotas"] = len(quotas)
        for schema in self._new("subject", load.schemas, lambda each: each.subject):
            assert self._schemas is not None
            try:
                await self._schemas.register(schema)
            except RegistryError as error:
                raise RefusedError(409, schema.where.problem(str(error)).sentence()) from None
            counts["schemas"] += 1
        for topic in self._new("topic", load.topics, lambda each: each.name):
            await self._make_topic(topic)
        for group in self._new("group", load.groups, lambda each: each.name):
            await self._commit(group.name, group.offsets)
            counts["groups"] += 1
        for fault in load.faults:
            cluster.broker.faults.add(fault.body)
            counts["faults"] += 1

    async def _move_clock(self) -> None:
        clock = self._load.clock
        if clock is None:
            return
        moves: list[dict[str, object]] = []
        if clock.set_ms is not None:
            moves.append({"set": clock.set_ms})
        if clock.advance_ms:
            moves.append({"advance_ms": clock.advance_ms})
        if clock.freeze:
            moves.append({"freeze": True})
        for body in moves:
            await move_clock(self._cluster, Call({}, {}, body))

    async def _make_topic(self, topic: TopicItem) -> None:
        cluster = self._cluster
        if topic.name not in cluster.broker.metadata.topics:
            replicas = self._replicas(topic)
            if replicas < topic.replicas:
                logger.warning(
                    "%s: topic %s gets replicas: %d, not %d: there are no more brokers",
                    topic.where.text.name,
                    topic.name,
                    replicas,
                    topic.replicas,
                )
            body = {"name": topic.name, "partitions": topic.partitions, "replicas": replicas, "config": topic.config}
            await calls.create_topic(cluster, Call({}, {}, body))
            self.counts["topics"] += 1
        with Asking(cluster) as asking:
            for partition in range(len(cluster.broker.metadata.topics[topic.name].partitions)):
                for batch in self._batches.pop((topic.name, partition), ()):
                    await asking.ask(produce(topic.name, partition, batch.data))
                    self.counts["records"] += batch.size

    async def _commit(self, group: str, offsets: list[OffsetItem]) -> None:
        commits = [groups.Commit(each.topic, each.partition, each.offset, each.metadata) for each in offsets]
        for refused in await ask(self._cluster, groups.commit(group, commits)) if commits else ():
            raise RefusedError(409, f"group {group:.100}: {refused}")
