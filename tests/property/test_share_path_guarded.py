"""ShareFetch served from bytes while there are ACLs, quotas, faults and a journal, which come and go.

The histories of test_share_path.py go on meanwhile: topics are deleted and made again, brokers start again. Every
answer, the logs, the records in flight and the journals are the same from a broker that decodes all requests.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from share_pair import MEMBERS, Sides
from test_share_path import LIMITS, ask, event

from broker.config.authorizer_setting import CLASS
from broker.journal.reading import entries
from protocol.messages.acls import AclCreation, CreateAclsRequest, DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)

AUTHORIZED = {
    "authorizer_class_name": CLASS,
    "super_users": "User:admin",
    "allow_everyone_if_no_acl_found": "true",
}
READ, DENY = 3, 2
PLACES = {"topic": (2, "t"), "group": (3, "g")}
FAULTS = [
    {"fault": "inject_error", "error": "NOT_LEADER_OR_FOLLOWER", "api": ["ShareFetch"], "trigger": {"times": 2}},
    {"fault": "inject_error", "error": "INVALID_SHARE_SESSION_EPOCH", "api": ["ShareFetch"], "principal": "User:n"},
    {"fault": "delay_on", "ms": 200, "api": ["ShareFetch"]},
    {"fault": "disconnect_on", "api": ["ShareFetch"], "trigger": {"on_call": 2}},
    {"fault": "deliver_twice", "api": ["ShareFetch"], "trigger": "once"},
    {"fault": "inject_error", "error": "NOT_COORDINATOR", "api": ["OffsetCommit"]},  # of nobody here
]
GUARDS = ["deny", "allow", "quota", "no quota", "fault", "no fault", "journal", "no journal"]


def deny(sides: Sides, name: str, place: str) -> None:
    """A member may not read the topic, or the group, any more."""
    kind, resource = PLACES[place]
    acl = AclCreation(
        resource_type=kind, resource_name=resource, resource_pattern_type=3, principal=f"User:{name}", host="*",
        operation=READ, permission_type=DENY,
    )  # fmt: skip  # several to a line
    sides.call(CreateAclsRequest(creations=[acl]), 2)


def allow(sides: Sides) -> None:
    """Everybody may do everything again."""
    every = DeleteAclsFilter(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter=None,
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip  # several to a line
    sides.call(DeleteAclsRequest(filters=[every]), 2)


def quota(sides: Sides, key: str, value: float | None) -> None:
    """A member's quota; None: it has none."""
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type="user", entity_name="m")],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    sides.call(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)


def fault(sides: Sides, data: dict[str, Any] | None) -> None:
    """Set a fault, or take all away."""
    for world in sides.worlds:
        faults = world.broker.faults
        if data is not None:
            faults.add(data)
        for each in faults.all() if data is None else []:
            faults.remove(each.name)
    sides.run()


def journal(sides: Sides, limit_bytes: int) -> None:
    """Keep a journal; 0: none."""
    for world in sides.worlds:
        world.broker.keep_journal(limit_bytes)


def check(sides: Sides) -> None:
    """Everything is the same, what the journals hold included."""
    sides.check()
    ours, theirs = (
        [] if ring is None else entries(ring) for ring in [world.broker.clients.journal for world in sides.worlds]
    )
    assert [(e.frame, e.reply_size) for e in ours] == [(e.frame, e.reply_size) for e in theirs]
    for one, other in zip(ours, theirs, strict=True):  # a reply in parts is kept up to its first slice of a file
        kept = min(len(one.reply), len(other.reply))
        assert one.reply[:kept] == other.reply[:kept]


def guard(sides: Sides, data: Any) -> None:
    what = data.draw(st.sampled_from(GUARDS))
    note(what)
    if what == "deny":
        deny(sides, data.draw(st.sampled_from(MEMBERS)), data.draw(st.sampled_from(sorted(PLACES))))
    elif what == "allow":
        allow(sides)
    elif what == "quota":
        quota(sides, "consumer_byte_rate", data.draw(st.sampled_from([1.0, 100.0, 1e9])))
    elif what == "no quota":
        quota(sides, "consumer_byte_rate", None)
    elif what == "fault":
        fault(sides, data.draw(st.sampled_from(FAULTS)))
    elif what == "no fault":
        fault(sides, None)
    else:
        journal(sides, 1 << 20 if what == "journal" else 0)


@pytest.mark.heavy
@pytest.mark.parametrize("authorized", [False, True])
def test_both_codecs_agree_under_acls_quotas_faults_and_a_journal(authorized):
    @settings(max_examples=25)
    @given(st.data())
    def agree(data: Any) -> None:
        sides = Sides("os", **AUTHORIZED if authorized else {})
        sides.produce(4, 0, 1)
        for _ in range(data.draw(st.integers(2, 9))):
            (guard if data.draw(st.booleans()) else event)(sides, data)
            ask(sides, data)
        check(sides)

    agree()


def steady(**settings: str) -> Sides:
    """Member m repeats a request that is served from bytes; 200 records are left."""
    sides = Sides("os", **settings)
    for _ in range(16):
        sides.produce(16, 0, 100)
    read(sides, 4)
    assert sides.taken == 2
    return sides


def read(sides: Sides, times: int) -> None:
    for _ in range(times):
        sides.fetch(sides.readers["m"], [0], 1, **LIMITS)


def test_repeats_are_served_from_bytes_with_an_authorizer():
    steady(**AUTHORIZED)


@pytest.mark.parametrize("place", sorted(PLACES))
def test_nothing_is_served_from_bytes_once_read_is_revoked(place):
    sides = steady(**AUTHORIZED)
    deny(sides, "m", place)
    reader, taken = sides.readers["m"], sides.taken
    for _ in range(5):
        before = reader.session
        read(sides, 1)
        assert reader.acquired == {}
        reader.session = reader.session or before  # refused as a whole: its session is as it was
    assert sides.taken == taken
    allow(sides)
    reader.session = 0
    read(sides, 4)
    assert sides.readers["m"].acquired
    assert sides.taken > taken
    check(sides)


def test_nothing_is_served_from_bytes_while_there_is_a_quota():
    """Or nothing would be measured, and nobody throttled."""
    sides = steady()
    quota(sides, "consumer_byte_rate", 1.0)
    taken = sides.taken
    read(sides, 2)
    assert sides.taken == taken
    quota(sides, "consumer_byte_rate", None)
    for world in sides.worlds:
        world.advance(100_000)
    sides.received("m")
    sides.reconnect(sides.readers["m"])
    read(sides, 4)
    assert sides.taken > taken
    check(sides)


def test_nothing_is_served_from_bytes_while_there_is_a_fault():
    sides = steady()
    fault(sides, FAULTS[0])
    taken = sides.taken
    read(sides, 1)
    assert sides.readers["m"].session == 0, "the error that was to be injected"
    read(sides, 3)
    assert sides.taken == taken
    fault(sides, None)
    read(sides, 4)
    assert sides.taken > taken
    check(sides)


def test_journal_holds_what_was_served_from_bytes():
    sides = steady()
    journal(sides, 1 << 20)
    taken = sides.taken
    read(sides, 3)
    assert sides.taken == taken + 3
    ring: Any = sides.worlds[0].broker.clients.journal
    assert [entry.api for entry in entries(ring)] == ["ShareFetch"] * 3
    check(sides)


def test_topic_that_is_made_again_is_another_one_to_what_is_kept():
    sides = steady()
    before = sides.topic_id
    from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

    sides.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=bytes(16))], timeout_ms=1), 6)
    read(sides, 1)
    sides.make_topic()
    assert sides.topic_id != before
    for _ in range(4):
        sides.produce(16, 0, 100)
    taken = sides.taken
    read(sides, 4)
    assert sides.taken > taken
    check(sides)


def test_after_a_start_nothing_acknowledged_comes_again():
    sides = steady()
    sides.restart()
    for reader in sides.readers.values():
        sides.join(reader)
    taken = sides.taken
    read(sides, 4)
    assert sides.taken > taken
    assert min(first for ranges in sides.readers["m"].acquired.values() for first, _ in ranges) >= 48
    check(sides)
