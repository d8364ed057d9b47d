"""Keys and authorities of TLS: each format of store, what is wrong with one, versions, and certificates replaced."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from tls_kit import ALICE, CA, CHAIN, INLINE, KEY, Peer

from broker.config.settings import BrokerConfig, ConfigError
from broker.security.listener_settings import ListenerSettings
from broker.shell.tls.contexts import ListenerContext, make_context

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
    monkeypatch.setattr("tls_kit.INLINE", {})
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
