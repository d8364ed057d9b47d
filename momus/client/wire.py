"""One socket to one broker, for the command line: requests out, answers in, in a version both sides know.

Like momus.client.kafka_client, it may only be imported where momus.launch.use_packages() has run.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from momus.client.connect_settings import SETTINGS
from momus.client.wire_security import authenticate, wrapped
from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.header import encode_request_header, response_header_version

CLIENT_ID = "momus-cli"
LARGEST_REPLY_BYTES = 256 << 20


class Connection:
    """One socket to one broker, and the versions it offers."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout=timeout_s)
        except OSError as error:
            raise OSError(f"cannot reach {host}:{port}: {error.strerror or error}") from None
        self._correlation_id = 0
        self.address = f"{host}:{port}"
        self.versions: dict[int, tuple[int, int]] = {ApiKey.API_VERSIONS: (0, 0)}
        try:
            self._begin(host)
        except BaseException:
            self.close()
            raise

    def _begin(self, host: str) -> None:
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = wrapped(self._socket, host) if SETTINGS else self._socket
        from protocol.messages.cluster import ApiVersionsRequest

        answer = self.call(ApiVersionsRequest())
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        if SETTINGS:
            authenticate(self.call)

    def call(self, request: Any, version_limit: int | None = None) -> Any:
        """Send a request in the newest version both sides know, up to `version_limit`; return the decoded
        answer."""
        api_key = ApiKey(request.API_KEY)
        oldest, newest = self.versions.get(api_key, (1, 0))
        version = min(newest, request.MAX_VERSION, newest if version_limit is None else version_limit)
        if version < max(oldest, request.MIN_VERSION):
            raise OSError(f"{self.address} does not offer {api_key.name} in a version known here")
        self._correlation_id += 1
        body = encode_request_header(api_key, version, self._correlation_id, SETTINGS.get("client.id", CLIENT_ID))
        body += codec(type(request), version).encode(request)
        try:
            self._socket.sendall(len(body).to_bytes(4, "big") + body)
            size, correlation_id = struct.unpack(">ii", self._read(8))
            if correlation_id != self._correlation_id or not 4 <= size <= LARGEST_REPLY_BYTES:
                raise OSError("this is not a Kafka broker")
            answer = self._read(size - 4)
        except OSError as error:
            raise OSError(f"{self.address}: {error}") from None
        tags_bytes = response_header_version(api_key, version)  # after the correlation id; no broker sends tags there
        decoded, _ = codec(response_class(api_key), version).decode(answer, tags_bytes)
        return decoded

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise OSError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
