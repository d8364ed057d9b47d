"""ACLs whose host is a range of addresses: which are taken, whom they are about, what older releases do."""

from __future__ import annotations

import pytest
from acl_kit import DENY, Clients, acl
from core_broker import Client, make_topic
from core_requests import produce_request

from broker.cluster.acls import WRITE
from broker.cluster.host_ranges import fault_of, is_within

HOSTS = {  # as Apache Kafka 4.4.0 answered them
    "10.0.0.0/8": "",
    "10.1.2.3/24": "",
    "10.0.0.0/08": "",
    "010.0.0.0/8": "",
    "0.0.0.0/0": "",
    "::/0": "",
    "fe80::/10": "",
    "fe80::1%eth0/64": "",
    "localhost": "",
    "x y": "",
    "*": "",
    "": "Host pattern cannot be null or empty",
    "10.0.0.0/33": "Value [33] not in range [0,32]",
    "300.0.0.0/8": "Value [300] not in range [0,255]",
    "10.0.0.0/100": "Could not parse [10.0.0.0/100]",
    "10.0.0.0/-1": "Could not parse [10.0.0.0/-1]",
    "10.0.0.0/+8": "Could not parse [10.0.0.0/+8]",
    "10.0.0.0/8.0": "Could not parse [10.0.0.0/8.0]",
    "10.0.0.0/8/9": "Could not parse [10.0.0.0/8/9]",
    "10.0.0.0/ 8": "Could not parse [10.0.0.0/ 8]",
    "10.0.0.0/": "Could not parse [10.0.0.0/]",
    "10.0.0/8": "Could not parse [10.0.0/8]",
    "/0": "Could not parse [/0]",
    "/": "Could not parse [/]",
    "1/2": "Could not parse [1/2]",
    "a/b": "Could not parse [a/b]",
    "host.name/24": "Could not parse [host.name/24]",
    "fe80::/129": "Could not parse [fe80::/129] - prefix length must be between 0 and 128",
    "::1/1000": "Could not parse [::1/1000] - prefix length must be between 0 and 128",
    "::/129x": "Could not parse [::/129x] - invalid prefix length",
    "::ffff:10.0.0.1/96": "Could not parse [::ffff:10.0.0.1] - not an IPv6 address",
    "1:2:3/64": "Could not parse [1:2:3]",
}


@pytest.mark.parametrize(("host", "why"), HOSTS.items())
def test_host_is_taken_or_refused_in_kafkas_words(host, why):
    assert fault_of(host) == (f"Invalid CIDR notation '{host}': {why}" if host and why else why)


@pytest.mark.parametrize(
    ("host", "pattern", "expected"),
    [
        ("10.1.2.0", "10.1.2.3/24", True),  # the network's address and the broadcast address are in it
        ("10.1.2.255", "10.1.2.3/24", True),
        ("10.1.3.0", "10.1.2.3/24", False),
        ("10.1.2.3", "10.1.2.3/32", True),
        ("10.1.2.4", "10.1.2.3/32", False),
        ("255.255.255.255", "0.0.0.0/0", True),
        ("fe80::1%eth0", "fe80::/10", True),
        ("::1", "fe80::/10", False),
        ("::1", "0.0.0.0/0", False),
        ("127.0.0.1", "::/0", False),
        ("", "0.0.0.0/0", False),
        ("nonsense", "10.0.0.0/8", False),
        ("10.0.0.1", "10.0.0.0/33", False),
    ],
)
def test_address_is_in_a_range(host, pattern, expected):
    assert is_within(host, pattern) is expected


def code_of_produce(client: Client, name: str = "t") -> int:
    return client.call(produce_request(name, 0, b"x"), 9).responses[0].partition_responses[0].error_code


def test_range_decides_as_an_address_does():
    clients = Clients()
    for name in ("t", "u"):
        make_topic(clients.admin, name)
    here = "127.0.0.0/8"
    assert clients.make(acl(WRITE, host=here), acl(WRITE, name="u", host="10.0.0.0/8")) == [0, 0]
    assert [code_of_produce(clients.alice), code_of_produce(clients.alice, name="u")] == [0, 29]
    assert clients.make(acl(WRITE, permission=DENY, host="127.0.0.1/32")) == [0]
    assert code_of_produce(clients.alice) == 29
    assert clients.make(acl(WRITE, host="10.0.0.0/33")) == [42]


def test_older_release_takes_any_text_and_compares_it_as_text():
    clients = Clients(as_version="4.3")
    make_topic(clients.admin)
    assert clients.make(acl(WRITE, host="127.0.0.0/8"), acl(WRITE, host="10.0.0.0/33")) == [0, 0]
    assert code_of_produce(clients.alice) == 29
