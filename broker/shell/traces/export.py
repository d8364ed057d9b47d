"""Sends spans to an OTLP address over HTTP, in a thread of its own; the extra `otel` brings what it needs.

Spans wait in a queue of OTEL_BSP_MAX_QUEUE_SIZE (2048). What does not fit there, since the address is slow or gone, is
dropped and counted, as is what could not be sent: requests never wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Tracer

QUEUE: Final = 2048
LAST_CHANCE_S: Final = 2.0  # for what is queued when the broker stops


class _Counting(SpanExporter):
    """The exporter, which counts. It runs in the thread."""

    def __init__(self, endpoint: str, counts: dict[str, int]) -> None:
        self.real: Any = OTLPSpanExporter(endpoint=endpoint)
        self.taken = 0  # out of the queue
        self._counts = counts

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        self.taken += len(spans)
        result: SpanExportResult = self.real.export(spans)
        self._counts["exported" if result is SpanExportResult.SUCCESS else "failed"] += len(spans)
        return result

    def shutdown(self) -> None:
        """End a retry that is under way."""
        self.real.shutdown()


class _Bounded(BatchSpanProcessor):
    """Drops at its limit, and says so: what it is built on drops without a count. It runs in the loop."""

    def __init__(self, exporter: _Counting, counts: dict[str, int]) -> None:
        self._most = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE))
        super().__init__(exporter, max_queue_size=2 * self._most, max_export_batch_size=min(512, self._most))
        self._exporter = exporter
        self._counts = counts
        self._given = 0

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        if self._given - self._exporter.taken >= self._most:
            self._counts["dropped"] += 1
            return
        self._given += 1
        super().on_end(span)


class Export:
    """The queue and its thread. `counts` gets `exported`, `failed` and `dropped`."""

    def __init__(self, endpoint: str, counts: dict[str, int]) -> None:
        counts.update(exported=0, failed=0, dropped=0)
        self._exporter = _Counting(endpoint, counts)
        self._processor = _Bounded(self._exporter, counts)
        name = os.environ.get("OTEL_SERVICE_NAME", "momus")
        self._provider = TracerProvider(resource=Resource.create({"service.name": name}), shutdown_on_exit=False)
        self._provider.add_span_processor(self._processor)

    def tracer(self) -> Tracer:
        """What makes spans."""
        return self._provider.get_tracer("momus")

    def stop(self) -> None:
        """Send the rest. It may take LAST_CHANCE_S, so not in the loop; then what is left is given up."""
        flush = threading.Thread(target=self._processor.force_flush, daemon=True)
        flush.start()
        flush.join(LAST_CHANCE_S)
        self._exporter.shutdown()  # the threads are daemons
