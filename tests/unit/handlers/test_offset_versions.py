"""OffsetCommit v0-v10 and OffsetFetch v0-v10, version by version, at a whole broker."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request
from txn_kit import Producer

from protocol.errors import ErrorCode
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

COMMITS, FETCHES = range(11), range(11)
UNKNOWN, UNKNOWN_ID, TOO_LARGE = 3, 100, 12


class Offsets:
    """A client that commits and fetches by name, whatever the version has."""

    def __init__(self, **settings: str) -> None:
        self.world = World("os", **settings)
        self.client = Client(self.world)
        self.ids = {name: make_topic(self.client, name, 4) for name in ("t", "u")}

    def commit(
        self, version: int, offsets: dict[int, int], group_id: str = "g", topic: str = "t", **fields: Any
    ) -> dict[int, int]:
        """Error codes by partition."""
        metadata, epoch, time = fields.pop("metadata", ""), fields.pop("epoch", -1), fields.pop("time", -1)
        rows = [
            OffsetCommitRequestPartition(
                partition_index=p,
                committed_offset=offset,
                committed_leader_epoch=epoch if version >= 6 else -1,
                commit_timestamp=time,
                committed_metadata=metadata,
            )
            for p, offset in offsets.items()
        ]
        topics = [OffsetCommitRequestTopic(name=topic, topic_id=self.ids.get(topic, b"?" * 16), partitions=rows)]
        request = OffsetCommitRequest(group_id=group_id, topics=topics, **{"member_id": "", **fields})
        answer = self.client.call(request, version)
        assert answer.topics[0].name == (topic if version < 10 else "")
        return {p.partition_index: p.error_code for p in answer.topics[0].partitions}

    def fetch(
        self, version: int, wanted: dict[str, list[int]] | None, group_id: str = "g"
    ) -> dict[str, dict[int, tuple[int, int, str, int]]]:
        """(offset, leader epoch, metadata, error) by topic and partition."""
        if version < 8:
            topics = wanted and [OffsetFetchRequestTopic(name=n, partition_indexes=p) for n, p in wanted.items()]
            answer = self.client.call(OffsetFetchRequest(group_id=group_id, topics=topics), version)
            assert answer.error_code == 0
            rows = answer.topics
        else:
            asked = wanted and [
                OffsetFetchRequestTopics(name=n, topic_id=self.ids.get(n, b"?" * 16), partition_indexes=p)
                for n, p in wanted.items()
            ]
            groups = [OffsetFetchRequestGroup(group_id=group_id, topics=asked)]
            (group,) = self.client.call(OffsetFetchRequest(groups=groups), version).groups
            assert (group.group_id, group.error_code) == (group_id, 0)
            rows = group.topics
        names = {topic_id: name for name, topic_id in self.ids.items()}
        return {
            (row.name if version < 10 else names.get(row.topic_id, "?")): {
                p.partition_index: (p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
                for p in row.partitions
            }
            for row in rows
        }

    def stored(self, partition: int = 0, group_id: str = "g", topic: str = "t") -> Any:
        """What the coordinator has."""
        return self.world.broker.groups.of(group_id).machine.offsets.get(group_id, topic, partition)


@pytest.fixture
def offsets():
    return Offsets()


@pytest.mark.parametrize("commit", COMMITS)
def test_offset_committed_in_any_version_is_fetched_in_any(offsets, commit):
    assert offsets.commit(commit, {0: 7, 3: 9}, metadata="m", epoch=5) == {0: 0, 3: 0}

    def check() -> None:
        for fetch in FETCHES:
            epoch = 5 if commit >= 6 and fetch >= 5 else -1
            wanted = {"t": {3: (9, epoch, "m", 0), 0: (7, epoch, "m", 0)}}
            assert offsets.fetch(fetch, {"t": [3, 0]}) == wanted, f"fetched in version {fetch}"

    check()
    again = offsets.world.crash()
    offsets.world, offsets.client = again, Client(again)
    check()


@pytest.mark.parametrize("version", FETCHES)
def test_partition_without_a_commit_is_minus_one_and_an_error_only_in_version_0(offsets, version):
    offsets.commit(8, {0: 7})
    error = UNKNOWN if version == 0 else 0
    assert offsets.fetch(version, {"t": [1], "u": [0]}) == {
        "t": {1: (-1, -1, "", error)},
        "u": {0: (-1, -1, "", error)},
    }
    assert offsets.fetch(version, {"t": [0, 77]})["t"][77] == (-1, -1, "", error)
    assert offsets.fetch(version, {"t": [0]}, "nobody") == {"t": {0: (-1, -1, "", error)}}


@pytest.mark.parametrize("version", range(2, 11))
def test_fetch_of_all_topics_has_what_is_committed_and_nothing_else(offsets, version):
    assert offsets.fetch(version, None) == {}
    offsets.commit(8, {0: 7, 2: 8})
    offsets.commit(8, {1: 9}, topic="u")
    offsets.commit(8, {1: 1}, "other")
    assert offsets.fetch(version, None) == {
        "t": {0: (7, -1, "", 0), 2: (8, -1, "", 0)},
        "u": {1: (9, -1, "", 0)},
    }


@pytest.mark.parametrize("version", [0, 1])
def test_fetch_of_no_topics_before_version_2_has_none(offsets, version):
    offsets.commit(8, {0: 7})
    assert offsets.fetch(version, {}) == {}


@pytest.mark.parametrize("version", COMMITS)
def test_commit_to_unknown_topics_and_partitions_is_refused_there_alone(offsets, version):
    unknown = UNKNOWN_ID if version >= 10 else UNKNOWN
    assert offsets.commit(version, {0: 1}, topic="none") == {0: unknown}
    assert offsets.commit(version, {0: 1, 4: 1, -1: 1, 3: 2}) == {0: 0, 4: UNKNOWN, -1: UNKNOWN, 3: 0}
    assert offsets.fetch(9, None) == {"t": {0: (1, -1, "", 0), 3: (2, -1, "", 0)}}


def test_fetch_by_an_id_that_nobody_has_is_an_error_of_its_partitions(offsets):
    assert offsets.fetch(10, {"none": [0, 5]}) == {"?": {0: (-1, -1, "", UNKNOWN_ID), 5: (-1, -1, "", UNKNOWN_ID)}}


def test_offset_of_a_topic_that_had_the_name_before_is_not_fetched_by_id(offsets):
    from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

    offsets.commit(10, {0: 7})
    wanted = DeleteTopicState(name="t", topic_id=bytes(16))
    offsets.client.call(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6)
    offsets.ids["t"] = make_topic(offsets.client, "t", 4)
    assert offsets.fetch(10, {"t": [0]}) == {"t": {0: (-1, -1, "", 0)}}


@pytest.mark.parametrize("version", COMMITS)
def test_metadata_is_counted_in_utf16_and_refused_where_it_is_too_long_alone(offsets, version):
    for text, code in (
        ("x" * 4096, 0),
        ("x" * 4097, TOO_LARGE),
        ("é" * 4096, 0),  # 8192 bytes, 4096 units
        ("😀" * 2048, 0),  # two units each
        ("😀" * 2048 + "x", TOO_LARGE),
        ("😀" * 2049, TOO_LARGE),
    ):
        assert offsets.commit(version, {0: 1}, metadata=text) == {0: code}
        if not code:
            assert offsets.fetch(7, {"t": [0]})["t"][0][2] == text
    rows = [
        OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="x" * 5000),
        OffsetCommitRequestPartition(partition_index=1, committed_offset=6, committed_metadata="ok"),
    ]
    topics = [OffsetCommitRequestTopic(name="t", topic_id=offsets.ids["t"], partitions=rows)]
    request = OffsetCommitRequest(group_id="g", member_id="", topics=topics)
    answer = offsets.client.call(request, version)
    assert [p.error_code for p in answer.topics[0].partitions] == [TOO_LARGE, 0]
    assert offsets.fetch(7, {"t": [0, 1]})["t"][1] == (6, -1, "ok", 0)


def test_metadata_limit_is_the_broker_s_setting():
    offsets = Offsets(offset_metadata_max_bytes="10")
    assert offsets.commit(8, {0: 1}, metadata="x" * 10) == {0: 0}
    assert offsets.commit(8, {0: 1}, metadata="x" * 11) == {0: TOO_LARGE}


@pytest.mark.parametrize("version", COMMITS)
def test_null_metadata_is_empty(offsets, version):
    assert offsets.commit(version, {0: 1}, metadata=None) == {0: 0}
    assert offsets.fetch(7, {"t": [0]})["t"][0][2] == ""


def test_commit_time_of_version_1_is_the_client_s_and_the_broker_s_where_it_gives_none(offsets):
    now = offsets.world.clock.now_ms()
    offsets.commit(1, {0: 1}, time=12345)
    assert offsets.stored().commit_timestamp_ms == 12345
    offsets.commit(1, {0: 1}, time=-1)
    assert offsets.stored().commit_timestamp_ms == now
    offsets.commit(2, {0: 1}, time=12345)  # has no such field
    assert offsets.stored().commit_timestamp_ms == now


@pytest.mark.parametrize("version", [2, 3, 4])
def test_retention_of_versions_2_to_4_gives_the_offset_an_expiry_of_its_own(offsets, version):
    now = offsets.world.clock.now_ms()
    offsets.commit(version, {0: 7}, retention_time_ms=5_000_000)
    stored = offsets.stored()
    assert stored.expire_timestamp_ms == now + 5_000_000
    offsets.commit(version, {1: 8}, retention_time_ms=-1)
    assert offsets.stored(1).expire_timestamp_ms == -1
    offsets.world.advance(4_000_000)
    assert offsets.fetch(7, None)["t"].keys() == {0, 1}
    offsets.world.advance(2_000_000)
    assert offsets.fetch(7, None)["t"].keys() == {1}
    again = offsets.world.crash()
    offsets.world, offsets.client = again, Client(again)
    assert offsets.fetch(7, None)["t"].keys() == {1}


def test_longest_retention_is_for_ever(offsets):
    offsets.commit(2, {0: 7}, retention_time_ms=2**63 - 1)
    assert offsets.stored().expire_timestamp_ms == 2**63 - 1
    assert offsets.fetch(7, None)["t"].keys() == {0}


@pytest.mark.parametrize("version", [5, 8, 10])
def test_retention_is_not_there_from_version_5_on(offsets, version):
    offsets.commit(version, {0: 7}, retention_time_ms=5_000)
    assert offsets.stored().expire_timestamp_ms == -1


def test_leader_epoch_is_told_from_fetch_version_5_on(offsets):
    offsets.commit(6, {0: 7}, epoch=3)
    for version in FETCHES:
        assert offsets.fetch(version, {"t": [0]})["t"][0][1] == (3 if version >= 5 else -1)


@pytest.mark.parametrize("version", range(8, 11))
def test_several_groups_in_one_request_are_answered_in_its_order(offsets, version):
    for n, group_id in enumerate(("g", "h", "ünï-😀")):
        offsets.commit(8, {0: n}, group_id)
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("ünï-😀", "nobody", "g", "h", "g")]
    answer = offsets.client.call(OffsetFetchRequest(groups=groups), version)
    assert [group.group_id for group in answer.groups] == ["ünï-😀", "nobody", "g", "h", "g"]
    found = [group.topics[0].partitions[0].committed_offset if group.topics else None for group in answer.groups]
    assert found == [2, None, 0, 1, 0]


@pytest.mark.parametrize("version", COMMITS)
def test_commit_of_nothing_is_answered_with_nothing(offsets, version):
    request = OffsetCommitRequest(group_id="g", member_id="", topics=[])
    assert offsets.client.call(request, version).topics == []


@pytest.mark.parametrize("version", range(1, 11))
def test_generation_without_a_group_is_refused_in_the_words_of_the_version(offsets, version):
    codes = offsets.commit(version, {0: 1}, generation_id_or_member_epoch=1, member_id="m")
    assert codes == {0: ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION}
    assert offsets.fetch(9, None) == {}


def test_version_0_has_no_generation_and_is_always_a_commit_from_outside(offsets):
    assert offsets.commit(0, {0: 1}) == {0: 0}


@pytest.mark.parametrize("version", [0, 5, 8])
def test_any_of_several_brokers_takes_and_tells_offsets(version):
    world = World("os", brokers=3)
    make_topic(Client(world), "t", 4)
    clients = [Client(world, node) for node in range(3)]
    for n, client in enumerate(clients):
        answer = client.call(commit_request("g", {n: n}), version)
        assert answer.topics[0].partitions[0].error_code == 0
    for client in clients:
        question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        (row,) = client.call(question, 8).groups[0].topics
        assert {p.partition_index: p.committed_offset for p in row.partitions} == {0: 0, 1: 1, 2: 2}


def test_only_the_coordinator_takes_and_tells_offsets_when_it_is_told_so():
    world = World("os", brokers=3, offsets_any_broker="false")
    make_topic(Client(world), "t", 4)
    leader = world.broker.groups.coordinator_of("g")
    for n, node in enumerate(world.broker.nodes.up):
        wanted = 0 if node.node_id == leader else ErrorCode.NOT_COORDINATOR
        client = Client(world, n)
        assert client.call(commit_request("g", {n: n}), 8).topics[0].partitions[0].error_code == wanted
        question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        assert client.call(question, 8).groups[0].error_code == wanted
        assert client.call(OffsetFetchRequest(group_id="g", topics=None), 5).error_code == wanted


@pytest.mark.parametrize("version", range(8))
def test_fetch_that_is_refused_has_one_error_from_version_2_on_and_one_a_partition_before(version):
    world = World("os", brokers=2, offsets_any_broker="false")
    client = Client(world, int(world.broker.nodes.up[0].node_id == world.broker.groups.coordinator_of("g")))
    wanted = [OffsetFetchRequestTopic(name="t", partition_indexes=[3, 0])]
    answer = client.call(OffsetFetchRequest(group_id="g", topics=wanted), version)
    rows = [
        (row.name, p.partition_index, p.committed_offset, p.metadata, p.error_code)
        for row in answer.topics
        for p in row.partitions
    ]
    if version >= 2:
        assert (answer.error_code, rows) == (ErrorCode.NOT_COORDINATOR, [])
    else:
        assert rows == [("t", index, -1, "", ErrorCode.NOT_COORDINATOR) for index in (3, 0)]


@pytest.mark.parametrize(("stable", "found"), [(False, (7, 0)), (True, (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT))])
def test_version_7_tells_the_offset_before_a_pending_one_unless_it_asks_for_stable_ones(offsets, stable, found):
    offsets.commit(8, {0: 7})
    producer = Producer(offsets.client)
    producer.init()
    producer.send_offsets({0: 9})
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    answer = offsets.client.call(OffsetFetchRequest(group_id="g", topics=topics, require_stable=stable), 7)
    (part,) = answer.topics[0].partitions
    assert (part.committed_offset, part.error_code) == found


def test_frames_of_the_original_proposal_written_by_hand_are_served(offsets):
    commit = (
        b"\x00\x08\x00\x00\x00\x00\x00\x07\x00\x02me"  # OffsetCommit v0, correlation id 7, client "me"
        b"\x00\x01g\x00\x00\x00\x01\x00\x01t"  # group, one topic
        b"\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x2a\x00\x04note"  # partition 2: 42, "note"
    )
    fetch = (
        b"\x00\x09\x00\x00\x00\x00\x00\x08\x00\x02me"
        b"\x00\x01g\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x03"  # partitions 2 and 3
    )
    received = len(offsets.client.transport.received)
    for raw in (commit, fetch):
        offsets.client.send_bytes(len(raw).to_bytes(4, "big") + raw)
    offsets.world.run()
    assert bytes(offsets.client.transport.received[received:]) == (
        b"\x00\x00\x00\x15\x00\x00\x00\x07\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00"
        b"\x00\x00\x00\x33\x00\x00\x00\x08\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02"
        b"\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x2a\x00\x04note\x00\x00"
        b"\x00\x00\x00\x03\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x03"
    )
