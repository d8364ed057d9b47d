"""One request at a time over a blocking socket: `python -m benchmarks.lone commit|e2e HOST:PORT [--seconds 3]`.

commit  OffsetCommit, one partition, an offset that moves; the last one is read back
e2e     a record produced on one connection, until it is read on another one that waits for it

An event loop takes 20 us of a round trip for itself, so `benchmarks.load` makes a fast broker look less so. One line of
JSON: p50_us, p99_us, ops_per_s, errors.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import sys
import time
from typing import Any

from benchmarks.load import WARM_UP_S
from benchmarks.load_requests import COMMIT_V, FETCH_V, MARK, METADATA_V, PRODUCE_V, Requests
from benchmarks.wire import frame, parse
from protocol.messages.cluster import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest, MetadataRequestTopic
from protocol.record_batch import build_batch

SIZE = struct.Struct(">i")
INT64 = struct.Struct(">q")
TRIES, PAUSE_S = 200, 0.02


class Line:
    """A connection on which nothing is in flight but one request."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: Any, version: int) -> Any:
        """One request, and its response decoded."""
        self.socket.sendall(frame(request, version))
        return parse(request.API_KEY, version, self.reply()[4:])

    def reply(self) -> bytes:
        """The bytes of one response after its size."""
        data = self.socket.recv(1 << 16)
        while len(data) < 4 or len(data) < 4 + SIZE.unpack_from(data)[0]:
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("the broker closed the connection")
            data += more
        return data[4:]


class Clock:
    """Warm-up, then seconds that count."""

    def __init__(self, seconds: float) -> None:
        self.start = time.perf_counter() + WARM_UP_S
        self.end = self.start + seconds
        self.took: list[float] = []

    def add(self, begin: float, end: float) -> None:
        """One round trip."""
        if begin >= self.start:
            self.took.append(end - begin)

    def figures(self, errors: int) -> dict[str, Any]:
        """What the run came to."""
        ordered = sorted(self.took)
        return {
            "ops_per_s": len(ordered) / (self.end - self.start),
            "p50_us": ordered[len(ordered) // 2] * 1e6,
            "p99_us": ordered[len(ordered) * 99 // 100] * 1e6,
            "errors": errors,
        }


def patiently(line: Line, request: Any, version: int, is_good: Any) -> Any:
    """Ask again until the answer is good: brokers make topics and load groups when they are first named."""
    for _ in range(TRIES):
        answer = line.ask(request, version)
        if is_good(answer):
            return answer
        time.sleep(PAUSE_S)
    raise SystemExit(f"{type(request).__name__}: {answer}")


def open_topic(line: Line, requests: Requests) -> None:
    """The topic is made by its being asked for, where CreateTopics is not known."""
    requests.learn(line.ask(ApiVersionsRequest(), 0))
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=requests.topic)], allow_auto_topic_creation=True)
    patiently(line, asked, METADATA_V, lambda answer: not answer.topics[0].error_code and answer.topics[0].partitions)


def commit(address: str, seconds: float, requests: Requests) -> dict[str, Any]:
    """Commits one offset after the other."""
    line, group = Line(address), requests.group
    open_topic(line, requests)
    patiently(line, FindCoordinatorRequest(key=group, key_type=0), 2, lambda answer: not answer.error_code)
    first = requests.commit(group, 0)
    patiently(line, first, COMMIT_V, lambda answer: not answer.topics[0].partitions[0].error_code)
    head, tail = frame(requests.commit(group), COMMIT_V).split(INT64.pack(MARK))
    send, reply, clock = line.socket.sendall, line.reply, Clock(seconds)
    offset, good, errors, begin = 0, b"", 0, time.perf_counter()
    while begin < clock.end:
        offset += 1
        data = head + INT64.pack(offset) + tail
        begin = time.perf_counter()
        send(data)
        answer = reply()
        clock.add(begin, time.perf_counter())
        if answer != good:
            good = answer
            errors += parse(8, COMMIT_V, answer[4:]).topics[0].partitions[0].error_code != 0
    found = requests.fetched_offsets(line.ask(requests.fetch_offsets(group), requests.offset_fetch_version))
    return clock.figures(errors + (found != [offset]))


def e2e(address: str, seconds: float, requests: Requests) -> dict[str, Any]:
    """Produces a record while a Fetch waits for it."""
    producer, consumer = Line(address), Line(address)
    open_topic(producer, requests)
    batch = build_batch([(None, b"x" * 200)], timestamp_ms=int(time.time() * 1000))
    data, clock = frame(requests.produce(0, batch), PRODUCE_V), Clock(seconds)
    offset, errors, begin = 0, 0, time.perf_counter()
    while begin < clock.end:
        consumer.socket.sendall(frame(requests.fetch(0, offset), FETCH_V))
        time.sleep(0.0002)  # until it waits there
        begin = time.perf_counter()
        producer.socket.sendall(data)
        answer = consumer.reply()
        clock.add(begin, time.perf_counter())
        acked = parse(0, PRODUCE_V, producer.reply()[4:]).responses[0].partition_responses[0]
        found = parse(1, FETCH_V, answer[4:]).responses[0].partitions[0]
        errors += bool(found.error_code) + (not found.records) + (acked.base_offset != offset)
        offset += 1
    return clock.figures(errors)


def main() -> None:
    """Run one scenario and print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lone", description=__doc__)
    parser.add_argument("scenario", choices=("commit", "e2e"))
    parser.add_argument("address", help="HOST:PORT of a broker on this machine")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--topic", default="load")
    parser.add_argument("--group", default="load")
    options = parser.parse_args()
    requests = Requests(options.topic, options.group, 1)
    run = {"commit": commit, "e2e": e2e}[options.scenario]
    figures = run(options.address, options.seconds, requests)
    print(json.dumps({key: round(value, 1) for key, value in figures.items()}))
    sys.exit(1 if figures["errors"] else 0)


if __name__ == "__main__":
    main()
