"""What a TLS listener shows and trusts, as an SSLContext that is made again when one of its files is replaced.

Differs:  a listener with TLS that has no key, or the certificate of another key, or asks for certificates and trusts
          none, or has a version of TLS or a cipher suite that is unknown, does not start; in Kafka it does, and no
          client gets through. A key in the settings is PEM, whatever `ssl.keystore.type` says, and may be encrypted
          by PBES2.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from typing import TYPE_CHECKING, Any, Final

from broker.config.config_values import ConfigError
from broker.security.listener_settings import ListenerSettings
from broker.security.principals import PrincipalRules
from broker.shell.tls.key_stores import files_of, read_key, read_trusted

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig

logger = logging.getLogger("momus.security")

CLIENT_AUTH: Final = "ssl.client.auth"
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"required": ssl.CERT_REQUIRED, "requested": ssl.CERT_OPTIONAL, "none": ssl.CERT_NONE}


class ListenerContext:
    """The SSLContext of a listener. `is_sasl`: its clients authenticate by SASL. Errors: ConfigError."""

    def __init__(self, config: BrokerConfig, name: str, *, is_sasl: bool = False) -> None:
        self._settings = ListenerSettings(config, name)
        self._is_sasl = is_sasl
        self.rules = PrincipalRules(self._settings.text("ssl.principal.mapping.rules"))
        self._seen = self._stamp()
        self._context = make_context(self._settings, is_sasl=is_sasl)
        if is_sasl and not self._settings.is_own(CLIENT_AUTH) and self._settings.text(CLIENT_AUTH) != "none":
            logger.warning(
                "%s is not for the SASL_SSL listener %s, as in Kafka: set listener.name.%s.%s to ask its clients for"
                " certificates",
                CLIENT_AUTH,
                name,
                name.lower(),
                CLIENT_AUTH,
            )

    def current(self) -> ssl.SSLContext:
        """The context for a new connection. Files that cannot be used leave the one before in place."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._context = make_context(self._settings, is_sasl=self._is_sasl)
            except ConfigError as error:
                logger.error("the listener %s keeps its certificates: %s", self._settings.name, error)
            else:
                logger.info("the listener %s shows new certificates", self._settings.name)
        return self._context

    def _stamp(self) -> list[Any]:
        stamp: list[Any] = []
        for path in files_of(self._settings):
            try:
                found = os.stat(path)
            except OSError:
                stamp.append(None)
            else:
                stamp.append((found.st_ino, found.st_mtime_ns, found.st_size))
        return stamp


def make_context(settings: ListenerSettings, *, is_sasl: bool = False) -> ssl.SSLContext:
    """The context that a listener's settings describe. Errors: ConfigError.

    A SASL_SSL listener asks for certificates only if its own ssl.client.auth says so (KIP-684).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = sorted(_VERSIONS[name] for name in settings.words("ssl.enabled.protocols"))
    if not versions:
        raise ConfigError("ssl.enabled.protocols", "", "needs a version of TLS")
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if names := settings.words("ssl.cipher.suites"):
        _set_ciphers(context, names)
    material = read_key(settings)
    _load_key(context, material.key, material.chain, material.password)
    if settings.is_own(CLIENT_AUTH) or not is_sasl:
        context.verify_mode = _CLIENT_AUTH[settings.text(CLIENT_AUTH)]
    if context.verify_mode != ssl.CERT_NONE:
        trusted = read_trusted(settings)
        if not trusted:
            raise ConfigError(
                "ssl.truststore.location",
                "",
                f"the listener {settings.name} asks clients for certificates, and trusts none",
            )
        try:
            context.load_verify_locations(cadata=trusted.decode())
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError("ssl.truststore.location", "", f"holds no certificates: {error}") from None
    return context


def _set_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    """Java's names of TLS 1.2 become OpenSSL's; suites of TLS 1.3 cannot be chosen one by one. Errors: ConfigError."""
    by_java = {_java_name(each["name"]): each["name"] for each in context.get_ciphers()}
    known = {each["name"] for each in context.get_ciphers()}
    chosen = [by_java.get(name, name) for name in names]
    if wrong := [name for name in chosen if name not in known]:
        raise ConfigError("ssl.cipher.suites", ",".join(wrong), "is unknown to this OpenSSL")
    if old := [name for name in chosen if not name.startswith("TLS_")]:
        context.set_ciphers(":".join(old))
        if len(old) == len(chosen):
            context.maximum_version = ssl.TLSVersion.TLSv1_2
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3


def _java_name(name: str) -> str:
    """ECDHE-RSA-AES128-GCM-SHA256 -> TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    exchange, found, cipher = name.partition("-AES")
    if not found:
        return name
    bits, _, rest = cipher.partition("-")
    return f"TLS_{exchange.replace('-', '_')}_WITH_AES_{bits}_{rest.replace('-', '_')}"


def _load_key(context: ssl.SSLContext, key: bytes, chain: bytes, password: str) -> None:
    """Load a key and certificates. OpenSSL reads them from a file: one that only this user can read, for a moment."""
    descriptor, path = tempfile.mkstemp(prefix="momus-tls-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key if key == chain else key + b"\n" + chain)
        context.load_cert_chain(path, password=password or "")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError("ssl.keystore", "", f"holds no private key with its certificate: {error}") from None
    finally:
        os.unlink(path)
