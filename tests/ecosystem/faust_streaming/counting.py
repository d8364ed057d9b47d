"""A Faust application: counts words in a table and sends each new count on. Argument: the broker's address."""

from __future__ import annotations

import sys
from typing import Any

import faust

ADDRESS = sys.argv.pop()
PARTITIONS = 2

app = faust.App(
    "counting",
    broker=f"kafka://{ADDRESS}",
    store="memory://",  # so that a restart has nothing but the changelog
    topic_partitions=PARTITIONS,
    topic_replication_factor=1,
    broker_session_timeout=6.0,
    broker_heartbeat_interval=1.0,
    web_enabled=False,
)
words = app.topic("words", value_serializer="raw", value_type=bytes, partitions=PARTITIONS)
counts_of_words = app.topic("counts", value_serializer="raw", value_type=bytes, partitions=1)
table = app.Table("table", default=int, partitions=PARTITIONS)


@app.agent(words)
async def count(stream: Any) -> None:
    async for word in stream:
        name = word.decode()
        table[name] += 1
        await counts_of_words.send(value=f"{name} {table[name]}".encode())


if __name__ == "__main__":
    sys.argv += ["worker", "-l", "info"]
    app.main()
