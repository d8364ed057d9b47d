"""Random histories of transactions and of all kinds of groups: what is told before a start is told after it.

All that can be asked is asked, the process ends (or every virtual broker stops and starts), and all is asked again.
At the end new members of the share groups are given what they would be given by the process that did not end.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from budget import short_and_slow
from core_broker import Client
from core_requests import fetch_request
from mixed_requests_kit import GROUPS, NAMES, SHARE_GROUPS, TOPICS, MixedHistory
from stepped_kit import Pace, SteppedWorld, let_load_at_once

from broker.cluster.virtual_nodes import VirtualNodes
from broker.coordinator.offsets import imaging
from broker.upkeep import maintenance
from protocol.messages.consumer_group import ConsumerGroupDescribeRequest
from protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.share_fetch import (
    ShareFetchRequest,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from protocol.messages.share_group import ShareGroupDescribeRequest
from protocol.messages.share_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)

ROUNDS = 4
NOT_HERE = re.compile(r"error_code=(6|16)\b")  # not the leader, not the coordinator
PLACES = [(topic, index) for topic, partitions in TOPICS.items() for index in range(partitions)]
SETTINGS = {
    "share_coordinator_state_topic_num_partitions": "2",
    "transaction_state_log_num_partitions": "3",
    "offsets_topic_num_partitions": "3",
    "group_min_session_timeout_ms": "10",
    "offsets_retention_minutes": "10",
    "offsets_retention_check_interval_ms": "60000",
    "transactional_id_expiration_ms": "1200000",
    "transaction_remove_expired_transaction_cleanup_interval_ms": "100000",
    "share_coordinator_snapshot_update_records_per_snapshot": "3",
}
IMAGES = {"offsets_image_interval_ms": "4000", "log_cleaner_delete_retention_ms": "3000"}


class EveryNode:
    """A connection to each virtual broker; the answer is that of the leader or coordinator."""

    def __init__(self, world: SteppedWorld) -> None:
        self.world = world
        self.clients = [Client(world, node) for node in range(len(world.broker.nodes.up))]

    @property
    def closed(self) -> bool:
        return any(client.closed for client in self.clients)

    def call(self, request: Any, version: int) -> Any:
        for client in self.clients:
            answer = client.call(request, version)
            if not NOT_HERE.search(str(answer)):
                break
        return answer

    def send(self, request: Any, version: int) -> None:
        for client in self.clients:
            client.send(request, version)

    def replies(self) -> list[Any]:
        found = [answer for client in self.clients for answer in client.replies()]
        return sorted(found, key=lambda answer: NOT_HERE.search(str(answer)) is None)

    def leave(self) -> None:
        for client in self.clients:
            client.leave()


class AnswersHistory(MixedHistory):
    """One history, and all the questions."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(seed)
        self.brokers = self.rng.choice([1, 1, 3])
        settings = dict(SETTINGS)
        if self.is_likely(0.4):  # images, and logs that are cleaned
            settings |= IMAGES
            self.PASSES_MS = (100, 3000, 6000, 8000, 12_000, 31_000)
            monkeypatch.setattr(imaging, "LEAST_RECORDS", 1)
            monkeypatch.setattr(maintenance, "LEAST_DIRTY_BYTES", 500)
            let_load_at_once(monkeypatch, 0)
        self.pace = Pace(self.rng, self.rng.choice([None, (0, 1, 3, 10, 100)]))
        self.world = SteppedWorld(self.flush, pace=self.pace, brokers=self.brokers, **settings)
        self.begin()

    def connect(self) -> None:
        super().connect()
        if self.brokers > 1:
            self.client.leave()
            self.client = EveryNode(self.world)
            for producer in self.producers.values():
                producer.client = self.client

    # -- what is asked

    def look(self) -> dict[Any, Any]:
        """Every answer, by what was asked."""
        self.world.settle()
        asker: Any = EveryNode(self.world) if self.brokers > 1 else Client(self.world)
        with self.pace.quick():
            found = self.of_transactions(asker) | self.of_offsets(asker) | self.of_groups(asker) | self.of_logs(asker)
            asker.leave()
            self.world.run()
        return found

    def of_transactions(self, asker: Any) -> dict[Any, Any]:
        answer = asker.call(ListTransactionsRequest(), 2)
        found: dict[Any, Any] = {"transactions": sorted(str(row) for row in answer.transaction_states)}
        for name in NAMES:
            found["transaction", name] = str(asker.call(DescribeTransactionsRequest(transactional_ids=[name]), 0))
        for topic, index in PLACES:
            rows = [DescribeProducersRequestTopicRequest(name=topic, partition_indexes=[index])]
            part = asker.call(DescribeProducersRequest(topics=rows), 0).topics[0].partitions[0]
            start = self.start_of(topic, index)
            for row in part.active_producers:  # of a transaction whose records are all deleted, no file tells the start
                row.current_txn_start_offset = max(row.current_txn_start_offset, start - 1)
            found["producers", topic, index] = sorted(str(row) for row in part.active_producers)
        return found

    def start_of(self, topic: str, index: int) -> int:
        broker = self.world.broker
        return int(broker.partitions.get(broker.metadata.topics[topic], index).log.log_start_offset)

    def of_offsets(self, asker: Any) -> dict[Any, Any]:
        found = {}
        named = [OffsetFetchRequestTopics(name=t, partition_indexes=list(range(n))) for t, n in TOPICS.items()]
        for group in GROUPS:
            for stable in (False, True):
                for topics in (None, named):
                    asked = [OffsetFetchRequestGroup(group_id=group, topics=topics)]
                    answer = asker.call(OffsetFetchRequest(groups=asked, require_stable=stable), 9).groups[0]
                    rows = sorted((row.name, str(sorted(str(p) for p in row.partitions))) for row in answer.topics)
                    found["offsets", group, stable, topics is None] = answer.error_code, rows
        return found

    def of_groups(self, asker: Any) -> dict[Any, Any]:
        found: dict[Any, Any] = {"groups": sorted(str(row) for row in asker.call(ListGroupsRequest(), 5).groups)}
        for group in GROUPS + SHARE_GROUPS:
            found["classic", group] = in_order(asker.call(DescribeGroupsRequest(groups=[group]), 6))
            found["consumer", group] = in_order(asker.call(ConsumerGroupDescribeRequest(group_ids=[group]), 1))
            found["share", group] = in_order(asker.call(ShareGroupDescribeRequest(group_ids=[group]), 1))
        named = [
            DescribeShareGroupOffsetsRequestTopic(topic_name=t, partitions=list(range(n))) for t, n in TOPICS.items()
        ]
        for group in SHARE_GROUPS:
            for topics in (None, named):
                asked = [DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)]
                answer = asker.call(DescribeShareGroupOffsetsRequest(groups=asked), 1)
                found["share offsets", group, topics is None] = in_order(answer)
        return found

    def of_logs(self, asker: Any) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for topic, index in PLACES:
            for committed in (0, 1):
                for timestamp in (-1, -2, -3):
                    part = ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=-1)
                    asked = [ListOffsetsTopic(name=topic, partitions=[part])]
                    answer = asker.call(ListOffsetsRequest(isolation_level=committed, topics=asked), 10)
                    listed = answer.topics[0].partitions[0]
                    found["list", topic, index, timestamp, committed] = str(listed)
                    start = listed.offset if timestamp == -2 else 0
                request = fetch_request(topic, index, start, isolation_level=committed, min_bytes=0)
                got = asker.call(request, 12).responses[0].partitions[0]
                aborted = sorted((row.producer_id, row.first_offset) for row in got.aborted_transactions or [])
                ends = got.error_code, got.high_watermark, got.last_stable_offset, got.log_start_offset
                found["fetch", topic, index, committed] = ends, aborted, bytes(got.records or b"")
        return found

    # -- the process ends

    def start_again(self) -> str:
        if self.brokers > 1 and self.is_likely(0.6):
            self.restart_nodes()
            return "nodes"
        kind = self.rng.choice(["crash", "restart"])
        self.go_on(getattr(self.world, kind)())
        return kind

    def restart_nodes(self) -> None:
        """Every virtual broker stops and starts, one after the other."""
        broker = self.world.broker
        nodes = VirtualNodes(broker.nodes, broker.metadata_shard, broker.turn, broker.partitions)
        self.client.leave()
        for number in range(1, self.brokers + 1):
            node = nodes.find(number)
            for change in (nodes.stop, nodes.start):
                self.world.settle()
                change(node, lambda durable: None)
                self.world.settle()
        self.connect()

    def compare(self) -> None:
        before = self.look()
        self.lines.append(f"--- {(kind := self.start_again())}")
        after = self.look()
        if kind != "restart":  # the state of producers whose records are deleted is kept by a clean stop alone
            before = {key: answer for key, answer in before.items() if not self.is_of_gone_records(key)}
        if self.brokers > 1:  # leaders have moved
            before, after = (_without_epochs(answers) for answers in (before, after))
        moving = [group for group in GROUPS if "Rebalance'" in before["classic", group]]
        for group in moving:  # a member that waits for the others is not written down
            del before["classic", group]
        if moving:
            del before["groups"]
        if before["transactions"] != after["transactions"]:  # one has timed out meanwhile: much else may differ
            assert len(before["transactions"]) == len(after["transactions"])
            return
        wrong = {key: (answer, after[key]) for key, answer in before.items() if answer != after[key]}
        assert not wrong, "\n".join(f"{key}\n  {was}\n  {now}" for key, (was, now) in list(wrong.items())[:8])

    def is_of_gone_records(self, key: Any) -> bool:
        return key[0] == "producers" or (key[0] in ("fetch", "list") and key[1:3] in self.shortened)

    # -- what share groups would be given

    def check_deliveries(self) -> None:
        """By this process, when its members are gone, and by one that starts on what it has written."""
        self.client.leave()
        self.world.settle()
        again = self.world.again(self.world.files.crash())
        again.settle()
        self.world.clock.advance(1000)  # as much as the other start takes
        with self.pace.quick():
            assert self.delivered(self.world) == self.delivered(again)

    def delivered(self, world: SteppedWorld) -> dict[Any, Any]:
        client = Client(world)
        found = {}
        for group in SHARE_GROUPS:
            for topic, index in PLACES:
                got: list[Any] = []
                for number in range(3):
                    part = ShareFetchRequestFetchPartition(partition_index=index, acknowledgement_batches=[])
                    request = ShareFetchRequest(
                        group_id=group,
                        member_id=f"new {topic} {index} {number}",
                        share_session_epoch=0,
                        max_wait_ms=0,
                        min_bytes=0,
                        max_bytes=1 << 20,
                        max_records=500,
                        batch_size=500,
                        share_acquire_mode=1,
                        topics=[ShareFetchRequestFetchTopic(topic_id=self.ids[topic], partitions=[part])],
                    )
                    for row in client.call(request, 2).responses:
                        for each in row.partitions:
                            got.append(each.error_code)
                            for batch in each.acquired_records:
                                offsets = range(batch.first_offset, batch.last_offset + 1)
                                got += [(offset, batch.delivery_count) for offset in offsets]
                found[group, topic, index] = got
        return found


def in_order(answer: Any) -> str:
    """Members and topics of described groups have no order of their own."""
    for group in answer.groups:
        for member in getattr(group, "members", ()):
            for name in ("assignment", "target_assignment"):
                assignment = getattr(member, name, None)
                if hasattr(assignment, "topic_partitions"):
                    assignment.topic_partitions.sort(key=lambda row: row.topic_name)
        getattr(group, "members", []).sort(key=lambda member: member.member_id)
        getattr(group, "topics", []).sort(key=lambda row: row.topic_name)
    return str(answer)


def _without_epochs(answers: dict[Any, Any]) -> dict[Any, Any]:
    return {
        key: re.sub(r"leader_epoch=\d+", "leader_epoch", answer) if isinstance(answer, str) else answer
        for key, answer in answers.items()
        if key[0] != "share offsets"
    }


@pytest.mark.parametrize("seed", short_and_slow(range(500), 40))
def test_what_is_told_does_not_change_with_a_start(seed, monkeypatch):
    history = AnswersHistory(seed, monkeypatch)
    with history.told():
        for _ in range(ROUNDS):
            history.steps(history.rng.randrange(5, 60))
            history.compare()
        if history.brokers == 1:
            history.check_deliveries()
