"""A socket that speaks to a cluster in raw requests, and the requests that tests of clusters send."""

from __future__ import annotations

import socket
from typing import Any

from core_broker import frame

from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.header import decode_response_header
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.cluster import MetadataRequest
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest

CLUSTERS = "/_admin/clusters"


class Wire:
    """A socket to a cluster, which sends requests and reads their replies."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)

    def send(self, request: Any, version: int) -> None:
        self.socket.sendall(frame(request, version))

    def call(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.receive(request, version)

    def receive_bytes(self) -> bytes:
        """The next reply without its size."""
        return self._read(int.from_bytes(self._read(4), "big"))

    def receive(self, request: Any, version: int) -> Any:
        body = self.receive_bytes()
        key = ApiKey(request.API_KEY)
        _, position = decode_response_header(body, key, version)
        return codec(response_class(key), version).decode(body, position)[0]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def is_cut(self) -> bool:
        """Waits until something comes: whether that is the end of the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()


def topics(wire: Wire) -> dict[str, bytes]:
    return {t.name: t.topic_id for t in wire.call(MetadataRequest(topics=None), 12).topics}


def create(wire: Wire, name: str) -> None:
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    assert wire.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7).topics[0].error_code == 0


def join(group: str, member_id: str = "") -> JoinGroupRequest:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )
