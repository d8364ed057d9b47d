"""What answers at an address: a broker, something else, or nothing; found with plain sockets."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

# ApiVersions v0, correlation id 7, client id "momus-doctor": what every broker since 0.10 answers before all else.
_HELLO = b"\x00\x12\x00\x00\x00\x00\x00\x07\x00\x0cmomus-doctor"
_MOST_BYTES = 1 << 20  # of an answer to ApiVersions; who sends more is no broker
_ALERTS = {
    10: "unexpected_message",
    40: "handshake_failure",
    42: "bad_certificate",
    70: "protocol_version",
    116: "certificate_required",
}


class Probe(NamedTuple):
    """What is at HOST:PORT.

    kind      "kafka", "tls", "http", "silent", "hangs up", "other", "refused", "unreachable" or "unknown host".
    versions  of a broker: API key -> (oldest, newest).
    detail    what the system, or the certificate's check, said.
    ms        milliseconds that the answer took.
    """

    kind: str
    versions: Mapping[int, tuple[int, int]] = MappingProxyType({})
    detail: str = ""
    ms: float = 0.0


def probe(host: str, port: int, timeout_s: float, cafile: str | None = None) -> Probe:
    """Ask who is there. Never raises."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return Probe("unknown host", detail=str(getattr(error, "strerror", None) or error))
    started = time.monotonic()
    try:
        answer = _ask(host, port, timeout_s, len(_HELLO).to_bytes(4, "big") + _HELLO)
    except ConnectionRefusedError:
        return Probe("refused", detail=", ".join(sorted({str(each[4][0]) for each in addresses})))
    except ConnectionResetError:
        answer = b""
    except OSError as error:
        return Probe("unreachable", detail=error.strerror or str(error))
    ms = (time.monotonic() - started) * 1000
    if answer is not None and len(answer) >= 8 and answer[4:8] == b"\0\0\0\7":
        return Probe("kafka", _versions(answer), ms=ms)
    if answer is not None and answer[:2] == b"\x15\x03":
        return _over_tls(host, port, timeout_s, cafile, _ALERTS.get(answer[-1], "an alert"))
    if answer is not None and answer[:5] == b"HTTP/":
        return Probe("http", detail=_first_line(answer))
    if answer:
        return Probe("other", detail=repr(answer[:40]))
    if (found := _over_tls(host, port, timeout_s, cafile, "")).kind == "tls":
        return found
    try:
        told = _ask(host, port, timeout_s, b"GET / HTTP/1.0\r\n\r\n")
    except OSError:
        told = b""
    if told is not None and told[:5] == b"HTTP/":
        return Probe("http", detail=_first_line(told))
    return Probe("silent" if answer is None else "hangs up")


def _ask(host: str, port: int, timeout_s: float, data: bytes) -> bytes | None:
    """Send, and read an answer: all of it if it is a frame; b"" if there is none, None if nothing comes in time."""
    with socket.create_connection((host, port), timeout_s) as link:
        link.sendall(data)
        received = b""
        try:
            while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
                part = link.recv(1 << 16)
                if not part or received[:5] == b"HTTP/":
                    return received + part
                received += part
                if len(received) > _MOST_BYTES:
                    return received
                if received[:2] == b"\x15\x03" and len(received) >= 7:
                    return received[:7]
        except TimeoutError:
            return received or None
        except ConnectionResetError:
            return received
        return received


def _versions(answer: bytes) -> dict[int, tuple[int, int]]:
    """The ranges in an ApiVersions v0 answer, {} where it does not read as one."""
    count = int.from_bytes(answer[10:14], "big")
    rows = answer[14 : 14 + 6 * count]
    if answer[8:10] != b"\0\0" or len(rows) != 6 * count:
        return {}
    fields = [int.from_bytes(rows[at : at + 2], "big", signed=True) for at in range(0, len(rows), 2)]
    return {key: (oldest, newest) for key, oldest, newest in zip(*[iter(fields)] * 3, strict=True)}


def _over_tls(host: str, port: int, timeout_s: float, cafile: str | None, alert: str) -> Probe:
    """Whether TLS is spoken there, and what is wrong with the certificate."""
    lax = ssl.create_default_context()
    lax.check_hostname, lax.verify_mode = False, ssl.CERT_NONE
    error = _handshake(host, port, timeout_s, lax)
    if error is not None and not alert and not isinstance(error, ssl.SSLError):
        return Probe("other")
    if isinstance(error, ssl.SSLError) and not alert and "CERTIFICATE_REQUIRED" not in str(error):
        return Probe("other")
    if error is not None:
        return Probe("tls", detail=alert or str(error.args[-1]))
    strict: Any = _handshake(host, port, timeout_s, ssl.create_default_context(cafile=cafile))
    detail = "" if strict is None else str(getattr(strict, "verify_message", None) or strict.args[-1])
    return Probe("tls", detail=detail)


def _handshake(host: str, port: int, timeout_s: float, context: ssl.SSLContext) -> OSError | None:
    try:
        with (
            socket.create_connection((host, port), timeout_s) as link,
            context.wrap_socket(link, server_hostname=host),
        ):
            return None
    except OSError as error:
        return error


def _first_line(data: bytes) -> str:
    return data.split(b"\r\n")[0].decode("latin-1")
