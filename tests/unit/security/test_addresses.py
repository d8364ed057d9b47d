"""Addresses of clients are written as Java does: ACLs, quotas and limits are compared with that."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, Transport, make_topic
from unit.authorization.acl_kit import Clients, acl, code_of_produce

from broker.cluster.acls import WRITE
from broker.config.addresses import client_host
from broker.config.config_values import host_counts
from broker.quotas.address_quotas import AddressQuotas
from protocol.errors import ErrorCode

LOOPBACK = "0:0:0:0:0:0:0:1"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", f"/{LOOPBACK}"),
        ("2001:db8::ff:0", "/2001:db8:0:0:0:0:ff:0"),
        ("::ffff:10.1.2.3", "/10.1.2.3"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1%eth0"),
        ("a name: none", "/a name: none"),
    ],
)
def test_host_of_a_client_is_written_as_java_does(address, host):
    assert client_host((address, 1)) == host


def test_client_without_an_address_has_no_host():
    assert client_host(None) == ""


@pytest.mark.parametrize(("host", "code"), [(LOOPBACK, ErrorCode.TOPIC_AUTHORIZATION_FAILED), ("127.0.0.1", 0)])
def test_acl_of_a_host_is_compared_with_the_long_form(monkeypatch, host, code):
    clients = Clients()
    clients.make(acl(WRITE), acl(WRITE, permission=2, host=host))
    make_topic(clients.admin)

    def info(transport: Any, name: str) -> Any:
        return {"peername": ("::1", 50000, 0, 0), "sockname": ("::1", 9092, 0, 0)}.get(name)

    monkeypatch.setattr(Transport, "get_extra_info", info)
    client: Client = clients.of("User:alice")
    assert client.connection.host == f"/{LOOPBACK}"
    assert code_of_produce(client) == code


def test_limit_of_an_address_is_found_in_either_spelling():
    counts = host_counts("key", f"::1:5,{LOOPBACK[:-1]}2:6,10.0.0.1:7,name:8")
    assert counts == {LOOPBACK: 5, LOOPBACK[:-1] + "2": 6, "10.0.0.1": 7, "name": 8}


@pytest.mark.parametrize("name", ["::1", LOOPBACK])
def test_quota_of_an_address_is_found_in_either_spelling(name):
    quotas = AddressQuotas(lambda: {(("ip", name),): {"connection_creation_rate": 1.0}}, (2, 1000))
    waits = [quotas.throttle_ms(LOOPBACK, 0) for _ in range(5)]
    assert waits[0] == 0 < waits[-1]
    assert [quotas.throttle_ms("10.0.0.1", 0) for _ in range(5)] == [0] * 5
