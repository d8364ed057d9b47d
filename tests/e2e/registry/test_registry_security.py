"""The registry of a cluster with security: who may ask, and for what."""

from __future__ import annotations

import json
import ssl
import time

import pytest
from registry_client import RegistryClient

from momus import Broker

ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
    "allow.everyone.if.no.acl.found": False,
}
USERS = {"root": "r", "alice": "a", "bob": "b"}


def authority(broker):
    return ssl.create_default_context(cafile=broker.client_config("kafka-python")["ssl_cafile"])


@pytest.fixture(scope="module")
def broker():
    with Broker(security="sasl_plaintext", users=USERS, config=ACLS, registry=True) as broker:
        broker.acls.allow("alice", "write", topic="orders")
        broker.acls.allow("bob", "describe", topic="bills")
        root = RegistryClient(broker.registry_url, "root:r")
        root.register("orders-value", '"int"')
        root.register("bills-value", '"long"')
        yield broker


@pytest.mark.parametrize("login", [None, "alice:b", "nobody:a", "alice"])
def test_who_does_not_say_who_it_is_is_refused(broker, login):
    assert RegistryClient(broker.registry_url, login).ask("GET", "/subjects") == (401, 401, "Unauthorized")


def test_each_sees_the_subjects_of_topics_that_it_may_describe(broker):
    alice, bob = (RegistryClient(broker.registry_url, login) for login in ("alice:a", "bob:b"))
    assert alice.ask("GET", "/subjects") == ["orders-value"]
    assert [row["subject"] for row in bob.ask("GET", "/schemas")] == ["bills-value"]
    assert alice.ask("GET", "/schemas/ids/1")["schema"] == '"int"'
    assert alice.ask("GET", "/schemas/ids/2")[:2] == (403, 40301)
    assert bob.ask("GET", "/subjects/orders-value/versions") == (
        403,
        40301,
        "User is denied operation DESCRIBE on topic orders",
    )


def test_registering_needs_write_and_deleting_delete_on_the_topic(broker):
    alice, bob = (RegistryClient(broker.registry_url, login) for login in ("alice:a", "bob:b"))
    assert alice.register("orders-key", '"int"')["id"] == 1
    assert bob.register("bills-value", '"int"')[:2] == (403, 40301)
    assert alice.ask("DELETE", "/subjects/orders-key")[:2] == (403, 40301)


def test_subject_is_of_the_topic_that_it_is_named_after(broker):
    """`orders-key-value` is of the topic orders-key, and was taken for one of orders."""
    root, alice = (RegistryClient(broker.registry_url, login) for login in ("root:r", "alice:a"))
    broker.acls.allow("bob", "write", topic="orders-key")
    bob = RegistryClient(broker.registry_url, "bob:b")
    assert "id" in bob.register("orders-key-value", '"string"')
    assert alice.ask("GET", "/subjects/orders-key-value/versions")[:2] == (403, 40301)
    assert alice.register("orders-key-value", '"bytes"')[:2] == (403, 40301)
    assert "orders-key-value" not in alice.ask("GET", "/subjects")
    assert root.ask("GET", "/subjects/orders-key-value/versions") == [1]


def test_what_a_schema_refers_to_is_asked_for_too(broker):
    root, alice = (RegistryClient(broker.registry_url, login) for login in ("root:r", "alice:a"))
    secret = json.dumps({"type": "record", "name": "Secret", "fields": [{"name": "code", "type": "int"}]})
    assert "id" in root.register("secret-value", secret)
    mine = json.dumps({"type": "record", "name": "Mine", "fields": [{"name": "s", "type": "Secret"}]})
    refers = [{"name": "Secret", "subject": "secret-value", "version": 1}]
    denied = (403, 40301, "User is denied operation DESCRIBE on topic secret")
    assert alice.register("orders-value", mine, references=refers) == denied
    assert alice.register("orders-value", mine, references=[{**refers[0], "subject": ":.:secret-value"}]) == denied
    for path in ("/subjects/orders-value", "/compatibility/subjects/orders-value/versions?verbose=true"):
        assert alice.ask("POST", path, {"schema": mine, "references": refers}) == denied
    assert root.ask("DELETE", "/subjects/secret-value") == [1]
    assert "id" in root.register("secret-value", secret)
    broker.acls.allow("alice", "describe", topic="secret")
    version = root.ask("GET", "/subjects/secret-value/versions")[-1]
    broker.acls.allow("alice", "write", topic="own")
    assert "id" in alice.register("own-value", mine, references=[{**refers[0], "version": version}])


def test_subject_of_another_context_is_shown_to_who_may_describe_its_topic(broker):
    root, alice = (RegistryClient(broker.registry_url, login) for login in ("root:r", "alice:a"))
    assert "id" in root.register(":.c:shared-value", '"string"')
    broker.acls.allow("alice", "describe", topic="shared")
    denied = (403, 40301, "User is denied operation DESCRIBE on topic :.c:shared")
    for path in ("/subjects/shared-value/versions/1", "/subjects/shared-value/versions/1/schema"):
        assert alice.ask("GET", path) == denied
    assert alice.ask("POST", "/subjects/shared-value", {"schema": '"string"'}) == denied
    broker.acls.allow("alice", "describe", topic=":.c:shared")
    assert alice.ask("GET", "/subjects/shared-value/versions/1")["subject"] == ":.c:shared-value"


def test_wrong_password_waits_as_at_a_listener():
    with Broker(security="sasl_plaintext", users={"alice": "a"}, registry=True) as broker:
        wrong = RegistryClient(broker.registry_url, "alice:b")
        began = time.monotonic()
        for _ in range(5):
            assert wrong.ask("GET", "/subjects")[0] == 401
        assert time.monotonic() - began >= 0.5
        assert RegistryClient(broker.registry_url, "alice:a").ask("GET", "/subjects") == []


def test_config_and_mode_need_alter_on_the_cluster(broker):
    alice = RegistryClient(broker.registry_url, "alice:a")
    assert alice.ask("PUT", "/config/orders-value", {"compatibility": "NONE"})[:2] == (403, 40301)
    assert alice.ask("PUT", "/mode", {"mode": "READONLY"})[:2] == (403, 40301)
    broker.acls.allow("alice", "alter", cluster=True)
    assert alice.ask("PUT", "/config/orders-value", {"compatibility": "NONE"}) == {"compatibility": "NONE"}


def test_changed_password_ends_the_old_one(broker):
    broker.users.add("carol", "old")
    broker.acls.allow("carol", "describe", topic="*")
    old, new = (RegistryClient(broker.registry_url, f"carol:{word}") for word in ("old", "new"))
    assert "orders-value" in old.ask("GET", "/subjects")
    broker.users.add("carol", "new")
    assert old.ask("GET", "/subjects")[0] == 401
    assert "orders-value" in new.ask("GET", "/subjects")


def test_listener_with_tls_has_a_registry_with_tls_and_its_certificate():
    with Broker(security="sasl_ssl", registry=True) as broker:
        assert broker.registry_url.startswith("https://")
        ((name, password),) = broker.users.passwords().items()
        client = RegistryClient(broker.registry_url, f"{name}:{password}", authority(broker))
        assert client.register("s", json.dumps("int"))["id"] == 1
        broker.certificates.expire("server")
        with pytest.raises(OSError, match="expired"):
            client.ask("GET", "/subjects")
        broker.certificates.issue("server")
        assert client.ask("GET", "/subjects") == ["s"]


def test_certificate_of_a_client_says_who_it_is():
    with Broker(security="mtls", users={"alice": "", "bob": ""}, config={**ACLS, "super.users": ""}) as broker:
        broker.acls.allow("alice", "write", topic="orders")
        clients = []
        for user in ("alice", "bob"):
            settings = broker.client_config("kafka-python", user=user)
            context = ssl.create_default_context(cafile=settings["ssl_cafile"])
            context.load_cert_chain(settings["ssl_certfile"], settings["ssl_keyfile"])
            clients.append(RegistryClient(broker.registry_url, None, context))
        alice, bob = clients
        assert alice.register("orders-value", '"int"')["id"] == 1
        assert bob.register("orders-value", '"int"')[:2] == (403, 40301)


def test_clients_of_the_registry_get_their_settings():
    with Broker(security="sasl_ssl", users={"alice": "pencil"}) as broker:
        settings = broker.client_config("confluent-registry")
        assert (settings["url"], settings["basic.auth.user.info"]) == (broker.registry_url, "alice:pencil")
        context = ssl.create_default_context(cafile=settings["ssl.ca.location"])
        client = RegistryClient(settings["url"], settings["basic.auth.user.info"], context)
        assert client.ask("GET", "/subjects") == []
        java = broker.client_config("java-registry")
        assert java["schema.registry.url"] == broker.registry_url
        assert java["basic.auth.credentials.source"] == "USER_INFO"
        with pytest.raises(ValueError, match=r"client_config knows no client 'ruby-registry'.*, java-registry"):
            broker.client_config("ruby-registry")
    with Broker() as broker:
        assert broker.client_config("confluent-registry") == {"url": broker.registry_url}


def test_association_needs_what_its_subject_and_its_topic_need(broker):
    root, alice, bob = (RegistryClient(broker.registry_url, login) for login in ("root:r", "alice:a", "bob:b"))

    def associate(who, name, subject):
        resource = {"resourceName": name, "resourceNamespace": "cluster", "resourceId": name}
        return who.ask("POST", "/associations", {**resource, "associations": [{"subject": subject}]})

    assert associate(alice, "bills", "orders-value")[:2] == (403, 40301)
    assert associate(alice, "orders", "bills-value")[:2] == (403, 40301)
    assert associate(alice, "orders", "orders-value")["associations"][0]["subject"] == "orders-value"
    assert associate(root, "bills", "bills-value")["associations"]
    listed = [row["subject"] for row in bob.ask("GET", "/associations/resources/cluster/-")]
    asked = {"requests": [{"resourceId": "bills"}, {"resourceId": "orders"}]}
    seen, hidden = bob.ask("POST", "/associations:batchGet", asked)["results"]
    assert listed == [row["subject"] for row in seen["result"]["associations"]] == ["bills-value"]
    assert hidden == {"result": {"resourceType": "topic"}}
    assert alice.ask("DELETE", "/associations/resources/orders")[:2] == (403, 40301)
    for name in ("orders", "bills"):
        assert root.ask("DELETE", f"/associations/resources/{name}") is None
