"""Settings of a listener: prefixes, mechanisms, login modules, and what does not start."""

from __future__ import annotations

import pytest
from unit.security.security_kit import SaslClient, sasl_world

from broker.cluster.listeners import make_nodes
from broker.config.settings import BrokerConfig, ConfigError
from broker.security.listener_settings import ListenerSettings
from broker.security.security import check_sasl, check_users, login_module


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


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({}, "audience"),
        ({"expected_audience": "momus"}, "issuer"),
        ({"allow_unverified_audience": "true"}, "issuer"),
        ({"expected_audience": "momus", "expected_issuer": "https://i"}, None),
        ({"expected_audience": "momus", "allow_unverified_issuer": "true"}, None),
        ({"allow_unverified_audience": "true", "allow_unverified_issuer": "true"}, None),
        ({"as_version": "4.3"}, None),
        ({"as_version": "4.4"}, "audience"),
    ],
)
def test_signed_tokens_of_any_origin_are_taken_only_where_that_is_said(settings, refused):
    made = config(
        listeners="SASL_SSL://:1",
        sasl_enabled_mechanisms="OAUTHBEARER",
        sasl_oauthbearer_jwks_endpoint_url="file:///k",
        **{key if key == "as_version" else f"sasl_oauthbearer_{key}": text for key, text in settings.items()},
    )
    nodes = make_nodes(made, None, 1)
    if refused is None:
        check_sasl(made, nodes)
    else:
        with pytest.raises(ConfigError, match=f'requires "sasl.oauthbearer.expected.{refused}"'):
            check_sasl(made, nodes)


def test_tokens_that_are_not_signed_need_no_origin():
    made = config(listeners="SASL_SSL://:1", sasl_enabled_mechanisms="OAUTHBEARER")
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


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LISTENER = {"listeners": "S://:1", "listener_security_protocol_map": "S:SASL_PLAINTEXT"}


def check(logins: dict[str, object] | None = None, *, has_users: bool = False, **settings: str) -> None:
    made = config(**LISTENER, **{"sasl_enabled_mechanisms": "PLAIN", **settings})
    made.logins = logins or {}  # type: ignore[assignment]  # as read of a file
    check_users(made, make_nodes(made, None, 1), has_users=has_users)


def test_plain_without_users_does_not_start():
    with pytest.raises(ConfigError, match=r"'KafkaServer' or 's\.KafkaServer' entry in the JAAS.*--user NAME:PASSWORD"):
        check()
    with pytest.raises(ConfigError, match="has PLAIN and no users"):
        check({"Other": [(PLAIN, {"user_a": "b"})]})
    with pytest.raises(ConfigError, match="has PLAIN and no users"):
        check(sasl_jaas_config=f"{SCRAM} required;")


def test_plain_with_users_or_a_login_module_starts():
    check(has_users=True)
    check(sasl_enabled_mechanisms="SCRAM-SHA-256")
    check(sasl_jaas_config=f"{PLAIN} required;")
    check(listener_name_s_plain_sasl_jaas_config=f"{PLAIN} required;")
    check({"KafkaServer": [(PLAIN, {"user_a": "b"})]})


def test_login_modules_of_the_file_come_after_the_settings_and_those_of_the_listener_first():
    made = config(**LISTENER, sasl_enabled_mechanisms="PLAIN")
    settings = ListenerSettings(made, "S")
    made.logins = {"KafkaServer": [(SCRAM, {}), (PLAIN, {"user_a": "all"})]}
    assert login_module(settings, "PLAIN").options == {"user_a": "all"}
    made.logins = {**made.logins, "s.KafkaServer": [(PLAIN, {"user_a": "own"})]}
    assert login_module(settings, "PLAIN").options == {"user_a": "own"}
    assert login_module(settings, "SCRAM-SHA-256").options == {}
    given = config(**LISTENER, listener_name_s_plain_sasl_jaas_config=f'{PLAIN} required user_a="set";')
    given.logins = made.logins
    assert login_module(ListenerSettings(given, "S"), "PLAIN").options == {"user_a": "set"}
