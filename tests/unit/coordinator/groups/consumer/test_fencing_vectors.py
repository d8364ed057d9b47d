"""KAFKA-19779's vectors through whole handlers: who may commit at which epoch, live and after a restart.

Group g: member m at epoch 9 (8 before), P0 assigned at 5, P1 at 7, P2 pending since 4; P3 and 4 are nobody's.
Group c: a member c of the classic protocol at 9, P0 assigned at 5. Group s: a static member s that left for a moment.
"""

from __future__ import annotations

import pytest
from consumer_kit import Groups
from txn_kit import Producer

from broker.coordinator.groups.common.records import REVOCATION_EPOCH_TAG
from broker.coordinator.groups.consumer.member import (
    STABLE,
    UNREVOKED_PARTITIONS,
    ClassicMetadata,
    CurrentAssignment,
    MemberMetadata,
)
from broker.coordinator.groups.consumer.records import (
    current_record,
    group_record,
    member_record,
    target_epoch_record,
    target_record,
)
from protocol.errors import ErrorCode
from protocol.messages.coordinator_records import decode_record
from protocol.record_batch import iter_records

LONG = "x" * 4097
RANGE = ClassicMetadata(45_000, (("range", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"),))


def put_group(
    groups: Groups, group_id: str, member_id: str, current: CurrentAssignment, epoch: int = 9, **member_metadata: object
) -> None:
    """Log a group of one member."""
    name = MemberMetadata(
        client_id="client",
        client_host="/127.0.0.1",
        topic_names=frozenset({"t"}),
        rebalance_timeout_ms=60_000,
        **member_metadata,
    )
    groups.world.broker.groups.of(group_id).require()
    groups.world.broker.groups.of(group_id).append(
        [
            member_record(group_id, member_id, name),
            group_record(group_id, epoch, 0),
            target_record(group_id, member_id, {t: tuple(p) for t, p in current.assigned.items()}),
            target_epoch_record(group_id, epoch, 0),
            current_record(group_id, member_id, current),
        ]
    )
    groups.world.run()


def world(**settings: str) -> Groups:
    groups = Groups({"t": 5}, **settings)
    t = groups.ids["t"]
    assigned = {t: {0: 5, 1: 7}}
    put_group(groups, "g", "m", CurrentAssignment(9, 8, UNREVOKED_PARTITIONS, assigned, {t: {2: 4}}))
    put_group(groups, "c", "c", CurrentAssignment(9, 8, STABLE, {t: {0: 5}}), classic=RANGE)
    put_group(groups, "s", "s", CurrentAssignment(-2, 8, STABLE, {t: {0: 0}}), instance_id="i")
    return groups


@pytest.fixture(params=["live", "restarted", "without shortcuts"])
def g(request: pytest.FixtureRequest) -> Groups:
    groups = world(shortcuts=request.param != "without shortcuts")
    if request.param == "restarted":
        groups.restart()
    return groups


COMMITS = [
    (1, "m", 9, [0], 0),
    (2, "m", 9, [3], 0),
    (3, "m", 8, [0], 0),
    (4, "m", 7, [1], 0),
    (5, "m", 6, [1], 113),
    (6, "m", 5, [0], 0),
    (6, "m", 4, [0], 113),
    (7, "m", 4, [2], 0),
    (8, "m", 3, [2], 113),
    (9, "m", 8, [3], 113),
    (10, "m", 10, [0], 113),
    (11, "m", 6, [0, 1], [113, 113]),
    (15, "", -1, [0], 25),
    (16, "m", -1, [0], 113),
    (17, "x", 9, [0], 25),
    (24, "m", 8, [0, 99], [0, 3]),
]


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(("vector", "member_id", "epoch", "partitions", "wanted"), COMMITS)
def test_commit_at_an_epoch(g, vector, member_id, epoch, partitions, wanted, version):
    assert g.commit(member_id, epoch, *partitions, version=version) == wanted
    codes = wanted if isinstance(wanted, list) else [wanted]
    accepted = {p for p, code in zip(partitions, codes, strict=True) if code == 0}
    assert set(g.committed()) == accepted


def test_commit_repeated_and_then_stale_is_refused_by_the_shortcut_too(g):
    assert [g.commit("m", 8, 0), g.commit("m", 8, 0), g.commit("m", 4, 0), g.commit("m", 9, 0)] == [0, 0, 113, 0]


def test_oversized_metadata_is_its_own_partition_alone(g):
    assert g.commit("m", 6, 0, 1, metadata={1: LONG}) == [0, 12]
    assert set(g.committed()) == {0}


def test_oversized_metadata_does_not_save_a_stale_request(g):
    assert g.commit("m", 6, 0, 1, metadata={0: LONG}) == [113, 113]
    assert g.committed() == {}


def test_commit_before_version_9_of_a_consumer_protocol_member_is_unsupported(g):
    assert [g.commit("m", 9, 0, version=v) for v in (2, 7, 8)] == [35, 35, 35]


@pytest.mark.parametrize(("epoch", "code"), [(6, 0), (4, 22), (10, 22), (9, 0)])
def test_classic_member_may_commit_with_any_version_and_is_told_illegal_generation(g, epoch, code):
    assert [g.commit("c", epoch, 0, version=v, group_id="c") for v in (7, 8, 9)] == [code] * 3


@pytest.mark.parametrize(("epoch", "code"), [(-2, 0), (9, 113), (-1, 113)])
def test_static_member_that_left_for_a_moment(g, epoch, code):
    assert g.commit("s", epoch, 0, group_id="s") == code


def test_static_member_that_was_replaced_is_unknown(g):
    g.ids = {"t": g.world.broker.metadata.topics["t"].topic_id}
    again = g.member("s2", group_id="s", instance="i")
    assert again.join().error_code == 0
    assert g.commit("s", again.epoch, 0, group_id="s") == 25
    assert again.commit(0) == 0


TXN_COMMITS = [
    (18, "m", 9, 0, 0),
    (18, "m", 8, 0, 0),
    (18, "m", 5, 0, 0),
    (19, "m", 6, 1, 22),
    (20, "m", 10, 0, 22),
    (21, "m", 8, 3, 22),
    (22, "", -1, 0, 0),
    (23, "m", -1, 0, 22),
    (0, "x", 9, 0, 25),
]


@pytest.mark.parametrize(("vector", "member_id", "epoch", "partition", "code"), TXN_COMMITS)
@pytest.mark.parametrize("version", [3, 5, 6])
def test_transactional_commit_at_an_epoch(g, vector, member_id, epoch, partition, code, version):
    producer = Producer(g.client, v2=version >= 5)
    assert producer.init() == 0
    if version < 5:
        assert producer.add_offsets("g") == 0
    answer = producer.send_offsets(
        {partition: 7}, version=version, generation_id_or_member_epoch=epoch, member_id=member_id
    )
    if version >= 6 and code == ErrorCode.ILLEGAL_GENERATION:
        code = ErrorCode.STALE_MEMBER_EPOCH  # KIP-1319
    assert answer == {partition: code}


def test_offset_fetch_takes_the_very_epoch_only(g):
    assert [g.fetch_error("m", e) for e in (8, 9, 10)] == [113, 0, 113]
    assert [g.fetch_error(None, -1), g.fetch_error("x", 9), g.fetch_error("", -1)] == [0, 25, 25]
    assert [g.fetch_error("c", e, "c") for e in (8, 9)] == [22, 0]


def test_empty_group_takes_commits_without_an_epoch():
    with Groups({"t": 1}) as groups:
        (member,) = groups.joined("m")
        member.leave()
        assert groups.group().is_empty
        assert groups.commit("", -1, 0) == 0
        assert groups.commit("m", 9, 0) == 25


def test_unknown_group_takes_commits_without_an_epoch():
    with Groups({"t": 1}) as groups:
        assert groups.commit("m", 3, 0, version=9) == 69
        assert groups.commit("m", 3, 0, version=8) == 22
        producer = Producer(groups.client)
        producer.init()
        assert producer.send_offsets({0: 1}, generation_id_or_member_epoch=3, member_id="m") == {0: 69}
        assert groups.commit("", -1, 0) == 0


def test_record_without_assignment_epochs_counts_from_its_member_epoch():
    groups = Groups({"t": 2})
    t = groups.ids["t"]
    put_group(groups, "g", "m", CurrentAssignment(9, 8, STABLE, {t: {0: 5}}))
    key, value = current_record("g", "m", CurrentAssignment(9, 8, STABLE, {t: {0: 5}}))
    tagged = b"\x01\x00\x05\x02" + (5).to_bytes(4, "big")
    assert value.count(tagged) == 1
    shard = groups.world.broker.groups.of("g")
    shard.append([(key, value.replace(tagged, b"\x00"))])
    groups.world.run()
    for _ in range(2):
        assert [groups.commit("m", 8, 0), groups.commit("m", 9, 0)] == [113, 0]
        groups.restart()


def test_partition_that_went_and_came_back_has_the_later_epoch():
    with Groups({"t": 2}) as groups:
        a, b = groups.joined("a", "b")
        mine = a.assigned["t"][0]
        old = a.epoch
        a.leave()
        b.beat()
        assert b.assigned == {"t": [0, 1]}
        a.join()
        groups.settle([a, b])
        (now,) = a.assigned["t"]
        assert [a.commit(now, epoch=old), a.commit(now)] == [113, 0]
        assert b.commit(*b.assigned["t"], epoch=old) in (0, 113)
        assert mine in (0, 1)


def test_revocation_done_means_the_old_epoch_is_worth_nothing_for_that_partition():
    with Groups({"t": 3}) as groups:
        (a,) = groups.joined("a")
        first = a.epoch
        b = groups.member("b")
        b.join()
        a.beat()
        revoked = ({0, 1, 2} - set(a.assigned["t"])).pop()
        assert a.epoch == first
        assert a.commit(revoked, epoch=first) == 0
        a.beat()
        assert a.epoch > first
        kept = a.assigned["t"][0]
        assert a.commit(kept, epoch=first) == 0
        assert a.commit(revoked, epoch=first) == 113
        assert a.commit(revoked) == 0  # at the current epoch Kafka does not look at the partition


def test_bytes_of_the_current_assignment_are_those_of_kafka():
    id_ = (1).to_bytes(8, "big") + (2).to_bytes(8, "big")
    _, value = current_record("g", "m", CurrentAssignment(9, 8, STABLE, {id_: {0: 5, 1: 7}}))
    assert value is not None
    assert value.hex(" ") == (
        "00 00 00 00 00 09 00 00 00 08 00 02 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 02 03 00 00 00 00 "
        "00 00 00 01 01 00 09 03 00 00 00 05 00 00 00 07 01 00"
    )


MODES = [
    # mode, epoch, partition, code: the same member under each rule
    ("assignment-epoch", 9, 3, 0),
    ("assignment-epoch-exact", 9, 3, 113),
    ("assignment-epoch-exact", 9, 0, 0),
    ("assignment-epoch-exact", 8, 0, 0),
    ("assignment-epoch-exact", 6, 1, 113),
    ("strict", 9, 3, 0),
    ("strict", 8, 0, 113),
    ("revocation-epoch", 8, 3, 0),
    ("revocation-epoch", 10, 0, 113),
]


@pytest.mark.parametrize(("mode", "epoch", "partition", "code"), MODES)
def test_mode_of_fencing(mode, epoch, partition, code):
    assert world(group_commit_fencing=mode).commit("m", epoch, partition) == code


def test_earlier_design_refuses_an_owner_that_the_released_one_accepts():
    """Epoch 9 to 10 after a revocation: the partition that was kept, committed with 9."""
    results = {}
    for mode in ("assignment-epoch", "revocation-epoch"):
        groups = Groups({"t": 3}, group_commit_fencing=mode)
        (a,) = groups.joined("a")
        old = a.epoch
        groups.member("b").join()
        a.beat()
        a.beat()
        assert a.epoch == old + 1
        results[mode] = a.commit(a.assigned["t"][0], epoch=old)
        groups.restart()
        assert groups.commit("a", old, a.assigned["t"][0]) == results[mode]
    assert results == {"assignment-epoch": 0, "revocation-epoch": 113}


def test_epoch_of_the_last_revocation_is_written_in_its_mode_only():
    groups = Groups({"t": 3}, group_commit_fencing="revocation-epoch")
    a, b = groups.joined("a", "b")
    a.beat()
    assert logged_tags(groups, "a") == {REVOCATION_EPOCH_TAG: (2).to_bytes(4, "big")}
    groups.world = groups.world.restart(group_commit_fencing="assignment-epoch")
    groups.client = type(groups.client)(groups.world)
    b.leave()
    groups.settle([a])
    assert logged_tags(groups, "a") is None


def logged_tags(groups: Groups, member_id: str) -> dict[int, bytes] | None:
    """The tags unknown to Kafka in a member's last current assignment."""
    found = None
    for _, batch in groups.world.broker.groups.of("g").log.batches(0):
        for record in iter_records(batch):
            key, value = decode_record(record.key, record.value)
            if key.API_KEY == 8 and key.member_id == member_id:
                found = value
    assert found is not None
    tags: dict[int, bytes] | None = found.unknown_tags
    return tags
