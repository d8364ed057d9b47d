"""TLS without a socket: handshakes step by step, client certificates, and connections that end."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
import trustme
from tls_kit import ALICE, CA, INLINE, Peer, Socket

from broker.config.settings import BrokerConfig
from broker.shell.tls.contexts import ListenerContext
from broker.shell.tls.handshakes import LIMIT_S, MOST, MOST_LINES, SWEPT, Handshakes, Steps
from broker.shell.tls.protocol import TlsProtocol

TRUST = {"ssl.truststore.certificates": CA.cert_pem.bytes().decode(), "ssl.client.auth": "required"}


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3", "TLSv1.2,TLSv1.3"])
def test_bytes_pass_both_ways(handshakes, loop, versions):
    peer = Peer(handshakes, loop, ssl_enabled_protocols=versions)
    peer.connect()
    assert peer.client.version() == versions.split(",")[-1]
    data = bytes(range(256)) * 2500  # more than is decrypted at once
    peer.send(data)
    assert peer.app.received == data
    peer.app.transport.write(data)
    peer.exchange()
    got = b""
    while len(got) < len(data):
        got += peer.client.read(1 << 20)
    assert got == data
    assert handshakes.done == 1


def test_what_comes_while_the_connection_does_not_read_is_kept(handshakes, loop):
    peer = Peer(handshakes, loop)
    peer.connect()
    peer.app.transport.pause_reading()
    assert not peer.socket.reading
    peer.send(b"one")
    peer.send(b"two")
    assert peer.app.received == b""
    peer.app.transport.resume_reading()
    assert peer.app.received == b"onetwo"
    assert peer.socket.reading


def test_goodbye_of_the_client_closes(handshakes, loop):
    peer = Peer(handshakes, loop)
    peer.connect()
    with pytest.raises(ssl.SSLWantReadError):
        peer.client.unwrap()
    peer.exchange()
    assert peer.socket.closed


def test_close_says_goodbye(handshakes, loop):
    peer = Peer(handshakes, loop)
    peer.connect()
    peer.app.transport.close()
    peer.exchange()
    assert peer.client.read(10) == b""


def test_client_that_is_no_tls_is_closed_and_told_in_the_log(handshakes, loop, caplog):
    peer = Peer(handshakes, loop)
    peer.protocol.data_received(b"\0\0\0\x10abc")
    assert peer.socket.closed
    assert "no TLS" in caplog.text
    assert handshakes.failed == 1


def test_client_that_does_not_trust_the_broker_is_logged(handshakes, loop, caplog):
    peer = Peer(handshakes, loop, ca=trustme.CA())
    with pytest.raises(ssl.SSLCertVerificationError):
        peer.connect()
    peer.exchange()
    assert peer.socket.closed
    assert "unknown ca" in caplog.text


def test_wrong_host_is_the_client_s_own_error(handshakes, loop):
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        Peer(handshakes, loop, name="elsewhere").connect()


@pytest.mark.parametrize(
    ("auth", "cert", "is_good"),
    [
        ("required", ALICE, True),
        ("required", None, False),
        ("requested", None, True),
        ("requested", ALICE, True),
        ("none", ALICE, True),
    ],
)
def test_client_certificate_is_asked_for_as_set(handshakes, loop, auth, cert, is_good):
    peer = Peer(handshakes, loop, cert=cert, **{**TRUST, "ssl.client.auth": auth, "ssl.enabled.protocols": "TLSv1.2"})
    if not is_good:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            peer.connect()
        assert peer.socket.closed
        assert peer.app is None
        return
    peer.connect()
    shown = dict(pair for part in (peer.app.certificate or {}).get("subject", ()) for pair in part)
    assert shown.get("commonName") == ("alice" if cert and auth != "none" else None)


@pytest.mark.parametrize(
    ("key", "is_sasl", "asks"),
    [
        ("ssl.client.auth", False, True),
        ("ssl.client.auth", True, False),
        ("listener.name.secure.ssl.client.auth", False, True),
        ("listener.name.secure.ssl.client.auth", True, True),
    ],
)
def test_sasl_listener_asks_for_certificates_by_its_own_setting_alone(key, is_sasl, asks, caplog):
    trusted = {"ssl.truststore.certificates": TRUST["ssl.truststore.certificates"]}
    config = BrokerConfig.load({**INLINE, **trusted, key: "required"})
    made = ListenerContext(config, "SECURE", is_sasl=is_sasl)
    assert (made.current().verify_mode == ssl.CERT_REQUIRED) == asks
    assert ("set listener.name.secure.ssl.client.auth" in caplog.text) == (not asks)


@pytest.mark.parametrize("stranger", [trustme.CA().issue_cert("a@b", common_name="mallory")])
def test_client_certificate_of_another_authority_is_refused(handshakes, loop, stranger):
    peer = Peer(handshakes, loop, cert=stranger, **TRUST)
    peer.connect()  # with TLS 1.3 the client hears of it later
    with pytest.raises(ssl.SSLError):
        peer.client.read(1)
    assert peer.app is None


def test_handshakes_take_one_step_an_iteration(loop, handshakes):
    peers = [Peer(handshakes, loop) for _ in range(5)]
    for peer in peers:
        with pytest.raises(ssl.SSLWantReadError):
            peer.client.do_handshake()
        peer.protocol.data_received(peer.outward.read())
    for n in range(5):
        assert len(loop.calls) == 1
        loop.calls.popleft()()
        assert [bool(peer.socket.written) for peer in peers] == [i <= n for i in range(5)]


def test_handshake_that_takes_too_long_is_closed(loop, handshakes):
    slow, late = Peer(handshakes, loop), None
    loop.now_s = LIMIT_S
    late = Peer(handshakes, loop)
    loop.now_s += 1
    loop.later.pop()()
    assert (slow.socket.closed, late.socket.closed) == (True, False)
    late.connect()


def test_clusters_take_their_steps_in_turn(loop):
    """As many clusters as there may be, an iteration has one step."""
    steps = Steps()
    peers = [Peer(Handshakes(loop, steps), loop) for _ in range(3)]
    for peer in peers:
        with pytest.raises(ssl.SSLWantReadError):
            peer.client.do_handshake()
        peer.protocol.data_received(peer.outward.read())
    assert len(loop.calls) == 1


def test_late_handshakes_are_closed_and_logged_a_few_at_a_time(loop, handshakes, caplog):
    peers = [Peer(handshakes, loop) for _ in range(2 * SWEPT + 1)]
    loop.now_s = LIMIT_S + 1
    loop.later.pop()()
    assert sum(peer.socket.closed for peer in peers) == SWEPT
    loop.calls.popleft()()
    assert sum(peer.socket.closed for peer in peers) == 2 * SWEPT
    loop.run()
    assert all(peer.socket.closed for peer in peers)
    assert len(caplog.records) == MOST_LINES
    loop.later.pop()()
    assert caplog.messages[-1] == f"{len(peers) - MOST_LINES} more TLS handshakes have failed in the last second"


def test_handshakes_end_with_their_cluster(loop, handshakes):
    peer = Peer(handshakes, loop)
    handshakes.close()
    assert peer.socket.closed


def test_client_is_accepted_without_work_for_tls(loop, handshakes):
    made: list[Any] = []
    protocol = TlsProtocol(lambda: made.append(1), handshakes, lambda certificate: None, "SSL")
    protocol.connection_made(Socket())
    assert not made


def test_most_handshakes_close_the_oldest(loop, handshakes, monkeypatch):
    monkeypatch.setattr("broker.shell.tls.handshakes.MOST", 3)
    peers = [Peer(handshakes, loop) for _ in range(5)]
    assert [peer.socket.closed for peer in peers] == [True, True, False, False, False]
    assert MOST == 1000


def test_flood_before_the_end_of_a_handshake_is_closed(loop, handshakes):
    peer = Peer(handshakes, loop)
    for _ in range(9):
        if not peer.socket.closed:
            peer.protocol.data_received(b"\x16\x03\x01\x3f\xff" + bytes(8000))
    assert peer.socket.closed
