"""Reads private keys and certificates as Kafka's settings give them: PEM as text, PEM files, PKCS12, JKS. Gives PEM.

PKCS12 needs `cryptography` (extra `security`), JKS `pyjks` (extra `jks`). A file that is called JKS may be PKCS12,
which is what Java writes since version 9; it is recognised by its first bytes.
"""

from __future__ import annotations

import base64
import re
import struct
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.config.config_values import ConfigError, StartRefusedError
from broker.security.listener_settings import need

if TYPE_CHECKING:
    from broker.security.listener_settings import ListenerSettings

_BLOCK: Final = re.compile(r"[ \t]*-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----\s*", re.DOTALL)
_KEYS: Final = ("key", "certificate.chain", "location", "password", "type")
_KINDS: Final = ("JKS", "PKCS12", "PEM")
_JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
_JCEKS_MAGIC: Final = b"\xce\xce\xce\xce"


class KeyMaterial(NamedTuple):
    """What a broker shows of itself."""

    key: bytes  # PEM
    chain: bytes  # PEM, its own certificate first
    password: str = ""  # of the key


def read_key(settings: ListenerSettings) -> KeyMaterial:
    """The broker's key and certificates. Errors: ConfigError."""
    password = settings.text("ssl.key.password")
    _check_keys(settings)
    if text := settings.text("ssl.keystore.key"):
        material = KeyMaterial(in_lines(text), in_lines(settings.text("ssl.keystore.certificate.chain")), password)
        _check_pem(material.key, material.chain)
        return material
    key = "ssl.keystore.location"
    path = settings.text(key)
    if not path:
        raise ConfigError(
            key, "", f"the listener {settings.name} needs a key: set it, or ssl.keystore.key and its certificate.chain"
        )
    data = _read(key, path)
    if settings.text("ssl.keystore.type").upper() == "PEM":
        pem = in_lines(data.decode("latin-1"))
        _check_pem(pem, pem)
        return KeyMaterial(pem, pem, password)
    store_password = settings.text("ssl.keystore.password")
    return (
        _from_jks(key, path, data, store_password, password)
        if _is_jks(data)
        else _from_pkcs12(key, path, data, store_password)
    )


def _check_keys(settings: ListenerSettings) -> None:
    """Refuse settings of a key that contradict each other. Errors: ConfigError, in Kafka's words."""
    key, chain, path, word, kind = (settings.text(f"ssl.keystore.{each}") for each in _KEYS)
    is_pem = kind.upper() == "PEM"
    for is_wrong, why in (
        (key and not chain, "SSL private key is specified, but certificate chain is not specified."),
        (chain and not key, "SSL certificate chain is specified, but private key is not specified"),
        (key and path, "Both SSL key store location and separate private key are specified."),
        (word and not key and not path, "SSL key store is not specified, but key store password is specified."),
        (
            word and is_pem,
            "SSL key store password cannot be specified with PEM format, only key password may be specified",
        ),
        (path and not word and not is_pem, "SSL key store is specified, but key store password is not specified."),
        (path and kind.upper() not in _KINDS, f"{kind} KeyStore not available: {', '.join(_KINDS)}"),
    ):
        if is_wrong:
            raise StartRefusedError("ssl.keystore", f"{why} (listener {settings.name})")


def _check_pem(key: bytes, chain: bytes) -> None:
    for text, what in ((key, "PRIVATE KEY"), (chain, "CERTIFICATE")):
        if what.encode() not in text:
            raise StartRefusedError("ssl.keystore", f"No matching {what} entries in PEM file")


def read_trusted(settings: ListenerSettings) -> bytes:
    """The certificates that are trusted, as PEM; empty when none are set. Errors: ConfigError."""
    if text := settings.text("ssl.truststore.certificates"):
        return in_lines(text)
    key = "ssl.truststore.location"
    path = settings.text(key)
    if not path:
        return b""
    data = _read(key, path)
    if settings.text("ssl.truststore.type").upper() == "PEM":
        return in_lines(data.decode("latin-1"))
    password = settings.text("ssl.truststore.password")
    return (
        _certificates_of_jks(key, path, data, password)
        if _is_jks(data)
        else _trusted_of_pkcs12(key, path, data, password)
    )


def files_of(settings: ListenerSettings) -> list[str]:
    """The files that a listener's key and certificates are read from."""
    paths = [settings.text("ssl.truststore.location")]
    if not settings.text("ssl.keystore.key"):
        paths.append(settings.text("ssl.keystore.location"))
    return [path for path in paths if path]


def in_lines(text: str) -> bytes:
    """PEM with the line ends that OpenSSL wants: settings often hold spaces in their place, which Java accepts."""
    return _BLOCK.sub(_block, text).encode("latin-1", "replace")


def _block(found: re.Match[str]) -> str:
    label, body = found[1], found[2]
    if ":" in body:  # headers, of a key that is encrypted in the old way: each is a line of its own
        return found[0]
    lines = "\n".join(textwrap.wrap("".join(body.split()), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


def _read(key: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(key, path, f"cannot be read: {error.strerror}") from None


def _is_jks(data: bytes) -> bool:
    return data[:4] in (_JKS_MAGIC, _JCEKS_MAGIC)


def _from_pkcs12(key: str, path: str, data: bytes, password: str) -> KeyMaterial:
    need("cryptography", key)
    # 30 ms, and only key stores of Java need it
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        private_key, certificate, others = pkcs12.load_key_and_certificates(data, password.encode() or None)
    except ValueError as error:
        raise ConfigError(key, path, f"is no PKCS12 with this password: {error}") from None
    if private_key is None or certificate is None:
        raise ConfigError(key, path, "has no private key with a certificate")
    pem = serialization.Encoding.PEM
    return KeyMaterial(
        private_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        b"".join(each.public_bytes(pem) for each in (certificate, *others)),
    )


def _trusted_of_pkcs12(key: str, path: str, data: bytes, password: str) -> bytes:
    need("cryptography", key)
    # 30 ms, and few listeners need it
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    try:
        found = pkcs12.load_pkcs12(data, password.encode() or None)
    except ValueError as error:
        raise ConfigError(key, path, f"is no PKCS12 with this password: {error}") from None
    certificates = [*([found.cert] if found.cert else []), *found.additional_certs]
    return b"".join(each.certificate.public_bytes(Encoding.PEM) for each in certificates)


def _from_jks(key: str, path: str, data: bytes, password: str, key_password: str) -> KeyMaterial:
    store = _open_jks(key, path, data, password)
    for entry in store.private_keys.values():
        try:
            entry.decrypt(key_password or password)
        except _jks_errors() as error:
            raise ConfigError(key, path, f"has a key that this password does not open: {error}") from None
        chain = b"".join(_pem("CERTIFICATE", der) for _, der in entry.cert_chain)
        return KeyMaterial(_pem("PRIVATE KEY", entry.pkey_pkcs8), chain)
    raise ConfigError(key, path, "has no private key")


def _certificates_of_jks(key: str, path: str, data: bytes, password: str) -> bytes:
    return b"".join(_pem("CERTIFICATE", entry.cert) for entry in _open_jks(key, path, data, password).certs.values())


def _open_jks(key: str, path: str, data: bytes, password: str):  # type: ignore[no-untyped-def]  # the library has no types
    from importlib.util import find_spec  # 0 ms: loaded already

    if find_spec("jks") is None:
        raise ConfigError(
            key,
            path,
            "is a JKS: pip install 'momus[jks]', or convert it: keytool -importkeystore -srckeystore OLD"
            " -destkeystore NEW -deststoretype PKCS12",
        )
    import jks  # 60 ms, and few listeners need it

    try:
        return jks.KeyStore.loads(data, password, try_decrypt_keys=False)
    except _jks_errors() as error:
        raise ConfigError(key, path, f"is no JKS with this password: {error}") from None


def _jks_errors() -> tuple[type[Exception], ...]:
    import jks  # 60 ms, and few listeners need it

    return jks.util.KeystoreException, ValueError, IndexError, struct.error  # the last ones of a file that is cut


def _pem(label: str, der: bytes) -> bytes:
    text = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64))
    return f"-----BEGIN {label}-----\n{text}\n-----END {label}-----\n".encode()
