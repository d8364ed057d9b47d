"""TLS without a socket: handshakes step by step, client certificates, key stores, contexts that are replaced."""

from __future__ import annotations

import ssl
from collections import deque
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from broker.config.settings import BrokerConfig, ConfigError
from broker.security.listener_settings import ListenerSettings
from broker.shell.tls.contexts import ListenerContext, make_context
from broker.shell.tls.handshakes import LIMIT_S, MOST, MOST_LINES, SWEPT, Handshakes, Steps
from broker.shell.tls.protocol import TlsProtocol

CA = trustme.CA()
LEAF = CA.issue_cert("localhost", common_name="server")
ALICE = CA.issue_cert("a@b", common_name="alice")
KEY, CHAIN = LEAF.private_key_pem.bytes().decode(), LEAF.cert_chain_pems[0].bytes().decode()
INLINE = {"ssl.keystore.key": KEY, "ssl.keystore.certificate.chain": CHAIN}
TRUST = {"ssl.truststore.certificates": CA.cert_pem.bytes().decode(), "ssl.client.auth": "required"}


class Loop:
    """Calls that wait, and a clock that stands."""

    def __init__(self) -> None:
        self.calls: deque[Any] = deque()
        self.later: list[Any] = []
        self.now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def call_soon(self, call: Any) -> None:
        self.calls.append(call)

    def call_later(self, seconds: float, call: Any) -> Any:
        self.later.append(call)
        return self

    def cancel(self) -> None:
        pass

    def run(self) -> None:
        while self.calls:
            self.calls.popleft()()


class Socket:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.closed = False
        self.reading = True

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class App:
    """Stands for the Connection."""

    def __init__(self, certificate: Any) -> None:
        self.certificate = certificate
        self.received = b""
        self.closed = False
        self.host = "/peer"
        self.lost = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Any) -> None:
        self.lost = True


class Peer:
    """A TLS client, and the protocol that it talks to."""

    def __init__(
        self,
        handshakes: Handshakes,
        loop: Loop,
        *,
        cert: Any = None,
        ca: Any = CA,
        name: str = "localhost",
        **settings: str,
    ) -> None:
        self.loop = loop
        self.app: App | None = None
        given = {**INLINE, **{key.replace("_", "."): value for key, value in settings.items()}}
        server = make_context(ListenerSettings(BrokerConfig.load(given), "SSL"))
        self.protocol = TlsProtocol(lambda: server, handshakes, self._make, "SSL")
        self.socket = Socket()
        self.protocol.connection_made(self.socket)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        ca.configure_trust(context)
        if cert:
            cert.configure_cert(context)
        self.inward, self.outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = context.wrap_bio(self.inward, self.outward, server_hostname=name)

    def _make(self, certificate: Any) -> App:
        self.app = App(certificate)
        return self.app

    def exchange(self) -> None:
        """Carry bytes to and fro until nothing moves."""
        moved = True
        while moved:
            moved = False
            if data := self.outward.read():
                moved = True
                if not self.socket.closed:
                    self.protocol.data_received(data)
                    self.loop.run()
            if self.socket.written:
                moved = True
                self.inward.write(bytes(self.socket.written))
                self.socket.written.clear()

    def connect(self) -> None:
        for _ in range(4):
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.exchange()
            else:
                self.exchange()
                return
        raise ConnectionError("no handshake")

    def send(self, data: bytes) -> None:
        self.client.write(data)
        self.exchange()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def handshakes(loop) -> Handshakes:
    return Handshakes(loop, Steps())


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


# -- what a listener shows and trusts


def stores(folder: Path) -> dict[str, dict[str, str]]:
    """The same key and trust in each format."""
    key = serialization.load_pem_private_key(KEY.encode(), None)
    certificate = x509.load_pem_x509_certificate(CHAIN.encode())
    authority = x509.load_pem_x509_certificate(CA.cert_pem.bytes())
    secret = serialization.BestAvailableEncryption(b"store")
    (folder / "key.p12").write_bytes(pkcs12.serialize_key_and_certificates(b"a", key, certificate, [authority], secret))
    (folder / "trust.p12").write_bytes(
        pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(authority, b"ca")], secret)
    )
    (folder / "key.pem").write_text(KEY + CHAIN)
    (folder / "trust.pem").write_bytes(CA.cert_pem.bytes())
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"pw")
    )
    (folder / "locked.pem").write_text(locked.decode() + CHAIN)
    p12 = {
        "ssl.keystore.location": f"{folder}/key.p12",
        "ssl.keystore.password": "store",
        "ssl.truststore.location": f"{folder}/trust.p12",
        "ssl.truststore.password": "store",
    }
    pem = {"ssl.truststore.location": f"{folder}/trust.pem", "ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}
    return {
        "pkcs12": {**p12, "ssl.keystore.type": "PKCS12", "ssl.truststore.type": "PKCS12"},
        "pkcs12 called jks": p12,
        "pem": {**pem, "ssl.keystore.location": f"{folder}/key.pem"},
        "pem with a password": {**pem, "ssl.keystore.location": f"{folder}/locked.pem", "ssl.key.password": "pw"},
        "inline with a password": {
            **pem,
            "ssl.keystore.key": locked.decode(),
            "ssl.keystore.certificate.chain": CHAIN,
            "ssl.key.password": "pw",
        },
    }


@pytest.mark.parametrize(
    "kind", ["pkcs12", "pkcs12 called jks", "pem", "pem with a password", "inline with a password"]
)
def test_key_and_trust_are_read_from_each_format(tmp_path, handshakes, loop, kind, monkeypatch):
    monkeypatch.setitem(globals(), "INLINE", {})
    peer = Peer(handshakes, loop, cert=ALICE, **stores(tmp_path)[kind], **{"ssl.client.auth": "required"})
    peer.connect()
    peer.send(b"x")
    assert peer.app.received == b"x"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"ssl.keystore.location": "/nowhere"}, "cannot be read"),
        ({"ssl.keystore.password": "wrong"}, "no PKCS12 with this password"),
        ({"ssl.truststore.password": "wrong"}, "no PKCS12 with this password"),
        ({"ssl.keystore.location": ""}, "key store is not specified, but key store password is specified"),
        ({"ssl.keystore.location": "", "ssl.keystore.password": ""}, "needs a key"),
        ({"ssl.keystore.password": ""}, "key store is specified, but key store password is not specified"),
        ({"ssl.keystore.type": "PKCS13"}, "PKCS13 KeyStore not available"),
        ({"ssl.keystore.key": "x"}, "private key is specified, but certificate chain is not"),
        ({"ssl.keystore.certificate.chain": "x"}, "certificate chain is specified, but private key is not"),
        ({"ssl.keystore.certificate.chain": "x", "ssl.keystore.key": "x"}, "Both SSL key store location and separate"),
        ({"ssl.truststore.location": ""}, "trusts none"),
        ({"ssl.cipher.suites": "SESAME"}, "unknown to this OpenSSL"),
        ({"ssl.enabled.protocols": ""}, "needs a version"),
        ({"ssl.keystore.type": "PEM"}, "only key password may be specified"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.password": ""}, "No matching PRIVATE KEY entries in PEM file"),
    ],
)
def test_store_that_is_wrong_is_told(tmp_path, change, word):
    given = {**stores(tmp_path)["pkcs12"], "ssl.client.auth": "required", **change}
    with pytest.raises(ConfigError, match=word):
        make_context(ListenerSettings(BrokerConfig.load(given), "SSL"))


def test_old_version_of_tls_is_no_choice():
    with pytest.raises(ConfigError, match="TLSv1"):
        make_context(ListenerSettings(BrokerConfig.load({**INLINE, "ssl.enabled.protocols": "TLSv1.1"}), "SSL"))


@pytest.mark.parametrize(
    "name", ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"]
)
def test_cipher_suite_is_chosen_by_either_name(handshakes, loop, name):
    peer = Peer(handshakes, loop, ssl_cipher_suites=name)
    try:
        peer.connect()
    except (ssl.SSLError, ConnectionError):
        assert "RSA" in name, "the key is one of an elliptic curve"
    else:
        assert peer.client.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


def test_certificate_that_is_replaced_is_shown_to_new_connections(tmp_path, caplog):
    path = tmp_path / "key.pem"
    path.write_text(KEY + CHAIN)
    made = ListenerContext(BrokerConfig.load({"ssl.keystore.location": str(path), "ssl.keystore.type": "PEM"}), "SSL")
    first = made.current()
    assert made.current() is first
    path.write_text("nonsense")
    assert made.current() is first, "one that cannot be read changes nothing"
    assert "keeps its certificates" in caplog.text
    path.write_text(KEY + CHAIN + "\n")
    assert made.current() is not first
