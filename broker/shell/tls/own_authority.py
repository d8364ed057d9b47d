"""Certificates for tests: an authority with the broker's certificate and one for each user, in a folder.

The authority and its key stay in the folder, so that clients trust the broker after a restart. Made by trustme (extra
`security`). Nothing here protects anything: whoever reads the folder can be anybody.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from broker.config.config_values import ConfigError
from broker.security.listener_settings import need
from storage.files.env import SystemClock

STORE_PASSWORD: Final = "changeit"
SERVER: Final = "server"
_HOSTS: Final = ("localhost", "127.0.0.1", "::1", "host.docker.internal", "broker", "momus")
_USER: Final = re.compile(r"[A-Za-z0-9_.@-]{1,64}")


class OwnAuthority:
    """The certificates of one cluster.

    hosts    names and addresses that the broker's certificate is for, beside loopback's.
    Errors:  ConfigError: trustme is not installed. OSError.
    """

    __test__ = False  # for pytest

    def __init__(self, folder: str, hosts: tuple[str, ...] = ()) -> None:
        need("trustme", "--security")
        import trustme  # 60 ms, and only --security needs it

        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        os.chmod(self.folder, 0o700)
        self._hosts = tuple(dict.fromkeys((*_HOSTS, *(host for host in hosts if host not in ("", "0.0.0.0", "::")))))
        self._trustme: Any = trustme
        key, certificate = self.folder / "ca.key", self.folder / "ca.pem"
        if key.exists() and certificate.exists():
            self._ca = trustme.CA.from_pem(certificate.read_bytes(), key.read_bytes())
        else:
            self._new_authority()
        if not (self.folder / "server.pem").exists():
            self.issue(SERVER)

    def _new_authority(self) -> None:
        self._ca = self._trustme.CA(organization_name="momus")
        self._write("ca.pem", self._ca.cert_pem.bytes())
        self._write("ca.key", self._ca.private_key_pem.bytes())
        self._write("truststore.p12", self._trust_store())

    def _write(self, name: str, data: bytes) -> None:
        """Replace a file; no reader sees half of it."""
        path = self.folder / f".{name}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
        path.replace(self.folder / name)

    def has(self, name: str) -> bool:
        """Whether there is a certificate of this name."""
        return (self.folder / f"{name}.pem").exists()

    def issue(self, name: str, *, is_expired: bool = False, hosts: tuple[str, ...] = ()) -> None:
        """Make a certificate for the broker ("server") or a user, in the place of the one before.

        hosts   what the certificate is for, in the place of what it should be for.
        Errors: ValueError: no name of a file.
        """
        if not _USER.fullmatch(name):
            raise ValueError(f"{name:.64} is no name for a certificate: letters, digits and _.@- are")
        now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)  # the clock that TLS libraries read
        words: dict[str, Any] = {}
        if is_expired:
            words = {"not_before": now - timedelta(days=30), "not_after": now - timedelta(days=1)}
        names = hosts or (self._hosts if name == SERVER else (f"{name.replace('@', '.')}@momus.example",))
        made = self._ca.issue_cert(*names, common_name="momus" if name == SERVER else name, **words)
        self._write(f"{name}.pem", made.private_key_and_cert_chain_pem.bytes())
        self._write(f"{name}.p12", self._key_store(made))

    def rotate(self, *, authority: bool = False) -> None:
        """Make all certificates again; `authority`: by another authority, which earlier clients do not trust."""
        names = [path.stem for path in self.folder.glob("*.pem") if path.stem != "ca"]
        if authority:
            self._new_authority()
        for name in names:
            self.issue(name)

    def _key_store(self, made: Any) -> bytes:
        # 30 ms, and trustme has loaded them
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12

        key: Any = serialization.load_pem_private_key(made.private_key_pem.bytes(), None)
        chain = [x509.load_pem_x509_certificate(each.bytes()) for each in made.cert_chain_pems]
        lock = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
        return pkcs12.serialize_key_and_certificates(b"momus", key, chain[0], chain[1:] or None, lock)

    def _trust_store(self) -> bytes:
        # 30 ms, and trustme has loaded them
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12

        trusted = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(self._ca.cert_pem.bytes()), b"momus-ca")
        lock = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
        return pkcs12.serialize_java_truststore([trusted], lock)


def check_user(name: str) -> None:
    """Refuse users that cannot be. Errors: ConfigError."""
    if not _USER.fullmatch(name) or name in (SERVER, "ca"):
        raise ConfigError("--user", name, "is NAME:PASSWORD, and a name has letters, digits and _.@-")
