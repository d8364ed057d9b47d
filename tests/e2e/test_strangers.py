"""Real TLS and HTTP clients on a listener of Kafka's, over sockets."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request

import pytest

from momus import Broker


@pytest.fixture(scope="module")
def met():
    with Broker(journal_mb=1) as broker:
        yield broker


def test_tls_client_fails_by_an_alert_and_the_log_says_why(met):
    host, port = met.bootstrap_servers.split(":")
    context = ssl.create_default_context()
    with (
        socket.create_connection((host, int(port))) as link,
        pytest.raises(ssl.SSLError, match="unexpected message"),
    ):
        context.wrap_socket(link, server_hostname="localhost")
    assert "this is a TLS hello; this listener (PLAINTEXT) is PLAINTEXT" in met.log
    met.journal.verify(api="TLS hello", times=1)


def test_http_client_reads_the_sentence(met):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://{met.bootstrap_servers}/topics", data=b"x" * 100)
    assert refused.value.code == 400
    assert b"this is an HTTP request; this listener (PLAINTEXT) speaks Kafka's protocol alone" in refused.value.read()


def test_librdkafka_over_tls_learns_of_the_alert(met):
    from confluent_kafka.admin import AdminClient

    told: list[str] = []
    config = {
        "bootstrap.servers": met.bootstrap_servers,
        "security.protocol": "SSL",
        "error_cb": lambda e: told.append(str(e)),
    }
    client = AdminClient(config)
    while not any("unexpected message" in each or "SSL handshake failed" in each for each in told):
        client.poll(1)
    assert any("alert" in each for each in told), told
