"""Settings of brokers that are altered while they run: the new value counts, not the one at the start."""

from __future__ import annotations

import pytest
from core_broker import Client, World
from core_requests import BROKER, alter_request
from unit.config.test_settings_obeyed import write_keys

from broker.config.settings import BrokerConfig, ConfigError
from protocol.errors import ErrorCode


def alter_brokers(client: Client, **settings: str) -> int:
    """Set them for all brokers."""
    answer = client.call(alter_request(BROKER, "", {key.replace("_", "."): text for key, text in settings.items()}), 1)
    return int(answer.responses[0].error_code)


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"max_connections": "2"}, 2),
        ({"max_connections_per_ip": "2"}, 2),
        ({"max_connections_per_ip": "2", "max_connections_per_ip_overrides": "127.0.0.1:3"}, 3),
    ],
)
def test_limits_of_connections_that_are_altered_are_obeyed(settings, most):
    world = World()
    first = Client(world)
    assert alter_brokers(first, **settings) == 0
    assert [Client(world).closed for _ in range(3)] == [number >= most for number in range(1, 4)]


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:x", "a:1,b"])
def test_limits_of_addresses_that_cannot_be_read_are_refused(text):
    world = World()
    client = Client(world)
    assert alter_brokers(client, max_connections_per_ip_overrides=text) == ErrorCode.INVALID_REQUEST
    assert not Client(world).closed
    with pytest.raises(ConfigError, match="is not HOST:COUNT"):
        BrokerConfig.load({"max.connections.per.ip.overrides": text})


def test_backoff_of_the_cleaner_that_is_altered_is_obeyed():
    world = World(log_cleaner_backoff_ms="1000")
    client = Client(world)
    assert alter_brokers(client, log_cleaner_backoff_ms="30000") == 0
    world.advance(1000)
    log = write_keys(world, client)
    world.advance(29_999)
    assert log.cleaned_offset == 0
    world.advance(1)
    assert log.cleaned_offset == 2
