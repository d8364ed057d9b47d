"""DogStatsD: lines and datagrams without a socket, then the sink against a real one and against none."""

from __future__ import annotations

import asyncio
import logging

import asyncio_dgram

from broker.shell.metrics.statsd import DATAGRAM_BYTES, Statsd, counter_lines, datagrams, line
from broker.turn.metrics import BOUNDS_S, TOTAL, Metrics

PRODUCE, OFFSET_COMMIT = 0, 8
UNKNOWN_MEMBER_ID = 25


def busy() -> Metrics:
    metrics = Metrics()
    metrics.counts[OFFSET_COMMIT] += 3
    metrics.latencies.add(OFFSET_COMMIT, TOTAL, 0.0004)
    metrics.latencies.add(OFFSET_COMMIT, TOTAL, 60.0)
    metrics.error(OFFSET_COMMIT, UNKNOWN_MEMBER_ID)
    metrics.bytes_in += 500
    return metrics


def test_counter_lines_name_api_and_error_as_kafka_does():
    assert list(counter_lines(Metrics(), busy())) == [
        b"momus_requests_total:3|c|#api:OffsetCommit",
        *(
            f"momus_request_seconds_bucket:{n}|c|#api:OffsetCommit,part:total,le:{bound_s}".encode()
            for n, bound_s in ([1, each] for each in BOUNDS_S if each >= 0.0005)
        ),
        b"momus_request_seconds_bucket:2|c|#api:OffsetCommit,part:total,le:+Inf",
        b"momus_request_seconds_count:2|c|#api:OffsetCommit,part:total",
        b"momus_request_seconds_sum:60.0004|c|#api:OffsetCommit,part:total",
        b"momus_request_errors_total:1|c|#api:OffsetCommit,error:UNKNOWN_MEMBER_ID",
        b"momus_bytes_in_total:500|c",
    ]


def test_counter_lines_after_a_snapshot_hold_the_difference_only():
    metrics = busy()
    before = metrics.snapshot()
    metrics.counts[PRODUCE] += 1
    assert list(counter_lines(before, metrics)) == [
        b"momus_requests_total:1|c|#api:Produce",
    ]


def test_line_with_a_hostile_tag_stays_one_line_and_one_tag():
    text = line("kafka.consumer_lag", 7, "g", (("consumer_group", "a|c,#b\nx:1|c"), ("partition", 0)))
    assert text == b"kafka.consumer_lag:7|g|#consumer_group:a_c__b_x:1_c,partition:0"


def test_line_with_a_lone_surrogate_is_sent_all_the_same():
    assert line("n", 1, "g", (("topic", "\udc80"),)) == b"n:1|g|#topic:?"


def test_datagrams_are_full_but_never_too_large_and_lose_nothing():
    lines = [b"x" * (n % 97 + 1) for n in range(2000)]
    packed = list(datagrams(lines))
    assert b"\n".join(packed).split(b"\n") == lines
    assert max(map(len, packed)) <= DATAGRAM_BYTES
    assert all(len(d) + 1 + 97 > DATAGRAM_BYTES for d in packed[:-1])


def test_datagrams_leave_out_a_line_that_fits_none():
    assert list(datagrams([b"a", b"b" * (DATAGRAM_BYTES + 1), b"c"])) == [b"a\nc"]


async def test_sink_sends_counters_and_gauges():
    agent = await asyncio_dgram.bind(("127.0.0.1", 0))
    metrics = busy()
    gauges = [("kafka.broker_offset", 42, (("topic", "t"), ("partition", 0)))]
    sink = Statsd(f"127.0.0.1:{agent.sockname[1]}", metrics, lambda: gauges)
    await sink.flush(gauges=True)
    first, _ = await agent.recv()
    second, _ = await agent.recv()
    sink.close()
    agent.close()
    assert first.startswith(b"momus_requests_total:3|c|#api:OffsetCommit\n")
    assert second == b"kafka.broker_offset:42|g|#topic:t,partition:0"


async def test_sink_that_runs_sends_on_its_own_and_a_last_time_when_cancelled():
    agent = await asyncio_dgram.bind(("127.0.0.1", 0))
    metrics = busy()
    sink = Statsd(f"127.0.0.1:{agent.sockname[1]}", metrics, interval_s=0.001)
    running = asyncio.create_task(sink.run())
    assert b"momus_requests_total:3" in (await agent.recv())[0]
    metrics.counts[PRODUCE] += 5
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    while b"momus_requests_total:5|c|#api:Produce" not in (await agent.recv())[0]:
        pass
    agent.close()


async def test_sink_without_an_agent_neither_raises_nor_repeats_itself(caplog):
    agent = await asyncio_dgram.bind(("127.0.0.1", 0))
    port = agent.sockname[1]
    agent.close()
    caplog.set_level(logging.WARNING, "momus.statsd")
    metrics = Metrics()
    sink = Statsd(f"127.0.0.1:{port}", metrics)
    for _ in range(20):
        metrics.counts[PRODUCE] += 1
        await sink.flush(gauges=False)
        await asyncio.sleep(0)
    sink.close()
    # A closed port is heard of one send late, so every other send fails: one story, not ten.
    assert [r.levelname for r in caplog.records] == ["WARNING"]


async def test_sink_with_a_name_that_does_not_resolve_does_not_raise(caplog):
    sink = Statsd("no-such-host.invalid:8125", Metrics())
    await sink.flush(gauges=False)
    await sink.flush(gauges=False)
    sink.close()
    assert [r.levelname for r in caplog.records] == ["WARNING"]


async def test_sink_whose_gauges_fail_keeps_sending_counters():
    agent = await asyncio_dgram.bind(("127.0.0.1", 0))
    metrics = busy()

    def broken():
        raise KeyError("a topic that was deleted meanwhile")

    sink = Statsd(f"127.0.0.1:{agent.sockname[1]}", metrics, broken)
    await sink.flush(gauges=True)
    await agent.recv()
    metrics.counts[PRODUCE] += 2
    await sink.flush(gauges=False)
    assert b"momus_requests_total:2|c|#api:Produce" in (await agent.recv())[0]
    sink.close()
    agent.close()


def test_metrics_snapshot_stands_still():
    metrics = busy()
    before = metrics.snapshot()
    metrics.counts[OFFSET_COMMIT] += 1
    metrics.latencies.add(OFFSET_COMMIT, TOTAL, 1.0)
    metrics.error(OFFSET_COMMIT, UNKNOWN_MEMBER_ID)
    assert (before.counts[OFFSET_COMMIT], before.errors[OFFSET_COMMIT, UNKNOWN_MEMBER_ID]) == (3, 1)
    assert before.latencies[OFFSET_COMMIT, TOTAL].count == 2


def test_snapshot_of_metrics_has_every_field_and_stands_still():
    metrics = Metrics()
    metrics.bytes_in, metrics.bytes_out, metrics.connections_accepted, metrics.connections_refused = 1, 2, 3, 4
    metrics.counts[5], metrics.errors[0, 1], metrics.spans["sent"], metrics.turn_begins = 6, 7, 8, print
    metrics.latencies.add(0, 0, 0.1)
    found = metrics.snapshot()
    for name in Metrics.__slots__:
        kept, now = getattr(metrics, name), getattr(found, name)
        assert now is not kept or not isinstance(kept, list | dict), name
        assert list(now) == list(kept) if name == "latencies" else now == kept, name
