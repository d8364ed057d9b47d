"""A connection to a control endpoint: HTTP/1.1 as the endpoint speaks it. Python's own client takes 15 ms to import."""

from __future__ import annotations

import socket

MOST_HEAD = 1 << 16


class BadAnswerError(OSError):
    """What answers is no control endpoint, or has hung up in the middle of an answer."""


class Line:
    """One connection, for one request at a time. Errors of all calls: OSError."""

    def __init__(self, host: str, port: int, limit_s: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=limit_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def exchange(self, method: str, path: str, data: bytes | None, headers: str) -> tuple[int, bytes, bool]:
        """Send a request. Returns the status, the body, and whether the connection stays open.

        headers   further ones, each with its end of line.
        Errors:   ConnectionResetError: it was closed before any answer. BadAnswerError. OSError.
        """
        length = "" if data is None else f"Content-Length: {len(data)}\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n{headers}{length}\r\n"
        self._socket.sendall(head.encode() + (data or b""))
        got = self._socket.recv(MOST_HEAD)
        if not got:
            raise ConnectionResetError("the endpoint has hung up")
        while (end := got.find(b"\r\n\r\n")) < 0:
            got += self._more()
            if len(got) > MOST_HEAD:
                raise BadAnswerError("no end of the answer's head")
        first, *lines = got[:end].decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if not first.startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
            raise BadAnswerError(f"no control endpoint: {first:.60}")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body, length = bytearray(got[end + 4 :]), fields.get("content-length", "")
        if not length.isdigit():
            raise BadAnswerError("an answer without its length")
        while len(body) < int(length):
            body += self._more()
        return int(words[1]), bytes(body), fields.get("connection", "").lower() != "close"

    def _more(self) -> bytes:
        found = self._socket.recv(1 << 20)
        if not found:
            raise BadAnswerError("the endpoint has hung up in the middle of an answer")
        return found

    def close(self) -> None:
        """Close it."""
        self._socket.close()
