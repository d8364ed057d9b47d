"""Quotas of clients: what is kept, what a filter finds, and what is refused."""

from __future__ import annotations

import pytest
from admin_broker import AdminBroker

from broker.handlers.quotas import alter_client_quotas, describe_client_quotas
from protocol.errors import ErrorCode
from protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
RATE = "producer_byte_rate"


def entry(entity, *ops):
    """An entity as (type, name) pairs; an op as (key, value), a value of None removes."""
    return AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


def alter(broker, *entries, version=1, validate_only=False):
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    replies = broker.call(alter_client_quotas, request, version).entries
    return [(reply.error_code, [(e.entity_type, e.entity_name) for e in reply.entity]) for reply in replies]


def describe(broker, *components, strict=False, version=1):
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in components],
        strict=strict,
    )
    reply = broker.call(describe_client_quotas, request, version)
    if reply.error_code:
        assert reply.entries is None
        return reply.error_code
    return {
        tuple((e.entity_type, e.entity_name) for e in found.entity): {v.key: v.value for v in found.values}
        for found in reply.entries
    }


@pytest.fixture
def broker():
    broker = AdminBroker()
    alter(
        broker,
        entry([("user", "u")], (RATE, 100.0)),
        entry([("user", None)], (RATE, 200.0), ("request_percentage", 12.5)),
        entry([("user", "u"), ("client-id", "c")], ("consumer_byte_rate", 300.0)),
        entry([("ip", "127.0.0.1")], ("connection_creation_rate", 7.0)),
    )
    return broker


U, ANY = (("user", "u"),), (("user", None),)
UC, ADDRESS = (("client-id", "c"), ("user", "u")), (("ip", "127.0.0.1"),)


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, [U, ANY, UC, ADDRESS]),
        ([], True, []),
        ([("user", EXACT, "u")], False, [U, UC]),
        ([("user", EXACT, "u")], True, [U]),
        ([("user", DEFAULT, None)], False, [ANY]),
        ([("user", SPECIFIED, None)], False, [U, ANY, UC]),
        ([("user", SPECIFIED, None)], True, [U, ANY]),
        ([("client-id", SPECIFIED, None), ("user", EXACT, "u")], True, [UC]),
        ([("client-id", DEFAULT, None)], False, []),
        ([("ip", SPECIFIED, None)], True, [ADDRESS]),
        ([("user", EXACT, "x")], False, []),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_filter_finds_what_matches_every_component(broker, components, strict, found, version):
    assert list(describe(broker, *components, strict=strict, version=version)) == found


def test_quotas_are_told_and_survive_a_restart(broker):
    told = describe(broker)
    assert told[ANY] == {RATE: 200.0, "request_percentage": 12.5}
    assert told[UC] == {"consumer_byte_rate": 300.0}
    broker.check_reload()


def test_quota_set_again_replaces_and_the_last_removed_takes_its_entity_along(broker):
    assert alter(broker, entry(UC, ("consumer_byte_rate", None), (RATE, 1.0))) == [(0, list(UC))]
    assert describe(broker)[UC] == {RATE: 1.0}
    alter(broker, entry(reversed(UC), (RATE, None), ("request_percentage", None)))
    assert UC not in describe(broker)
    broker.check_reload()


def test_what_changes_nothing_is_not_written(broker):
    batches = len(broker.batches)
    assert alter(broker, entry(U, (RATE, 100.0), ("consumer_byte_rate", None))) == [(0, list(U))]
    assert len(broker.batches) == batches


def test_validate_only_changes_nothing(broker):
    before = describe(broker)
    assert alter(broker, entry(U, (RATE, 5.0)), entry(U[:0], (RATE, 5.0)), validate_only=True) == [
        (0, list(U)),
        (ErrorCode.INVALID_REQUEST, []),
    ]
    assert describe(broker) == before


@pytest.mark.parametrize(
    ("entity", "ops"),
    [
        ([], [(RATE, 1.0)]),
        ([("user", "")], [(RATE, 1.0)]),
        ([("group", "g")], [(RATE, 1.0)]),
        ([("ip", "1.2.3.4"), ("user", "u")], [("connection_creation_rate", 1.0)]),
        ([("ip", "no address")], [("connection_creation_rate", 1.0)]),
        ([("ip", "1.2.3.4")], [(RATE, 1.0)]),
        ([("ip", "1.2.3.4")], [("connection_creation_rate", 2.0**31)]),
        ([("user", "u")], [("connection_creation_rate", 1.0)]),
        ([("user", "u")], [("nope", 1.0)]),
        ([("user", "u")], [(RATE, 0.0)]),
        ([("user", "u")], [(RATE, -1.0)]),
        ([("user", "u")], [(RATE, 1.5)]),
        ([("user", "u")], [(RATE, 1e19)]),
        ([("user", "u")], [(RATE, 5.0), (RATE, 6.0)]),
        ([("user", "u")], [("request_percentage", 1.0), (RATE, 0.0)]),
    ],
)
def test_change_that_may_not_be_leaves_its_entity_alone(broker, entity, ops):
    before = describe(broker)
    other = [("client-id", None)]
    assert [code for code, _ in alter(broker, entry(entity, *ops), entry(other, (RATE, 9.0)))] == [42, 0]
    assert describe(broker) == {**before, tuple(other): {RATE: 9.0}}


@pytest.mark.parametrize("name", [None, "localhost", "10.0.0.1", "::1"])
def test_address_has_a_rate_of_connections(name):
    broker = AdminBroker()
    assert alter(broker, entry([("ip", name)], ("connection_creation_rate", 1.0))) == [(0, [("ip", name)])]


def test_entity_named_twice_is_left_alone_and_told_once(broker):
    before = describe(broker)
    assert alter(broker, entry(U, (RATE, 5.0)), entry(U, (RATE, 6.0))) == [(ErrorCode.INVALID_REQUEST, list(U))]
    assert describe(broker) == before


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", EXACT, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "u"), ("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("group", EXACT, "g")], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", SPECIFIED, None), ("user", SPECIFIED, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filter_that_makes_no_sense_is_refused(broker, components, code):
    assert describe(broker, *components) == code
