"""Sends the broker's metrics as DogStatsD over UDP. The only file that imports asyncio_dgram, at the first send.

Each interval sends the changes of the counters, every tenth also the sizes of logs and groups, in datagrams of at
most 1432 bytes (which fit an Ethernet frame through a tunnel). A dead agent, a full socket or a name that does not
resolve costs a log line, never a request: sending is a task of its own, works in short slices, and drops what it
cannot send.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from broker.shell.metrics.gauges import Gauge, broker_gauges
from broker.turn.metrics import API_KEYS, BOUNDS_S, PARTS, Histogram, Metrics
from protocol.api import api_label
from protocol.errors import error_label

if TYPE_CHECKING:
    from broker.broker import Broker

log = logging.getLogger("momus.statsd")

DATAGRAM_BYTES: Final = 1432
TAG_CHARS: Final = 200  # Datadog cuts longer tags
GAUGES_EVERY: Final = 10
SLICE_DATAGRAMS: Final = 8  # about 200 lines, 0.3 ms; then the loop serves requests
CONNECT_LIMIT_S: Final = 5.0
SENDS_TO_TRUST: Final = 5
LAST_WORD_LIMIT_S: Final = 0.2

# Characters that would end a tag or a line early.
_UNSAFE = str.maketrans(dict.fromkeys("|,#@\n\r", "_"))


def line(name: str, value: float, kind: str, tags: Iterable[tuple[str, object]] = ()) -> bytes:
    """One metric: NAME:VALUE|KIND|#TAG:VALUE,... with tags escaped and cut to TAG_CHARS."""
    text = f"{name}:{round(value, 6) if isinstance(value, float) else value}|{kind}"
    shown = ",".join(f"{key}:{str(tag).translate(_UNSAFE)}"[:TAG_CHARS] for key, tag in tags)
    return (f"{text}|#{shown}" if shown else text).encode("utf-8", "replace")


def counter_lines(before: Metrics, now: Metrics) -> Iterator[bytes]:
    """The counters that have changed between two snapshots."""
    for api_key in range(API_KEYS):
        requests = now.counts[api_key] - before.counts[api_key]
        if requests:
            yield line("momus_requests_total", requests, "c", (("api", api_label(api_key)),))
    for key, histogram in now.latencies.items():
        yield from latency_lines(*key, before.latencies.get(key, Histogram()), histogram)
    for (api_key, code), total in now.errors.items():
        n = total - before.errors[api_key, code]
        if n:
            tags = (("api", api_label(api_key)), ("error", error_label(code)))
            yield line("momus_request_errors_total", n, "c", tags)
    for name in ("bytes_in", "bytes_out", "connections_accepted", "connections_refused"):
        n = getattr(now, name) - getattr(before, name)
        if n:
            yield line(f"momus_{name}_total", n, "c")


def latency_lines(api_key: int, part: int, before: Histogram, now: Histogram) -> Iterator[bytes]:
    """A histogram as Prometheus has it, in counters: how many more took at most `le` seconds, all, and their sum."""
    tags = (("api", api_label(api_key)), ("part", PARTS[part]))
    n = 0
    for bound_s, was, is_ in zip((*BOUNDS_S, "+Inf"), before.buckets, now.buckets, strict=True):
        n += is_ - was
        if n:
            yield line("momus_request_seconds_bucket", n, "c", (*tags, ("le", bound_s)))
    if n:
        yield line("momus_request_seconds_count", n, "c", tags)
        yield line("momus_request_seconds_sum", now.seconds - before.seconds, "c", tags)


def datagrams(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines packed into datagrams, each as full as possible. A line that is too long for one is left out."""
    batch: list[bytes] = []
    size = -1  # the first line has no newline before it
    for text in lines:
        if len(text) > DATAGRAM_BYTES:
            continue
        if size + 1 + len(text) > DATAGRAM_BYTES:
            yield b"\n".join(batch)
            batch, size = [], -1
        batch.append(text)
        size += 1 + len(text)
    if batch:
        yield b"\n".join(batch)


class Statsd:
    """The sink of one broker."""

    def __init__(
        self,
        address: str,
        metrics: Metrics,
        gauges: Callable[[], Iterable[Gauge]] = tuple,
        *,
        interval_s: float = 1.0,
    ) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host.strip("[]"), int(port))
        self._metrics = metrics
        self._gauges = gauges
        self._interval_s = interval_s
        self._sent = Metrics()
        self._stream: Any = None
        self._failing = False
        self._sends_left_to_trust = 0

    async def run(self) -> None:
        """Send each interval until cancelled, and the last changes then, within LAST_WORD_LIMIT_S."""
        beat = 0
        try:
            await self.flush(gauges=False)  # connects, so that even a broker that runs for a second can send at its end
            while True:
                await asyncio.sleep(self._interval_s)
                beat += 1
                await self.flush(gauges=beat % GAUGES_EVERY == 0)
        finally:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.flush(gauges=True), LAST_WORD_LIMIT_S)
            self.close()

    def close(self) -> None:
        """Close the socket; the next flush opens another."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def flush(self, *, gauges: bool) -> None:
        """Send the changes since the last call. What cannot be sent is dropped, and logged once."""
        now = self._metrics.snapshot()
        before, self._sent = self._sent, now
        try:
            if self._stream is None:
                self._stream = await self._connect()
            await self._send(counter_lines(before, now))
            if gauges:
                await self._send(line(name, value, "g", tags) for name, value, tags in self._gauges())
        except Exception as error:
            # OSError, asyncio_dgram's TransportClosed, or a gauge of a topic that was deleted meanwhile.
            self.close()
            if not self._failing:
                log.warning("statsd: cannot send to %s:%d: %s", *self._address, error or type(error).__name__)
            self._failing = True
            self._sends_left_to_trust = SENDS_TO_TRUST
        else:
            # UDP reports a closed port one send late, so without an agent every other send succeeds.
            self._sends_left_to_trust = max(0, self._sends_left_to_trust - 1)
            if self._failing and not self._sends_left_to_trust:
                log.info("statsd: sending to %s:%d again", *self._address)
                self._failing = False

    async def _connect(self) -> Any:
        import asyncio_dgram  # 4 ms, and the one place that uses it

        return await asyncio.wait_for(asyncio_dgram.connect(self._address), CONNECT_LIMIT_S)

    async def _send(self, lines: Iterable[bytes]) -> None:
        for n, datagram in enumerate(datagrams(lines), 1):
            await self._stream.send(datagram)
            if n % SLICE_DATAGRAMS == 0:
                await asyncio.sleep(0)


async def run_statsd(broker: Broker, address: str) -> None:
    """Send a broker's metrics to HOST:PORT until cancelled."""
    broker.measure()
    await Statsd(address, broker.metrics, lambda: broker_gauges(broker)).run()
