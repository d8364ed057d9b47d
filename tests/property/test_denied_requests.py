"""A client that may do nothing gets an answer that it can read to any request of any version, and no data."""

from __future__ import annotations

import random
from typing import Any

import pytest
from codec_values import sample
from core_broker import Client, World, make_topic
from core_requests import produce_request

from broker.authorization.table import RULES
from broker.cluster.acls import GROUP, TRANSACTIONAL_ID
from broker.config.authorizer_setting import CLASS
from broker.handlers import make_routes
from protocol.api import ApiKey, request_class
from protocol.declare import Message
from protocol.messages.acls import AclCreation, CreateAclsRequest

NAMES = ("name", "topic", "topic_name", "group_id", "group", "member_id")
UNGUARDED = {
    ApiKey.FETCH,  # asks in its handler
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}
ROUTES = make_routes()


def named(message: Message, topic_id: bytes) -> Message:
    """The request, about a topic and a group that are there."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name == "topic_id":
            setattr(message, field.name, topic_id)
        elif field.name in NAMES and isinstance(value, str):
            setattr(message, field.name, "t")
        elif field.name in ("partition_index", "index", "partition"):
            setattr(message, field.name, 0)
        elif field.name in ("share_session_epoch", "session_epoch", "key_type", "validate_only"):
            setattr(message, field.name, type(value)(0))
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Message):
                named(each, topic_id)
    return message


def test_every_api_has_a_rule():
    assert {route.api_key for route in ROUTES} == set(RULES) | UNGUARDED


@pytest.mark.parametrize("is_member", [False, True], ids=["nothing", "groups"])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: ApiKey(route.api_key).name)
def test_denied_request_is_answered(route, is_member, caplog):
    """`is_member`: groups and transactional ids are allowed, topics are not."""
    world = World("memory", authorizer_class_name=CLASS, super_users="User:admin")
    admin = Client(world)
    admin.connection.principal = "User:admin"
    topic_id = make_topic(admin)
    admin.call(produce_request("t", 0, b"private"), 9)
    for kind in (GROUP, TRANSACTIONAL_ID) if is_member else ():
        rule = AclCreation(
            resource_type=kind,
            resource_name="*",
            resource_pattern_type=3,
            principal="User:alice",
            host="*",
            operation=2,
            permission_type=3,
        )
        assert not admin.call(CreateAclsRequest(creations=[rule])).results[0].error_code
    before = world.broker.metadata.fingerprint()
    cls: Any = request_class(route.api_key)
    answered = 0
    for version in range(route.min_version, route.max_version + 1):
        for seed in range(6):
            alice = Client(world)
            alice.connection.principal = "User:alice"
            alice.send(named(sample(cls, version, random.Random(seed), unknown_tags=False), topic_id), version)
            world.run()
            world.advance(60_000)
            answered += len(alice.replies())
            assert b"private" not in bytes(alice.transport.received)
            alice.leave()
            world.run()
    assert not [record.exc_text for record in caplog.records if record.exc_info]
    assert answered
    assert is_member or world.broker.metadata.fingerprint() == before
