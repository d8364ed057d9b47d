"""Key stores in Java's old format, which the extra `jks` reads."""

from __future__ import annotations

import importlib.util
import ssl
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from broker.config.settings import BrokerConfig, ConfigError
from broker.security.listener_settings import ListenerSettings
from broker.shell.tls.contexts import make_context

CA = trustme.CA()
LEAF = CA.issue_cert("localhost", common_name="server")


def settings(folder: Path, **more: str) -> ListenerSettings:
    given = {
        "ssl.keystore.location": f"{folder}/key.jks",
        "ssl.keystore.password": "store1",
        "ssl.truststore.location": f"{folder}/trust.jks",
        "ssl.truststore.password": "store1",
        "ssl.client.auth": "required",
        **more,
    }
    return ListenerSettings(BrokerConfig.load(given), "SSL")


def der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize("key_password", ["store1", "another"])
def test_key_and_trust_are_read(tmp_path, key_password):
    jks = pytest.importorskip("jks", reason="needs pip install 'momus[jks]', one part of which must be compiled")
    key = serialization.load_pem_private_key(LEAF.private_key_pem.bytes(), None).private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    entry = jks.PrivateKeyEntry.new("mine", [der(LEAF.cert_chain_pems[0].bytes())], key, "pkcs8")
    entry.encrypt(key_password)
    jks.KeyStore.new("jks", [entry]).save(str(tmp_path / "key.jks"), "store1")
    trusted = jks.TrustedCertEntry.new("ca", der(CA.cert_pem.bytes()))
    jks.KeyStore.new("jks", [trusted]).save(str(tmp_path / "trust.jks"), "store1")
    context = make_context(settings(tmp_path, **{"ssl.key.password": key_password}))
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1
    for wrong in ({"ssl.keystore.password": "x"}, {"ssl.truststore.password": "x"}, {"ssl.key.password": "x"}):
        with pytest.raises(ConfigError, match="password"):
            make_context(settings(tmp_path, **{"ssl.key.password": key_password, **wrong}))


def test_without_the_library_the_start_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "key.jks").write_bytes(b"\xfe\xed\xfe\xed" + bytes(20))
    with pytest.raises(ConfigError, match=r"pip install 'momus\[jks\]', or convert it: keytool"):
        make_context(settings(tmp_path))
