"""A file that fills a broker with a bit of everything, and what a broker says that it has then."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from momus import Broker

ORDERS = """\
topics:
  - name: orders
    partitions: 3
    config: {retention.ms: -1, cleanup.policy: delete}
    records:
      - {key: table-4, value: {item: coffee, price: 3.5}}
      - {value: text, headers: {trace: x, none: null}, timestamp: 2026-01-01T00:00Z}
      - {value: {base64: AAEC}, partition: 2}
    records_from: rows.jsonl
  - {name: audit, config: {cleanup.policy: compact}}
groups:
  - name: billing
    offsets:
      - {topic: orders, partition: 0, offset: 1, metadata: half}
      - {topic: orders, partition: 2, offset: 1}
quotas:
  - {user: alice, producer_byte_rate: 1000}
"""
ROWS = "".join(f'{{"value": "row {number}"}}\n' for number in range(5))


def write_orders(folder) -> str:
    """The file, with the one that it names beside it."""
    (folder / "rows.jsonl").write_text(ROWS)
    (folder / "orders.yaml").write_text(ORDERS)
    return str(folder / "orders.yaml")


def records_of(broker: Any, topic: str) -> dict[int, list[bytes | None]]:
    """Values by partition."""
    found: dict[int, list[bytes | None]] = {}
    for record in broker.consume(topic):
        found.setdefault(record.partition, []).append(record.value)
    return found


def serve(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """`momus serve` on a free port; its output is read by the caller."""
    import os

    command = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )


def refused(*arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and standard error of a start that ends by itself."""
    process = serve(*arguments, **environment)
    try:
        _, said = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, said


def broker_on(folder, **words: Any) -> Broker:
    """A broker in its folder's data directory."""
    return Broker(data_dir=folder / "data", **words)
