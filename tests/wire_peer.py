"""A raw socket to a real broker for tests that misbehave, and what the system says of the broker's process."""

from __future__ import annotations

import resource
import socket
import ssl
from typing import Any

from core_broker import frame

from momus import Broker
from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.header import decode_response_header
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest


class Peer:
    """One connection. Everything blocks, and nothing longer than the limit."""

    def __init__(self, broker: Broker | str, limit_s: float = 60.0, *, tls: bool = False) -> None:
        address = broker if isinstance(broker, str) else broker.bootstrap_servers.split(",")[0]
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=limit_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self.correlation_id = 0

    def send(self, request: Any, version: int) -> int:
        self.correlation_id += 1
        self.socket.sendall(frame(request, version, self.correlation_id))
        return self.correlation_id

    def receive(self, api_key: int, version: int) -> Any:
        """The next reply; ConnectionError when there will be none."""
        size = int.from_bytes(self._read(4), "big")
        body = self._read(size)
        header_version = 0 if api_key == ApiKey.API_VERSIONS else version
        _, position = decode_response_header(body, api_key, header_version)
        return codec(response_class(api_key), version).decode(body, position)[0]

    def call(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.receive(request.API_KEY, version)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(min(1 << 20, size - len(data)))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            data += piece
        return bytes(data)

    def is_closed_by_broker(self) -> bool:
        """Read until the end of the connection; False when nothing comes within the limit."""
        try:
            while self.socket.recv(1 << 20):
                continue
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_topic(peer: Peer, name: str, partitions: int = 1) -> None:
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = peer.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7).topics[0]
    assert answer.error_code == 0, answer.error_message


def resident_bytes(pid: int, *, peak: bool = False) -> int:
    """Resident memory of a process, now or at its largest."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("VmHWM:" if peak else "VmRSS:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("the process is gone")


def forget_peak(pid: int) -> int:
    """Begin to measure the peak anew; what is resident now."""
    with open(f"/proc/{pid}/clear_refs", "w") as clear:
        clear.write("5")
    return resident_bytes(pid)


def allow_descriptors(wanted: int) -> None:
    """Let this process, and brokers it starts from now on, open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
