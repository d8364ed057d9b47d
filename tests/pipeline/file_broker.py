"""A broker of a test: serves the logs of a directory by Metadata, ListOffsets and Fetch, and what a test makes of it.

It reads the files anew for each request, so a test may change them between two, by `before`.
"""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from protocol.api import ApiKey, request_class
from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.header import decode_request_header, encode_response_header
from protocol.messages.cluster import (
    ApiVersion,
    ApiVersionsResponse,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    PartitionData,
)
from protocol.record_batch import iter_batches

EARLIEST = -2
NO_ID = bytes(16)


class Stored(NamedTuple):
    """A batch of a log."""

    last: int  # offset
    data: bytes


class FileBroker:
    """Listens on a port of its own between __enter__ and __exit__.

    ends     log -> its end, where that is not behind its last batch: the cleaner has removed what was there
    starts   log -> the first offset that a consumer can read, where it is not that of the first batch
    ids      topic -> topic id; without one, topics have none and are fetched by name
    before   called with the API and a number, from 1 on, before each request is answered; what it returns, if
             anything, is an error code for each partition asked for
    asked    the APIs asked for, in order
    """

    def __init__(self, directory: Path, *, batches_a_fetch: int = 1000, newest_fetch: int = 17) -> None:
        self.directory = directory
        self.ends: dict[str, int] = {}
        self.starts: dict[str, int] = {}
        self.ids: dict[str, bytes] = {}
        self.before: Callable[[ApiKey, int], int | None] = lambda api, number: None
        self.damage: Callable[[bytes], bytes] = bytes
        self.asked: list[ApiKey] = []
        self._batches_a_fetch = batches_a_fetch
        self._versions = {
            ApiKey.API_VERSIONS: 0,
            ApiKey.METADATA: 12,
            ApiKey.LIST_OFFSETS: 7,
            ApiKey.FETCH: newest_fetch,
        }

    def __enter__(self) -> Self:
        broker = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                for frame in _frames(self.request):
                    answer = broker._answered(frame)
                    self.request.sendall(len(answer).to_bytes(4, "big") + answer)

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """HOST:PORT."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    @property
    def input(self) -> str:
        """As an --input."""
        return f"kafka://{self.address}"

    def _answered(self, frame: bytes) -> bytes:
        header, at = decode_request_header(frame)
        api = ApiKey(header.api_key)
        request, _ = codec(request_class(api), header.api_version).decode(frame, at)
        self.asked.append(api)
        error = self.before(api, self.asked.count(api)) or 0
        made = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.FETCH: self._fetch,
        }[api](request, error)
        body: bytes = codec(type(made), header.api_version).encode(made)
        return encode_response_header(api, header.api_version, header.correlation_id) + body

    def _api_versions(self, request: Any, error: int) -> Any:
        ranges = [ApiVersion(api_key=api, min_version=0, max_version=newest) for api, newest in self._versions.items()]
        return ApiVersionsResponse(error_code=0, api_keys=ranges)

    def _metadata(self, request: Any, error: int) -> Any:
        host, port = self._server.server_address[:2]
        topics: dict[str, list[int]] = {}
        for folder in sorted(each for each in self.directory.iterdir() if each.is_dir()):
            topic, _, partition = folder.name.rpartition("-")
            topics.setdefault(topic, []).append(int(partition))
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=str(host), port=port)],
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    error_code=error,
                    name=topic,
                    topic_id=self.ids.get(topic, NO_ID),
                    partitions=[
                        MetadataResponsePartition(
                            error_code=0, partition_index=p, leader_id=1, replica_nodes=[1], isr_nodes=[1]
                        )
                        for p in sorted(partitions)
                    ],
                )
                for topic, partitions in topics.items()
            ],
        )

    def _list_offsets(self, request: Any, error: int) -> Any:
        def answer(topic: str, asked: Any) -> Any:
            log = f"{topic}-{asked.partition_index}"
            offset = self.start(log) if asked.timestamp == EARLIEST else self.end(log)
            return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error, offset=offset)

        topics = [
            ListOffsetsTopicResponse(name=t.name, partitions=[answer(t.name, each) for each in t.partitions])
            for t in request.topics
        ]
        return ListOffsetsResponse(topics=topics)

    def _fetch(self, request: Any, error: int) -> Any:
        (asked,) = request.topics
        (wanted,) = asked.partitions
        by_id = {topic_id: topic for topic, topic_id in self.ids.items()}
        topic = asked.topic or by_id.get(asked.topic_id)
        records = b""
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        log = f"{topic}-{wanted.partition}"
        end = -1 if error else self.end(log)
        if not error:
            if not self.start(log) <= wanted.fetch_offset <= end:
                error = ErrorCode.OFFSET_OUT_OF_RANGE
            else:
                found = [each.data for each in self._batches(log) if each.last >= wanted.fetch_offset]
                records = self.damage(b"".join(found[: self._batches_a_fetch]))
        part = PartitionData(
            partition_index=wanted.partition,
            error_code=error,
            high_watermark=end,
            aborted_transactions=None,
            records=records,
        )
        return FetchResponse(
            error_code=0,
            responses=[FetchableTopicResponse(topic=topic or "", topic_id=asked.topic_id, partitions=[part])],
        )

    def end(self, log: str) -> int:
        """Where a log ends."""
        return self.ends.get(log) or max((each.last + 1 for each in self._batches(log)), default=0)

    def start(self, log: str) -> int:
        """Where a log starts."""
        return self.starts.get(log, 0)

    def _batches(self, log: str) -> list[Stored]:
        found = []
        for path in sorted((self.directory / log).glob("*.log")):
            data = path.read_bytes()
            for position, header in iter_batches(memoryview(data)):
                found.append(Stored(header.next_offset - 1, data[position : position + header.size]))
        return found


def _frames(connection: Any) -> Iterator[bytes]:
    while len(head := _read(connection, 4)) == 4:
        yield _read(connection, struct.unpack(">i", head)[0])


def _read(connection: Any, size: int) -> bytes:
    found = b""
    while len(found) < size and (part := connection.recv(size - len(found))):
        found += part
    return found
