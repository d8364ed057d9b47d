"""How the command line authenticates: `-X KEY=VALUE` and `--config FILE`, in Java's words or librdkafka's.

security.protocol; sasl.mechanism (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512) with sasl.username and sasl.password or
sasl.jaas.config; ssl.ca.location, ssl.certificate.location and ssl.key.location, or ssl.truststore.* and ssl.keystore.*
as PEM or PKCS12; ssl.endpoint.identification.algorithm. Imported only where momus.launch.use_packages() has run.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import ssl
import tempfile
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from momus.client.connect_settings import SETTINGS
from protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from broker.security.listener_settings import ListenerSettings

DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def protocol() -> str:
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. Errors: OSError: none of them."""
    name = SETTINGS.get("security.protocol", "PLAINTEXT").upper()
    if name not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        raise OSError(f"security.protocol={name} is none: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")
    return name


def wrapped(plain: socket.socket, host: str) -> socket.socket:
    """The socket with TLS, where the settings ask for it. Errors: OSError."""
    if not protocol().endswith("SSL"):
        return plain
    from broker.config.config_values import ConfigError  # 10 ms

    try:
        return tls_context().wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise OSError(f"the broker's certificate is not accepted: {error.verify_message}") from None
    except ssl.SSLError as error:
        raise OSError(f"no TLS: {(error.reason or str(error)).lower().replace('_', ' ')}") from None
    except ConfigError as error:
        raise OSError(str(error)) from None


def tls_context() -> ssl.SSLContext:
    """What the settings trust and show. Only where they name no authority it is the system's that are trusted.

    Errors: ConfigError, OSError.
    """
    from broker.shell.tls.key_stores import read_key, read_trusted  # 10 ms

    stores = ("ssl.keystore", "ssl.truststore", "ssl.key.")
    settings = _stores(
        {key: text for key, text in SETTINGS.items() if key.startswith(stores) and key != "ssl.key.location"}
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if path := SETTINGS.get("ssl.ca.location"):
        context.load_verify_locations(path)
    elif trusted := read_trusted(settings):
        context.load_verify_locations(cadata=trusted.decode())
    else:
        context.load_default_certs()
    if SETTINGS.get("ssl.endpoint.identification.algorithm", "https") in ("", "none"):
        context.check_hostname = False
    if path := SETTINGS.get("ssl.certificate.location"):
        context.load_cert_chain(path, SETTINGS.get("ssl.key.location"), SETTINGS.get("ssl.key.password"))
    elif "ssl.keystore.location" in SETTINGS or "ssl.keystore.key" in SETTINGS:
        material = read_key(settings)
        with tempfile.TemporaryDirectory(prefix="momus-key-") as folder:
            path = os.path.join(folder, "key.pem")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(material.key + b"\n" + material.chain)
            context.load_cert_chain(path, password=material.password or "")
    return context


def authenticate(call: Callable[[Any], Any]) -> None:
    """Authenticate by SASL, where the settings ask for it. Errors: OSError."""
    if not protocol().startswith("SASL"):
        return
    mechanism = (SETTINGS.get("sasl.mechanism") or SETTINGS.get("sasl.mechanisms") or "SCRAM-SHA-256").upper()
    if mechanism != "PLAIN" and mechanism not in DIGESTS:
        raise OSError(f"sasl.mechanism={mechanism} is not here: PLAIN, {', '.join(DIGESTS)}")
    user, password = _credentials()
    shaken = call(SaslHandshakeRequest(mechanism=mechanism))
    if shaken.error_code:
        raise OSError(f"{mechanism} is not enabled: the listener has {', '.join(shaken.mechanisms) or 'no SASL'}")
    if mechanism == "PLAIN":
        _step(call, f"\0{user}\0{password}".encode())
    else:
        _scram(call, DIGESTS[mechanism], user, password)


def login_of(jaas: str) -> tuple[str, str]:
    """User and password of a sasl.jaas.config. Errors: OSError."""
    from broker.config.config_values import ConfigError
    from broker.security.jaas import parse_jaas  # 5 ms

    try:
        options = parse_jaas(jaas).options
    except ConfigError as error:
        raise OSError(str(error)) from None
    return options.get("username", ""), options.get("password", "")


def stores_as_pem(stores: Mapping[str, str]) -> dict[str, str]:
    """What Java's key stores hold, in librdkafka's words: ssl.ca.pem, ssl.key.pem and its like. Errors: OSError."""
    from broker.config.config_values import ConfigError  # 10 ms
    from broker.shell.tls.key_stores import read_key, read_trusted

    found = {}
    try:
        settings = _stores(stores)
        if trusted := read_trusted(settings):
            found["ssl.ca.pem"] = trusted.decode()
        if any(key.startswith("ssl.keystore.") for key in stores):
            material = read_key(settings)
            found["ssl.key.pem"], found["ssl.certificate.pem"] = material.key.decode(), material.chain.decode()
            if material.password:
                found["ssl.key.password"] = material.password
    except ConfigError as error:
        raise OSError(str(error)) from None
    return found


def _stores(given: Mapping[str, str]) -> ListenerSettings:
    """What names key stores, as the settings of a listener. Errors: ConfigError."""
    from broker.config.settings import BrokerConfig  # 10 ms
    from broker.security.listener_settings import ListenerSettings

    return ListenerSettings(BrokerConfig.load(given), "client")


def _credentials() -> tuple[str, str]:
    if text := SETTINGS.get("sasl.jaas.config"):
        return login_of(text)
    return SETTINGS.get("sasl.username", ""), SETTINGS.get("sasl.password", "")


def _step(call: Callable[[Any], Any], token: bytes) -> bytes:
    answer: Any = call(SaslAuthenticateRequest(auth_bytes=token))
    if answer.error_code:
        raise OSError(answer.error_message or "authentication failed")
    data: bytes = answer.auth_bytes
    return data


def _scram(call: Callable[[Any], Any], digest: str, user: str, password: str) -> None:
    """The client's side. Source: RFC 5802."""
    nonce = b64encode(os.urandom(18)).decode()
    bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    first = _step(call, f"n,,{bare}".encode()).decode()
    parts = dict(part.split("=", 1) for part in first.split(","))
    if not parts["r"].startswith(nonce):
        raise OSError("the broker answers another client")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), b64decode(parts["s"]), int(parts["i"]))
    client_key = hmac.digest(salted, b"Client Key", digest)
    unsigned = f"c=biws,r={parts['r']}"
    message = f"{bare},{first},{unsigned}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
    proof = b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    last = _step(call, f"{unsigned},p={proof}".encode())
    expected = b"v=" + b64encode(hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest))
    if not hmac.compare_digest(last, expected):
        raise OSError("the broker does not know the password: it is another one")
