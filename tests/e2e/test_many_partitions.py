"""Ten thousand partitions that hold data and a thousand connections, within 2048 descriptors."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.header import decode_response_header, encode_request_header
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.record_batch import build_batch

TOPICS, PARTITIONS, CONNECTIONS, DESCRIPTORS = 10, 1000, 1000, 2048
START_LIMIT = 10  # times the work of a start with nothing in it; it takes less than twice that
HANGS_S = 120
HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc tells how many descriptors are open"),
]


class Broker:
    """A broker whose process may not open more files than that, whatever it asks for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "log"

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        sys.stderr.write(self._log.read_text())  # shown when the test fails

    def start(self) -> None:
        """Start, and wait until clients are served."""
        command = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", "--data-dir"]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, str(self._folder / "data")], stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=_limit
            )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().removeprefix("momus ready ").strip()
        self.process.stdout.close()

    @property
    def work_s(self) -> float:
        """What it took of the processor, which does not depend on who else wants it."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


class Connection:
    """A client of few words: requests go out, replies come back in order."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=HANGS_S)
        self._stream = self.socket.makefile("rb")

    def send(self, request: Any, version: int) -> None:
        data = encode_request_header(request.API_KEY, version, 1, "test")
        data += codec(type(request), version).encode(request)
        self.socket.sendall(len(data).to_bytes(4, "big") + data)

    def receive(self, key: ApiKey, version: int) -> Any:
        body = self._stream.read(int.from_bytes(self._stream.read(4), "big"))
        _, position = decode_response_header(body, key, 0 if key == ApiKey.API_VERSIONS else version)
        return codec(response_class(key), version).decode(body, position)[0]

    def call(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.receive(ApiKey(request.API_KEY), version)

    def close(self) -> None:
        self._stream.close()
        self.socket.close()


def produce_everywhere(client: Connection, topic: str) -> None:
    records = build_batch([(b"key", b"value")], timestamp_ms=1)
    rows = [PartitionProduceData(index=index, records=records) for index in range(PARTITIONS)]
    data = [TopicProduceData(name=topic, partition_data=rows)]
    answer = client.call(ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=data), 9)
    assert {p.error_code for row in answer.responses for p in row.partition_responses} == {0}


def records_read(client: Connection, topic: str, indexes: range) -> int:
    """How many partitions of a topic have their record."""
    wanted = [FetchPartition(partition=index, partition_max_bytes=1000) for index in indexes]
    topics = [FetchTopic(topic=topic, partitions=wanted)]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 30, session_epoch=-1, topics=topics)
    answer = client.call(request, 12)
    rows = [p for found in answer.responses for p in found.partitions]
    assert {(p.error_code, p.high_watermark) for p in rows} == {(0, 1)}
    return sum(1 for p in rows if p.records)


def test_ten_thousand_partitions_and_a_thousand_connections_live_within_2048_descriptors(tmp_path):
    names = [f"topic-{number}" for number in range(TOPICS)]
    with ExitStack() as closing:
        broker = closing.enter_context(Broker(tmp_path))
        broker.start()

        def connect() -> Connection:
            connection = Connection(broker.address)
            closing.callback(connection.close)
            return connection

        client = connect()
        assert client.call(HELLO, 3).error_code == 0
        empty_s = broker.work_s
        wanted = [CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1) for name in names]
        made = client.call(CreateTopicsRequest(topics=wanted, timeout_ms=30_000), 7)
        assert {topic.error_code for topic in made.topics} == {0}
        connections = [connect() for _ in range(CONNECTIONS - 1)]
        for name in names:
            produce_everywhere(client, name)
        assert CONNECTIONS < broker.open_files < DESCRIPTORS
        for connection in connections:
            connection.send(HELLO, 3)
        assert {connection.receive(ApiKey.API_VERSIONS, 3).error_code for connection in connections} == {0}
        assert sum(records_read(client, name, range(PARTITIONS)) for name in names) == TOPICS * PARTITIONS
        assert CONNECTIONS < broker.open_files < DESCRIPTORS

        broker.process.kill()
        broker.process.wait()
        broker.start()
        client = connect()
        assert client.call(HELLO, 3).error_code == 0
        assert broker.work_s < START_LIMIT * empty_s
        assert records_read(client, names[0], range(100)) == 100
        broker.process.terminate()
        assert broker.process.wait(HANGS_S) == 0
