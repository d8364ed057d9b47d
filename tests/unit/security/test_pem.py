"""PEM as settings hold it: with line ends, with spaces in their place, as text and as a file."""

from __future__ import annotations

import ssl

import pytest
import trustme

from broker.config.settings import BrokerConfig
from broker.security.listener_settings import ListenerSettings
from broker.shell.tls.contexts import make_context
from broker.shell.tls.key_stores import in_lines
from momus.client import wire_security
from momus.client.connect_settings import SETTINGS

CA = trustme.CA()
LEAF = CA.issue_cert("localhost")
KEY = LEAF.private_key_pem.bytes().decode()
CHAIN = LEAF.cert_chain_pems[0].bytes().decode()
TRUSTED = CA.cert_pem.bytes().decode()


def one_line(pem: str) -> str:
    """As people paste it into a setting, or a variable."""
    return " ".join(pem.split("\n"))


@pytest.mark.parametrize("written", [one_line, str, lambda pem: pem.replace("\n", "\r\n")])
def test_key_and_certificates_are_read_however_their_lines_end(written):
    settings = {
        "ssl.keystore.key": written(KEY),
        "ssl.keystore.certificate.chain": written(CHAIN + TRUSTED),
        "ssl.truststore.certificates": written(TRUSTED),
        "ssl.client.auth": "required",
    }
    context = make_context(ListenerSettings(BrokerConfig.load(settings), "SSL"))
    assert [each["serialNumber"] for each in context.get_ca_certs()]


def test_files_are_read_in_the_same_way(tmp_path):
    (tmp_path / "key.pem").write_text(one_line(KEY + CHAIN))
    settings = {"ssl.keystore.location": str(tmp_path / "key.pem"), "ssl.keystore.type": "PEM"}
    make_context(ListenerSettings(BrokerConfig.load(settings), "SSL"))


def test_command_trusts_certificates_in_one_line(monkeypatch):
    monkeypatch.setattr(
        "momus.client.wire_security.SETTINGS", {**SETTINGS, "ssl.truststore.certificates": one_line(TRUSTED)}
    )
    assert len(wire_security.tls_context().get_ca_certs()) == 1
    assert (
        one_line(TRUSTED)
        not in wire_security.stores_as_pem({"ssl.truststore.certificates": one_line(TRUSTED)}).values()
    )


def test_lines_are_those_of_the_file_that_was_pasted():
    assert in_lines(one_line(KEY)).decode().strip() == KEY.strip()
    both = ssl.create_default_context(cadata=in_lines(one_line(CHAIN + TRUSTED)).decode())
    assert both.cert_store_stats()["x509"] == 2
    old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\nabc\n-----END RSA PRIVATE KEY-----"
    assert in_lines(old).decode() == old
    assert ssl.PEM_cert_to_DER_cert(in_lines(one_line(CHAIN)).decode().strip())
