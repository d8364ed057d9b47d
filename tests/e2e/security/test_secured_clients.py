"""Real clients on a cluster with security: served with the settings that momus gives, refused without, and told why."""

from __future__ import annotations

import re
from typing import Any

import pytest
from budget import short_and_slow
from confluent_kafka import Producer
from secured_kit import CLIENTS, LIMIT_S, WORDS
from test_control_plane import fits

from momus.control import ControlError


@pytest.mark.parametrize("word", WORDS)
def test_clients_connect_with_the_settings_and_not_without(make, ask, word):
    cluster = make(word)
    for client in CLIENTS:
        settings = cluster.client_config(client)
        assert ask(client, settings, 60_000) == ""
        assert ask(
            client, {key: text for key, text in settings.items() if key.replace(".", "_") == "bootstrap_servers"}
        )
    if word != "ssl":
        assert ask("kafka-python", cluster.client_config("kafka-python", user="bob"), 60_000) == ""


WRONG = {"kafka-python": "sasl_plain_password", "aiokafka": "sasl_plain_password", "confluent": "sasl.password"}


@pytest.mark.parametrize("client", CLIENTS)
def test_wrong_password_is_the_client_s_authentication_error(make, ask, client):
    cluster = make("sasl_plaintext")
    found = ask(client, {**cluster.client_config(client), WRONG[client]: "wrong"})
    assert "Authentication failed during authentication due to invalid credentials" in found


@pytest.mark.parametrize("client", short_and_slow(CLIENTS, 2))
def test_each_fault_of_the_broker_s_certificate_is_named_by_the_client(make, ask, client):
    cluster = make("ssl")
    before = cluster.client_config(client)
    assert ask(client, before, 60_000) == ""
    cluster.certificates.expire()
    expired = ask(client, before)
    cluster.certificates.issue(hosts=["elsewhere.example"])
    other_host = ask(client, before)
    cluster.certificates.rotate(authority=True)
    untrusted = ask(client, before)
    after = ask(client, cluster.client_config(client), 60_000)
    if client == "confluent":  # it names them alike, all but the host
        assert "certificate verify failed" in expired
        assert "certificate verify failed" in other_host
        assert "certificate verify failed" in untrusted
    else:
        assert "certificate has expired" in expired
        assert re.search("IP address mismatch|Hostname mismatch", other_host)
        assert re.search("unable to get local issuer|self-signed|signature failure|unable to get issuer", untrusted)
    assert after == "", "with the new authority it connects"


def test_expired_certificate_of_a_client_is_refused(make, ask):
    cluster = make("mtls")
    cluster.certificates.expire("alice")
    settings = cluster.client_config("confluent", user="alice")
    assert "certificate expired" in ask("confluent", settings)
    assert ask("confluent", cluster.client_config("confluent", user="bob"), 60_000) == ""
    cluster.certificates.rotate()
    assert ask("confluent", cluster.client_config("confluent", user="alice"), 60_000) == ""


def test_user_that_is_added_connects_and_one_that_is_removed_does_not(make, ask):
    cluster = make("sasl_plaintext")
    cluster.users.add("carol", "pencil")
    settings = cluster.client_config("confluent", user="carol")
    assert ask("confluent", settings, 60_000) == ""
    with pytest.raises(ControlError, match="car%6Fl"):
        cluster.users.remove("car%6Fl")
    cluster.users.remove("carol")
    assert cluster.users.list() == ["alice", "bob"]
    assert "invalid credentials" in ask("confluent", settings)


def test_acls_of_the_test_kit_are_obeyed(make):
    cluster = make("sasl_plaintext")
    cluster.create_topic("orders")
    cluster.acls.allow("bob", "write", "describe", topic="orders")
    cluster.acls.deny("*", "read", topic="ord", pattern="prefixed")
    assert len(cluster.acls.list()) == 3

    def produce(user: str) -> str:
        told: list[Any] = []
        producer = Producer(cluster.client_config("confluent", user=user))
        producer.produce("orders", b"x", on_delivery=lambda error, record: told.append(error))
        assert producer.flush(LIMIT_S) == 0
        return str(told[0] and told[0].name())

    assert produce("bob") == "None"
    assert produce("alice") == "TOPIC_AUTHORIZATION_FAILED"
    assert cluster.acls.remove("bob") == 2
    assert cluster.acls.remove() == 1
    assert produce("alice") == "None"


def test_routes_answer_as_the_description_says(make):
    cluster = make("mtls")
    described = cluster.control.ask("GET", "/openapi.json")["paths"]
    for path, operations in described.items():
        if path.startswith("/_admin/clusters/") and path.endswith(("/users", "/acls", "/certificates", "/security")):
            for method, operation in operations.items():
                content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                answer = cluster.control.ask(method.upper(), path.format(cluster=cluster.name), content.get("example"))
                assert fits(answer, operation["responses"]["200"]["content"]["application/json"]["schema"])


@pytest.mark.parametrize("body", [{"action": "burn"}, {"action": "expire", "name": "nobody"}])
def test_certificate_that_cannot_be_changed_is_told(make, body):
    cluster = make("ssl")
    with pytest.raises(ControlError):
        cluster.control.ask("POST", f"{cluster.control.prefix}/certificates", body)


def test_journal_names_the_principal(make, ask):
    cluster = make("sasl_plaintext", journal_mb=1)
    for user in ("alice", "bob"):
        assert ask("confluent", cluster.client_config("confluent", user=user), 60_000) == ""
    path = f"{cluster.control.prefix}/journal?api=Metadata"
    found = {user: cluster.control.ask("GET", f"{path}&principal=User:{user}")["entries"] for user in ("alice", "bob")}
    assert {user: {each["principal"] for each in rows} for user, rows in found.items()} == {
        "alice": {"User:alice"},
        "bob": {"User:bob"},
    }
