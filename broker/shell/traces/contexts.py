"""What traces read of records and replies: `traceparent` headers, topics, errors, and where batches begin.

Source: W3C Trace Context, `traceparent`; OpenTelemetry's clients write it into the headers of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

from broker.faults.named import named_in
from broker.wire.error_counts import errors_in
from broker.wire.reply_stream import Reply
from protocol.api import request_class, response_class
from protocol.codegen import codec
from protocol.errors import KafkaError, MalformedError, error_label
from protocol.header import decode_request_header, decode_response_header
from protocol.messages.fetch import FetchResponse
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.share_fetch import ShareFetchResponse
from protocol.record_batch import iter_batches, iter_records
from storage.files.errors import StorageError

TRACEPARENT: Final = "traceparent"
MOST_NAMES: Final = 16  # topics, errors and links of a span
MOST_BATCHES: Final = 64  # looked at in one request or reply
MOST_RECORDS: Final = 100  # looked at in one batch
MOST_BYTES: Final = 1 << 20  # of a reply that is read, and of a batch when it is decompressed

BatchKey: TypeAlias = "tuple[str, int, int]"  # topic, partition, base offset of a batch
TopicName: TypeAlias = "Callable[[bytes], str]"  # of a topic id; "": there is none


def request_of(frame: bytes, api_key: int, version: int) -> tuple[str, Any]:
    """(client id, the decoded request; None: it is malformed)."""
    try:
        header, start = decode_request_header(frame, 0)
        return header.client_id or "", codec(request_class(api_key), version).decode(frame, start)[0]
    except (KafkaError, MalformedError, LookupError, ValueError):
        return "", None


def response_of(frame: bytes, api_key: int, version: int) -> Any:
    """The decoded reply; None: it is malformed, or too large."""
    if not frame or len(frame) > MOST_BYTES:
        return None
    try:
        _, start = decode_response_header(frame, api_key, version)
        return codec(response_class(api_key), version).decode(frame, start)[0]
    except (KafkaError, MalformedError, LookupError, ValueError):
        return None


def whole(reply: Reply) -> bytes:
    """The bytes of a reply with its slices of files; of one above MOST_BYTES, what stands before the first slice."""
    if reply is None or isinstance(reply, bytes):
        return reply or b""
    if sum(map(len, reply)) > MOST_BYTES:
        return reply[0] if isinstance(reply[0], bytes) else b""
    try:
        return b"".join(part if isinstance(part, bytes) else part.pread(len(part), 0) for part in reply)
    except (OSError, StorageError):
        return b""


def topics_of(request: Any, topic_name: TopicName) -> list[str]:
    """The first topics that a request names, in order."""
    return sorted(named_in(request, topic_name).topics)[:MOST_NAMES]


def errors_of(response: Any) -> list[str]:
    """The first errors in a reply, each once."""
    return [] if response is None else list(dict.fromkeys(map(error_label, errors_in(response))))[:MOST_NAMES]


def parents_of(request: Any) -> list[str]:
    """The first `traceparent`s in the records of a Produce, each once, in order."""
    if not isinstance(request, ProduceRequest):
        return []
    found: dict[str, None] = {}
    produced = (part.records for topic in request.topic_data for part in topic.partition_data if part.records)
    for data in islice(produced, MOST_BATCHES):
        try:
            for number, record in enumerate(iter_records(data, MOST_BYTES)):
                found.update(
                    (value.decode("ascii", "replace"), None)
                    for name, value in record.headers
                    if name == TRACEPARENT and value is not None
                )
                if number >= MOST_RECORDS or len(found) > MOST_NAMES:
                    break
        except (KafkaError, MalformedError, ValueError, IndexError):
            continue  # the broker refuses it
    return list(found)


def appended(response: Any, topic_name: TopicName) -> list[BatchKey]:
    """Where the batches of a Produce are now."""
    if not isinstance(response, ProduceResponse):
        return []
    return [
        (topic.name or topic_name(topic.topic_id), part.index, part.base_offset)
        for topic in response.responses
        for part in topic.partition_responses
        if not part.error_code
    ][:MOST_BATCHES]


def delivered(response: Any, topic_name: TopicName) -> list[BatchKey]:
    """Where the batches of a fetch's reply are."""
    parts: list[tuple[str, Any]] = []
    if isinstance(response, FetchResponse):
        parts = [
            (topic.topic or topic_name(topic.topic_id), part)
            for topic in response.responses
            for part in topic.partitions
        ]
    elif isinstance(response, ShareFetchResponse):
        parts = [(topic_name(topic.topic_id), part) for topic in response.responses for part in topic.partitions]
    found: list[BatchKey] = []
    for topic, part in parts:
        for batch in _batches(part.records):
            found.append((topic, part.partition_index, batch))
            if len(found) >= MOST_BATCHES:
                return found
    return found


def _batches(records: Any) -> Iterator[int]:
    try:
        for _, header in iter_batches(records or b""):
            yield header.base_offset
    except (KafkaError, MalformedError, ValueError, IndexError):
        return  # the last one may be cut off
