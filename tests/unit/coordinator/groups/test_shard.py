"""GroupMachine: what replay makes of records, what happens after loading, and when offsets expire."""

from __future__ import annotations

import pytest
from unit.coordinator.harness import START_MS, ShardHarness
from unit.coordinator.harness_parts import subscription

from broker.coordinator.groups.classic.records import group_key
from broker.coordinator.groups.machine import GROUPS_A_SLICE, GroupMachine
from broker.coordinator.offsets.table import Committed
from protocol.codegen import codec
from protocol.errors import ErrorCode, MalformedError
from protocol.messages.coordinator_records import GroupMetadataValue, MemberMetadata

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS


@pytest.fixture
def h():
    with ShardHarness() as harness:
        yield harness


def group_value(version, **how):
    value = GroupMetadataValue(
        **{
            "protocol_type": "consumer",
            "generation": 7,
            "protocol": "range",
            "leader": "m",
            "current_state_timestamp": 5,
            "members": [
                MemberMetadata(
                    member_id="m",
                    client_id="c",
                    client_host="/h",
                    session_timeout=9_000,
                    subscription=subscription("t"),
                    assignment=b"A",
                )
            ],
            **how,
        }
    )
    return version.to_bytes(2, "big") + codec(GroupMetadataValue, version).encode(value)


# -- replay -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
def test_group_record_of_every_version_makes_a_stable_group(h, version):
    h._append([(group_key("g"), group_value(version))])
    group = h.group()
    assert (h.state(), group.generation_id, group.leader, group.protocol_name) == ("Stable", 7, "m", "range")
    member = group.members["m"]
    assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (9_000, 9_000)  # v0 knows the session only
    assert member.assignment == b"A"
    assert group.topics() == {"t"}


def test_group_record_without_members_makes_an_empty_group(h):
    h._append([(group_key("g"), group_value(3, members=[], protocol=None, leader=None))])
    assert (h.state(), h.group().generation_id) == ("Empty", 7)


def test_group_record_written_is_what_kafka_writes(h):
    """GroupMetadataValue v3, key type 2 version: the bytes of Kafka's GroupCoordinatorRecordHelpers"""
    reply = h.join(version=3, client="c", protocols=(("range", b"S"),))
    h.advance()
    h.sync(reply.member_id, 1, {reply.member_id: b"A"})
    key, value = h.log[-1]
    member_id = reply.member_id.encode()
    text = lambda s: len(s).to_bytes(2, "big") + s  # noqa: E731  # a name for one expression
    data = lambda s: len(s).to_bytes(4, "big") + s  # noqa: E731  # a name for one expression
    assert key == b"\0\2" + text(b"g")
    assert value == (
        b"\0\3" + text(b"consumer") + b"\0\0\0\1" + text(b"range") + text(member_id) + START_MS.to_bytes(8, "big")
        + b"\0\0\0\1" + text(member_id) + b"\xff\xff" + text(b"c") + text(b"/127.0.0.1")
        + (60_000).to_bytes(4, "big") + (10_000).to_bytes(4, "big") + data(b"S") + data(b"A")
    )  # fmt: skip  # several to a line


def test_later_record_replaces_members_with_all_they_said(h):
    h._append([(group_key("g"), group_value(3))])
    changed = MemberMetadata(member_id="m", client_id="c2", session_timeout=1, subscription=b"new", assignment=b"B")
    h._append([(group_key("g"), group_value(3, generation=8, members=[changed]))])
    member = h.group().members["m"]
    assert (member.client_id, member.metadata("range"), member.assignment) == ("c2", b"new", b"B")
    assert h.group().supports("consumer", (("range", b""),))
    assert not h.group().supports("consumer", (("other", b""),))


def test_record_without_members_empties_a_group_even_in_the_same_generation(h):
    h._append([(group_key("g"), group_value(3)), (group_key("g"), group_value(3, members=[], leader=None))])
    assert (h.state(), h.group().members) == ("Empty", {})


def test_group_tombstone_removes_the_group_and_leaves_the_offsets(h):
    h._append([(group_key("g"), group_value(3))])
    h.commit("t", 0, 5)
    h._append([(group_key("g"), None), (group_key("unknown"), None)])
    assert h.state() == "Dead"
    assert h.offset("t", 0) == 5


def test_offset_record_of_every_version_is_read(h):
    topic_id = bytes(range(16))
    for version in range(5):
        h.commit("t", version, 40 + version, version=version, topic_id=topic_id if version == 4 else bytes(16))
    assert [h.offset("t", p) for p in range(5)] == [40, 41, 42, 43, 44]
    assert h.shard.offsets.get("g", "t", 4).topic_id == topic_id


def test_offset_record_of_the_oldest_key_type_is_read():
    """Type 0: what Kafka wrote before it had groups of its own"""
    shard = GroupMachine(0, ShardHarness().config)
    key = bytes.fromhex("0000 0001 67 0001 74 00000003")
    shard.replay(key, bytes.fromhex("0000 000000000000002a 0001 6d 0000000000000007"), 0)
    assert shard.offsets.get("g", "t", 3) == Committed(42, -1, "m", 7, -1)


def test_offset_record_in_kafkas_bytes_is_read():
    shard = GroupMachine(0, ShardHarness().config)
    key = bytes.fromhex("0001 0001 67 0001 74 00000000")
    value = bytes.fromhex("0004 000000000000002a ffffffff 01 00000000000003e8 01 00 10") + bytes([0] * 15 + [2])
    shard.replay(key, value, 0)
    assert shard.offsets.get("g", "t", 0) == Committed(42, -1, "", 1000, -1, bytes([0] * 15 + [2]))


def test_records_of_types_to_come_are_skipped(h):
    for kind in (4, 9, 18, 24, 30):
        h._append([(kind.to_bytes(2, "big") + b"\0\1g", b"whatever"), (kind.to_bytes(2, "big") + b"\0\1g", None)])
    assert h.shard.group_ids() == []


def test_damaged_record_of_a_known_type_is_an_error(h):
    with pytest.raises(MalformedError):
        h.shard.replay(group_key("g"), group_value(3)[:-3], 0)


def test_simple_group_takes_no_room_among_the_groups(h):
    h.commit("t", 0, 1)
    assert h.shard.groups == {}
    assert h.shard.has_group("g")
    assert h.shard.group_ids() == ["g"]


# -- loading ----------------------------------------------------------------------------------------------------------


def test_members_of_a_loaded_group_go_on_where_they_were(h):
    leader, follower = h.stable(2)
    h.restart()
    assert h.heartbeat(leader, 1).error_code == 0
    assert h.commit_check(1, follower) is ErrorCode.NONE
    assert h.sync(follower, 1).assignment == b"a1"
    assert h.join(follower).generation_id == 1


def test_rebalance_that_was_running_is_forgotten_by_a_restart(h):
    (leader,) = h.stable()
    h.join(h.new_id())
    h.restart()
    assert h.state() == "Stable"
    assert h.heartbeat(leader, 1).error_code == 0


def test_generation_that_was_not_synced_is_used_again_after_a_restart(h):
    (leader,) = h.stable()
    assert h.join(leader).generation_id == 2
    h.restart()
    assert h.group().generation_id == 1
    assert h.heartbeat(leader, 2).error_code == ErrorCode.ILLEGAL_GENERATION


def test_group_that_nobody_joined_yet_survives_a_restart_as_empty(h):
    h.new_id()
    h.restart()
    assert h.state() == "Empty"


def test_timers_of_a_deleted_group_do_nothing(h):
    (member,) = h.stable()
    h._append([(group_key("g"), None)])
    before = len(h.log)
    h.advance(100_000)
    assert len(h.log) == before
    assert h.heartbeat(member, 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


# -- offset expiry ----------------------------------------------------------------------------------------------------


def test_offsets_of_a_simple_group_expire_a_week_after_their_commit(h):
    """testCleanupExpiredOffsets"""
    h.commit("t", 0, 5)
    h.advance(WEEK_MS - DAY_MS)
    h.commit("t", 1, 6)
    h.advance(DAY_MS - 1)
    assert (h.offset("t", 0), h.offset("t", 1)) == (5, 6)
    h.advance(600_001)
    assert (h.offset("t", 0), h.offset("t", 1)) == (None, 6)
    h.advance(WEEK_MS)
    assert not h.shard.has_group("g")


def test_offsets_of_an_empty_group_expire_a_week_after_it_became_empty(h):
    """KIP-211"""
    (member,) = h.stable(session_ms=1_000_000)
    h.commit("t", 0, 5, commit_ms=1)
    h.advance(DAY_MS // 1_000)
    h.heartbeat(member, 1)
    h.leave(member)
    h.advance(WEEK_MS - 1)
    assert h.offset("t", 0) == 5
    h.advance(600_001)
    assert h.offset("t", 0) is None
    assert h.state() == "Dead"
    h.restart()
    assert h.state() == "Dead"


def check_offsets(h):
    h._apply(h.shard.expire_offsets(h._context()))


def test_offset_expires_to_the_millisecond(h):
    (member,) = h.stable()
    h.leave(member)
    h.commit("t", 0, 1, commit_ms=1)
    h.commit("t", 0, 1, group="simple")
    h.now_ms += WEEK_MS - 1
    check_offsets(h)
    assert (h.offset("t", 0), h.offset("t", 0, "simple")) == (1, 1)
    h.now_ms += 1
    check_offsets(h)
    assert (h.offset("t", 0), h.offset("t", 0, "simple")) == (None, None)


def test_group_in_use_without_offsets_is_not_deleted(h):
    h.stable(session_ms=1_800_000)
    h.advance(600_000)
    assert h.state() == "Stable"


def test_offsets_of_subscribed_topics_do_not_expire(h):
    """KIP-496"""
    (member,) = h.stable(session_ms=1_800_000, protocols=(("range", subscription("mine")),))
    h.commit("mine", 0, 1, commit_ms=1)
    h.commit("other", 0, 2, commit_ms=1)
    h.commit("other", 1, 3, commit_ms=START_MS)
    h.advance(600_000)
    assert (h.offset("mine", 0), h.offset("other", 0), h.offset("other", 1)) == (1, None, 3)
    assert h.heartbeat(member, 1).error_code == 0


@pytest.mark.parametrize("how", [{"protocol_type": "connect"}, {"protocols": (("range", b"?"),)}])
def test_offsets_of_a_group_whose_subscription_cannot_be_known_do_not_expire(h, how):
    h.stable(session_ms=1_800_000, **how)
    h.commit("t", 0, 1, commit_ms=1)
    h.advance(600_000)
    assert h.offset("t", 0) == 1


def test_offsets_do_not_expire_while_a_rebalance_runs(h):
    leader, _ = h.stable(2, session_ms=1_800_000, rebalance_ms=1_800_000)
    h.join(leader, rebalance_ms=1_800_000)
    h.commit("other", 0, 1, commit_ms=1)
    h.advance(600_000)
    assert (h.state(), h.offset("other", 0)) == ("PreparingRebalance", 1)


def test_offset_with_an_expiry_of_its_own_goes_by_it(h):
    """Commits with a retention (v2-4)."""
    h.commit("t", 0, 1, version=1, expire_ms=START_MS + 600_001, commit_ms=1)
    h.commit("t", 1, 2, version=1, expire_ms=START_MS + 600_000)
    h.advance(600_000)
    assert (h.offset("t", 0), h.offset("t", 1)) == (1, None)


def test_empty_group_without_offsets_is_deleted_at_the_next_check(h):
    """testClassicGroupMaybeDelete"""
    (member,) = h.stable()
    h.leave(member)
    h.advance(600_000)
    assert h.log[-1] == (group_key("g"), None)
    assert h.state() == "Dead"


def test_empty_group_with_offsets_left_stays(h):
    (member,) = h.stable()
    h.leave(member)
    h.commit("t", 0, 1)
    h.advance(600_000)
    assert h.state() == "Empty"


def test_large_check_goes_in_slices(h):
    groups = 2 * GROUPS_A_SLICE + 5
    for i in range(groups):
        h.commit("t", 0, 1, group=f"g{i}", commit_ms=1)
    h.now_ms += 600_000
    rounds = 0
    while h.shard.offsets.size:
        before = h.shard.offsets.size
        h._apply(h.shard.expire_offsets(h._context()))
        assert before - h.shard.offsets.size <= GROUPS_A_SLICE
        rounds += 1
    assert rounds == 3
    assert h.timers[("offsets",)] == h.now_ms + 600_000
