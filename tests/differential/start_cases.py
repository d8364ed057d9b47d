"""Settings of listeners, addresses, quorum, SASL and TLS: right, missing, empty, twice, wrong, contradictory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from differential.start_case import Case
from differential.start_listeners import (
    advertised_cases,
    controller_cases,
    inter_broker_cases,
    listener_cases,
    map_cases,
    quorum_cases,
)
from differential.start_security import jaas_cases, sasl_cases, store_cases, tls_cases

RECORDED = Path(__file__).parent.parent / "conformance" / "starts.json"


def write_material(folder: Path) -> None:
    """The files that cases of TLS name."""
    authority = trustme.CA()
    leaf, other = authority.issue_cert("localhost", "127.0.0.1"), authority.issue_cert("localhost")
    key, chain = leaf.private_key_pem.bytes(), leaf.cert_chain_pems[0].bytes() + authority.cert_pem.bytes()
    private = serialization.load_pem_private_key(key, None)
    pkcs8 = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    locked = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    store = pkcs12.serialize_key_and_certificates(
        b"server",
        private,  # type: ignore[arg-type]  # an RSA or EC key
        certificate,
        None,
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(1000)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .build(b"secret"),
    )
    files = {
        "key.pem": pkcs8,
        "locked.pem": locked,
        "chain.pem": chain,
        "both.pem": pkcs8 + chain,
        "ca.pem": authority.cert_pem.bytes(),
        "other.pem": other.cert_chain_pems[0].bytes(),
        "store.p12": store,
        "nonsense": b"nothing of the kind\n",
        "empty": b"",
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)


def with_files(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """`<NAME>` in a value is the text of a file, `<NAME|line>` the same in one line."""
    found = {}
    for key, text in settings.items():
        for name in [each.name for each in folder.iterdir()] if "<" in text else ():
            data = (folder / name).read_text("latin-1")
            text = text.replace(f"<{name}>", data).replace(f"<{name}|line>", " ".join(data.split("\n")))
        found[key] = text
    return found


def cases() -> Iterator[Case]:
    """All of them."""
    for kind, found in (
        ("listeners", listener_cases()),
        ("advertised", advertised_cases()),
        ("map", map_cases()),
        ("inter broker", inter_broker_cases()),
        ("controllers", controller_cases()),
        ("quorum", quorum_cases()),
        ("sasl", sasl_cases()),
        ("jaas", jaas_cases()),
        ("tls", tls_cases()),
        ("stores", store_cases()),
    ):
        for case in found:
            yield case._replace(name=f"{kind}: {case.name}")
