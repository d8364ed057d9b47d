"""The handler of /metrics: what gauges and counters say, written by prometheus-client in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from broker.shell.control.routes import Call, RefusedError, Text
from broker.shell.metrics.exporter import Family, counters, latencies, sizes

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer
    from broker.turn.metrics import Metrics

SLICE: Final = 200  # values, before clients are served again


async def show(cluster: ClusterServer, call: Call) -> Text:
    """All metrics of a cluster. The first call begins to measure latencies. Errors: RefusedError: it was reset."""
    broker = cluster.broker
    broker.measure()
    families: dict[str, Family] = {}
    for number, (family, value, labels) in enumerate(sizes(broker), 1):
        families.setdefault(family.name, Family(*family[:3], [])).samples.append((labels, value))
        if number % SLICE == 0:
            await asyncio.sleep(0)
            if cluster.broker is not broker:
                raise RefusedError(409, "the cluster was reset")
    metrics = broker.turn.metrics.snapshot()
    return await asyncio.to_thread(_write, [*counters(metrics), *families.values()], metrics)


def _write(families: Iterable[Family], metrics: Metrics) -> Text:
    # 40 ms, in this thread: few brokers are scraped
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, core, generate_latest

    class Collector:
        def collect(self) -> Iterable[Any]:
            for family in families:
                kind = core.CounterMetricFamily if family.kind == "counter" else core.GaugeMetricFamily
                labels = list(family.samples[0][0]) if family.samples else []
                written = kind(family.name, family.about, labels=labels)
                for values, value in family.samples:
                    written.add_metric([str(each) for each in values.values()], value)
                yield written
            histogram = core.HistogramMetricFamily(
                "momus_request_seconds", "How long requests took, by parts", labels=["api", "part"]
            )
            for names, buckets, seconds in latencies(metrics):
                histogram.add_metric(names, buckets, seconds)
            yield histogram

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    return Text(CONTENT_TYPE_LATEST, generate_latest(registry))
