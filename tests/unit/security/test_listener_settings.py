"""Settings of a listener: prefixes, mechanisms, login modules, and what does not start."""

from __future__ import annotations

import pytest
from security_kit import SaslClient, sasl_world

from broker.cluster.listeners import make_nodes
from broker.config.settings import BrokerConfig, ConfigError
from broker.security.jaas import parse_jaas
from broker.security.listener_settings import ListenerSettings
from broker.security.security import check_sasl


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig.load({key.replace("__", "-").replace("_", "."): value for key, value in settings.items()})


def test_key_of_a_mechanism_comes_before_that_of_the_listener_and_of_the_broker():
    key = "connections.max.reauth.ms"
    props = {key: "1", f"listener.name.a.{key}": "2", f"listener.name.a.scram-sha-256.{key}": "3"}
    settings = ListenerSettings(BrokerConfig.load(props), "A")
    assert settings.number(key) == 2
    assert settings.number(key, "SCRAM-SHA-256") == 3
    assert settings.number(key, "PLAIN") == 2
    assert ListenerSettings(BrokerConfig.load(props), "B").number(key) == 1


def test_value_that_is_wrong_is_told_with_its_whole_key():
    wrong = ListenerSettings(config(listener_name_a_ssl_client_auth="maybe"), "A")
    with pytest.raises(ConfigError, match=r"listener\.name\.a\.ssl\.client\.auth"):
        wrong.text("ssl.client.auth")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.B required;", ("a.B", {})),
        ('a.B required x="1" y=two;', ("a.B", {"x": "1", "y": "two"})),
        (' a.B\n optional x="a \\"b\\" ; = \\\\" ; ', ("a.B", {"x": 'a "b" ; = \\'})),
        ('a.B required x="";', ("a.B", {"x": ""})),
    ],
)
def test_jaas_is_read(text, expected):
    assert tuple(parse_jaas(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.B",
        "a.B required",
        "a.B needed;",
        'a.B required x="1;',
        "a.B required x;",
        "a.B required x=;",
        "a required ; b required;",
    ],
)
def test_jaas_that_is_wrong_is_refused_without_its_text(text):
    with pytest.raises(ConfigError, match=r"\[hidden\]"):
        parse_jaas(text)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({}, "GSSAPI"),
        ({"sasl_enabled_mechanisms": ""}, "needs a mechanism"),
        (
            {
                "sasl_enabled_mechanisms": "PLAIN",
                "listener_name_s_plain_sasl_jaas_config": "a.ScramLoginModule required;",
            },
            "PlainLoginModule",
        ),
    ],
)
def test_listener_that_can_authenticate_nobody_does_not_start(settings, word):
    made = config(listeners="S://:1", listener_security_protocol_map="S:SASL_PLAINTEXT", **settings)
    with pytest.raises(ConfigError, match=word):
        check_sasl(made, make_nodes(made, None, 1))


def test_signed_tokens_without_their_library_do_not_start(monkeypatch):
    monkeypatch.setattr("broker.security.listener_settings.find_spec", lambda name: None)
    made = config(
        listeners="SASL_SSL://:1", sasl_enabled_mechanisms="OAUTHBEARER", sasl_oauthbearer_jwks_endpoint_url="file:///k"
    )
    with pytest.raises(ConfigError, match=r"pip install 'momus\[security\]'"):
        check_sasl(made, make_nodes(made, None, 1))


def test_each_listener_has_its_own_users():
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    world = sasl_world(
        listeners="S://:1",
        listener_security_protocol_map="S:SASL_PLAINTEXT",
        listener_name_s_plain_sasl_jaas_config=f'{module} user_carol="c";',
    )
    assert SaslClient(world).plain("carol", "c").error_code == 0
    assert SaslClient(world).plain("alice", "secret").error_code == 58
