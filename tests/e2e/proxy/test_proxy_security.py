"""TLS and SASL on both sides of a proxy, and SASL that passes it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from momus import Broker


def delivered(settings: dict[str, Any]) -> object:
    """What a producer is told of one record: None is good."""
    told: list[object] = []
    producer = Producer({**settings, "message.timeout.ms": 20_000, "log_level": 0})
    producer.produce("secured", b"x", on_delivery=lambda error, _: told.append(error))
    producer.flush(30)
    return told[0] if told else "nothing"


def connecting(upstream: Broker, **more: str) -> dict[str, str]:
    settings = {key: str(value) for key, value in upstream.client_config("confluent").items()}
    del settings["bootstrap.servers"]
    return settings | more


@pytest.mark.parametrize("security", ["sasl_ssl", "mtls"])
def test_the_proxy_connects_as_a_client_properties_says_and_its_clients_need_nothing(security):
    with (
        Broker(security=security) as upstream,
        Broker(upstream=upstream.bootstrap_servers, upstream_config=connecting(upstream)) as proxy,
    ):
        proxy.create_topic("secured")
        assert delivered({"bootstrap.servers": proxy.bootstrap_servers}) is None
        assert len(upstream.consume("secured", 1)) == 1


def test_clients_authenticate_to_the_proxy_as_to_any_momus():
    with Broker() as upstream, Broker(upstream=upstream.bootstrap_servers, security="sasl_ssl", journal_mb=4) as proxy:
        proxy.create_topic("secured")
        assert delivered(proxy.client_config("confluent")) is None
        (entry,) = proxy.journal.verify(api="Produce", times=1)
        assert entry["principal"] == "User:client"
        wrong = {**proxy.client_config("confluent"), "sasl.password": "wrong", "message.timeout.ms": 3000}
        assert delivered({**wrong}) is not None
        assert len(upstream.consume("secured")) == 1


def test_what_a_client_says_by_sasl_passes_and_is_not_in_the_journal():
    with Broker(security="sasl_plaintext", users={"alice": "pencil", "proxy": "secret"}, journal_mb=4) as upstream:
        words = connecting(upstream, **{"momus.sasl.pass.through": "true"})
        words |= {"sasl.username": "proxy", "sasl.password": "secret"}
        with Broker(upstream=upstream.bootstrap_servers, upstream_config=words, journal_mb=4) as proxy:
            proxy.create_topic("secured")
            settings = {**upstream.client_config("confluent", "alice"), "bootstrap.servers": proxy.bootstrap_servers}
            settings |= {"sasl.mechanism": "PLAIN"}
            assert delivered(settings) is None
            (there,) = upstream.journal.entries(api="Produce", client_id="rdkafka")
            assert there["principal"] == "User:alice"
            said = proxy.journal.entries(api="SaslAuthenticate")
            assert said
            assert "pencil" not in str(proxy.journal.entries())
            assert [entry["request"]["auth_bytes"] for entry in said] == [""] * len(said)
