"""Routes of topics as the page shows them: a window on all, one with partitions and configs, its messages."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import Route
from broker.shell.page.windows import QUERY

TOPIC: Final = {
    "topic": str,
    "internal": bool,
    "partitions": int,
    "replicas": int,
    "under_replicated": int,
    "records": int,
    "bytes": int,
}
PARTITION: Final = {
    "partition": int,
    "leader": int,
    "leader_epoch": int,
    "replicas": [int],
    "isr": [int],
    "start": int,
    "stable": int,
    "end": int,
    "bytes": int,
}

ROUTES: Final = (
    Route(
        "GET",
        "/topics",
        "broker.shell.page.topics:list_topics",
        "Topics by name, with their sizes: a window on those that pass the filter.",
        query=QUERY,
        answer={"offset": int, "total": int, "topics": [TOPIC]},
    ),
    Route(
        "GET",
        "/topics/{topic}",
        "broker.shell.page.topics:show_topic",
        "A topic: its partitions, 1000 at most, and its configs with their sources.",
        query={"offset": "the first partition that is shown; 0"},
        answer={
            "topic": str,
            "internal": bool,
            "total": int,
            "offset": int,
            "partitions": [PARTITION],
            "configs": [{"name": str, "value": str, "source": str}],
        },
    ),
    Route(
        "GET",
        "/topics/{topic}/messages",
        "broker.shell.page.messages:show_messages",
        "Messages of a partition, decoded; of transactions with their outcome. Long texts are cut, `bytes` is whole.",
        query={
            "partition": "0 unless given",
            "offset": "from this offset on; without it the newest",
            "time_ms": "from the first that is not older than this time on",
            "limit": "so many at most; 50",
            "aborted": "yes: show aborted ones and markers too",
            "form": "text or hex, whatever it looks like",
        },
        answer={
            "topic": str,
            "partition": int,
            "from": int,
            "next_offset": int,
            "start": int,
            "end": int,
            "messages": [dict],
        },
    ),
)
