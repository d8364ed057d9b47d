"""Clients that do not speak Kafka's protocol: what their first bytes are, and what they are told at the end.

A TLS client gets a fatal alert, unexpected_message: its library then names the alert and not a lost connection. An HTTP
client gets a 400 with the sentence. The first four bytes of both are the size of a frame larger than any that is
accepted, unless socket.request.max.bytes is above 360 MB.

Source: RFC 8446, 5.1 and 6 (records and alerts); RFC 9110, 9.1 (methods).
"""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

log = logging.getLogger("momus.connection")

SMALLEST_SIZE: Final = 0x16030000  # what a TLS record is as the size of a frame; HTTP's methods are larger
_TLS_MAJOR: Final = b"\x16\x03"  # a handshake record of SSL 3 or any TLS
_ALERT: Final = b"\x15\x03\x01\x00\x02\x02\x0a"  # fatal, unexpected_message
_METHODS: Final = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")


class Stranger(NamedTuple):
    """A client that speaks another protocol."""

    kind: str  # "TLS" or "HTTP"
    sentence: str
    reply: bytes


def stranger_of(data: bytes, position: int, listener: str) -> Stranger | None:
    """Whose first bytes these are; None: they may be Kafka's.

    Shape: `data` from `position` on holds at least four bytes; `listener` is the name of one that is PLAINTEXT.
    """
    first = data[position : position + 4]
    if first[:2] == _TLS_MAJOR and first[2] <= 4:
        sentence = f"this is a TLS hello; this listener ({listener}) is PLAINTEXT: set security.protocol=PLAINTEXT"
        return Stranger("TLS", sentence, _ALERT)
    if first in _METHODS:
        sentence = (
            f"this is an HTTP request; this listener ({listener}) speaks Kafka's protocol alone: HTTP is served by the"
            " control endpoint (momus serve --control)"
        )
        return Stranger("HTTP", sentence, _bad_request(sentence))
    return None


def send_away(connection: Any, data: bytes, position: int) -> bool:
    """Tell a client of another protocol what it has met, and close its Connection. False: it may be one of ours."""
    stranger = stranger_of(data, position, connection.listener.name)
    if stranger is None or connection.closed:
        return False
    log.warning("closing connection %s: %s", connection.host, stranger.sentence)
    if connection.service.journal is not None:
        connection.service.journal.met(connection, stranger.kind, stranger.sentence)
    connection.closed = True
    connection.transport.write(stranger.reply)
    connection.transport.close()
    return True


def _bad_request(sentence: str) -> bytes:
    body = f"{sentence}\n".encode()
    head = (
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
