"""Topics out of consumers' subscriptions, readable or not."""

from __future__ import annotations

import pytest
from unit.coordinator.harness_parts import subscription

from broker.coordinator.groups.classic.subscription import subscribed_topics
from protocol.codegen import codec
from protocol.messages.consumer_protocol import ConsumerProtocolSubscription


def test_topics_of_all_members_are_put_together():
    assert subscribed_topics([subscription("a", "b"), subscription("b", "ü")]) == {"a", "b", "ü"}


def test_no_members_subscribe_to_nothing():
    assert subscribed_topics([]) == frozenset()


@pytest.mark.parametrize("version", range(4))
def test_subscription_of_every_version_is_read(version):
    body = codec(ConsumerProtocolSubscription, version).encode(
        ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"x")
    )
    assert subscribed_topics([version.to_bytes(2, "big") + body]) == {"a", "b"}


def test_subscription_of_a_version_to_come_is_read():
    assert subscribed_topics([subscription("a", version=99) + b"more"]) == {"a"}


@pytest.mark.parametrize("size", range(len(subscription("topic", "b"))))
def test_subscription_cut_anywhere_is_unreadable(size):
    assert subscribed_topics([subscription("a"), subscription("topic", "b")[:size]]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff",  # null list
        b"\0\0\x7f\xff\xff\xff" + b"\0\0" * 50,  # a count that cannot be
        b"\0\0\0\0\0\1\xff\xfe\0\0\0\0",  # negative length
        b"\0\0\0\0\0\1\0\2\xff\xfe\xff\xff\xff\xff",  # not UTF-8
    ],
)
def test_damaged_subscription_is_unreadable(data):
    assert subscribed_topics([data]) is None
