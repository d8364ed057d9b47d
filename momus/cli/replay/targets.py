"""What a run is played against: a fresh momus with the data of the beginning, or a broker that is there already."""

from __future__ import annotations

import json
import socket
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from broker.asks import topics
from broker.asks.records import produce
from broker.load.values import data_of
from momus import Broker
from momus.cli.replay.bundle import Bundle
from momus.client.kafka_client import Client, RequestFailedError
from momus.cluster import Cluster
from momus.control import ControlError
from protocol.partitioner import choose_partition
from protocol.record_batch import build_batch

CLUSTER = "replay"
ANY_PORT = "127.0.0.1:0"
JOURNAL_MB = 64
START = "start"
LIVES = ("/reset", "/restore")
LIMIT_S = 15.0


class Momus:
    """A cluster of a momus of our own, as it was before the first request that was kept. Its clock stands.

    listen    where clients find it, and `control` its endpoint; HOST:PORT.
    is_shown  its journal is looked at: it gets no requests but those of the run.
    Errors: BundleError, BrokerError, ControlError.
    """

    is_other = False
    name = CLUSTER

    def __init__(
        self, bundle: Bundle, *, listen: str = ANY_PORT, control: str = ANY_PORT, is_shown: bool = False
    ) -> None:
        self._is_shown = is_shown
        about = bundle.about
        self._folder = tempfile.TemporaryDirectory(prefix="momus-replay-")
        data_dir = Path(self._folder.name)
        snapshot = data_dir / "clusters" / CLUSTER / ".snapshots" / START
        has_start = bundle.unpack_start(snapshot / "data")
        known = {"name": START, "taken_ms": about["start_ms"], "stands_at_ms": about["start_ms"]}
        if has_start:
            (snapshot / "about.json").write_text(json.dumps({**known, "ahead_ms": 0, "files": 0, "log_bytes": 0}))
        begin_ms = about["start_ms"] if about["at_ms"] is None else about["at_ms"]
        flush = "os" if about["flush"] == "memory" else about["flush"]  # its data came from a file
        self._process = Broker(data_dir=data_dir)
        self._process.control_listen = control
        try:
            self._process.start()
            self._cluster = Cluster(
                self._process.control,
                name=CLUSTER,
                brokers=about["brokers"],
                flush=flush,
                config=about["config"],
                fetch_waits="frozen",  # they pass as they did in the run
                seed=about["seed"],
                listen=listen,
                journal_mb=JOURNAL_MB,
                at=datetime.fromtimestamp(begin_ms / 1000, UTC),  # where a reset goes back to
            )
            if has_start:
                self._cluster.restore(START)
            self._fill(bundle)
        except BaseException:
            self.close()
            raise
        self._addresses: dict[int, str] = dict(
            zip(about["node_ids"], self._cluster.bootstrap_servers.split(","), strict=True)
        )
        self._now_ms = about["start_ms"]
        self._waited_ms = 0
        self._barrier = _connect(self._address(-1))

    def _fill(self, bundle: Bundle) -> None:
        """What it begins with beside the data of the run's beginning."""

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find it."""
        return self._cluster.bootstrap_servers

    @property
    def control_address(self) -> str:
        """Where its endpoint is."""
        return self._process.known_control

    def tell(self, where: dict[str, Any]) -> None:
        """Say where the run is, for those who ask its endpoint. Errors: ControlError."""
        self._process.control.ask("POST", "/_admin/step/tell", where)

    def next_step(self) -> int:
        """Wait for a while for a step. Returns how many requests; 0: none. Errors: ControlError."""
        answer: Any = self._process.control.ask("POST", "/_admin/step/fetch", {})
        return int(answer["requests"])

    def connect(self, broker: int) -> socket.socket:
        """A connection to a virtual broker."""
        return _connect(self._address(broker))

    def _address(self, broker: int) -> str:
        return self._addresses.get(broker) or next(iter(self._addresses.values()))

    def go_to(self, at_ms: int) -> None:
        """Let time pass; what becomes due on the way is done when this returns."""
        if at_ms > self._now_ms:
            self._now_ms = at_ms
            self._cluster.control.ask("POST", f"/_admin/clusters/{CLUSTER}/clock", {"set": at_ms})

    def pass_waits(self, until_ms: int) -> None:
        """Let Fetches wait on: so many milliseconds beyond the clock in all."""
        if until_ms > self._waited_ms:
            left_ms, self._waited_ms = until_ms - self._waited_ms, until_ms
            self._cluster.control.ask("POST", f"/_admin/clusters/{CLUSTER}/clock", {"pass_waits_ms": left_ms})

    def settle(self) -> None:
        """Whatever was sent has been read when this returns: the broker reads connections in turn."""
        if self._is_shown:
            self._cluster.control.ask("GET", f"/_admin/clusters/{CLUSTER}")
        else:
            _ask_versions(self._barrier)

    def call(self, method: str, path: str, body: dict[str, Any]) -> str | None:
        """Repeat a call of the control plane. Returns why it was refused, which it may have been in the recording."""
        try:
            self._cluster.control.ask(method, f"/_admin/clusters/{CLUSTER}{path}", body or None)
        except ControlError as error:
            return str(error)
        if path in LIVES:
            self._now_ms = self._waited_ms = 0  # the clock has gone back
        return None

    def close(self) -> None:
        """End it, and remove its data."""
        self._process.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class Fresh(Momus):
    """A momus with the topics that another cluster had when a proxy began to record there, and nothing in them."""

    is_other = True

    def _fill(self, bundle: Bundle) -> None:
        topics = {name: partitions for name, partitions in bundle.about["topics"].items() if partitions}
        if topics:
            self._cluster.create_topics(topics)


class Other:
    """Any broker, at an address. Its clock is its own; of the calls of the control plane it gets topics and records."""

    is_other = True

    def __init__(self, bootstrap_servers: str, node_ids: list[int]) -> None:
        addresses = bootstrap_servers.split(",")
        self._addresses = {node_id: addresses[at % len(addresses)] for at, node_id in enumerate(node_ids)}
        self._first = addresses[0]
        self._client = Client(self._first, timeout_s=LIMIT_S)
        self._turns: dict[str, int] = {}  # topic -> how many records without a key it has got

    def connect(self, broker: int) -> socket.socket:
        """A connection to the broker that stands for one of the recording."""
        return _connect(self._addresses.get(broker, self._first))

    def go_to(self, at_ms: int) -> None:
        """Do nothing: this broker's clock cannot be moved."""

    def pass_waits(self, until_ms: int) -> None:
        """Do nothing: its Fetches wait by its own clock."""

    def settle(self) -> None:
        """Whatever was sent has most likely been read when this returns."""
        self._client.cluster()

    def call(self, method: str, path: str, body: dict[str, Any]) -> str | None:
        """Repeat a call of the control plane by a client's request. Returns why that cannot be, or was refused."""
        words = path.strip("/").split("/")
        if words == ["topics"]:
            code = self._create(body)
        elif len(words) == 3 and words[0] == "topics" and words[2] == "records":
            code = self._produce(words[1], body["records"])
        else:
            return f"{method} {path} is beyond this broker"
        return f"{method} {path}: error {code}" if code else None

    def _create(self, body: dict[str, Any]) -> int:
        wanted = topics.new_topic(body["name"], body.get("partitions", -1), config=body.get("config"))
        (row,) = self._client.ask(topics.create([wanted]))
        return row.error_code

    def _produce(self, topic: str, records: list[dict[str, Any]]) -> int:
        """As the control plane does it: by the key, else round, from partition 0 on. Returns the first error code."""
        found = self._client.ask(topics.metadata([topic], create=True))
        count = len(found.topics[0].partitions) or 1  # it may be made by this request
        code = 0
        for record in records:
            row = key, _ = data_of(record.get("key")), data_of(record.get("value"))
            index = record.get("partition")
            if index is None:
                turn = self._turns.get(topic, 0)
                index = choose_partition(key, count, turn)
                self._turns[topic] = turn + (key is None)
            batch = build_batch([row], timestamp_ms=record.get("timestamp_ms") or -1)
            try:
                self._client.ask(produce(topic, index, batch))
            except RequestFailedError as error:
                code = code or error.code
        return code

    def close(self) -> None:
        """Leave it as it is."""
        self._client.__exit__()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _connect(address: str) -> socket.socket:
    connection = socket.create_connection(_split(address), timeout=LIMIT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _ask_versions(connection: socket.socket) -> None:
    connection.sendall((10).to_bytes(4, "big") + bytes.fromhex("0012 0000 00000000 ffff"))  # ApiVersions v0
    read_frame(connection)


def read_frame(connection: socket.socket) -> bytes:
    """A whole frame without its size field; b"" at the end. Errors: OSError: TimeoutError among them."""
    size = _read(connection, 4)
    return _read(connection, int.from_bytes(size, "big")) if len(size) == 4 else b""


def _read(connection: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
