"""The route where Prometheus looks first: the metrics of the default cluster."""

from __future__ import annotations

from typing import Final

from broker.shell.cluster_server import DEFAULT_CLUSTER
from broker.shell.control.routes import Call, Process, Route, Text, find_cluster


async def show_default(process: Process, call: Call) -> Text:
    """As /_admin/metrics."""
    from broker.shell.control.calls.metrics import show  # 4 ms: few brokers are scraped

    return await show(find_cluster(process, DEFAULT_CLUSTER), call)


ROUTES: Final = (
    Route(
        "GET",
        "/metrics",
        show_default,
        f'The metrics of "{DEFAULT_CLUSTER}": as /_admin/metrics.',
        media="text/plain",
        name="metrics_of_process",
    ),
)
