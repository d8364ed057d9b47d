"""Routes of a cluster's metrics, for Prometheus. Their handler is loaded when first called."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import Route

ROUTES: Final = (
    Route(
        "GET",
        "/metrics",
        "metrics:show",
        "Counters, latencies, offsets and lag, for Prometheus. Latencies are measured from the first call on.",
        media="text/plain",
        errors={409: "the cluster was reset meanwhile"},
        name="metrics",
    ),
)
