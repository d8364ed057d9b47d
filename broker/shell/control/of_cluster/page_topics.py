"""Routes of topics as the page shows them: a window on all, one with partitions and configs, its messages."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import Optional_, Route
from broker.shell.page.windows import QUERY

FITTING: Final = {
    "key": "a text that is in the key",
    "value": "a text that is in the value",
    "header": "a text that is in a header, in its name or its value",
    "anywhere": "a text that is in key, value or a header",
    "path": 'a JSON path that the value has, and a comparison: $.order.cups >= 2, $.item == "coffee", $.item ~ off',
    "from_ms": "not older than this time",
    "to_ms": "not newer than this time",
    "partitions": "those to look at, as 0,2; all unless given",
    "aborted": "yes: records of aborted transactions too",
}
SEARCH: Final = {
    **FITTING,
    "limit": "so many at most; 200, for an export all",
    "form": "lines or load: a file of JSON lines, or one for `momus load`, in place of what a page shows",
}

ROUTES: Final = (
    Route(
        "GET",
        "/topics",
        "broker.shell.page.topics:list_topics",
        "Topics by name, with their sizes: a window on those that pass the filter.",
        query=QUERY,
    ),
    Route(
        "GET",
        "/topics/{topic}",
        "broker.shell.page.topics:show_topic",
        "A topic: its partitions, 1000 at most, and its configs with their sources.",
        query={"offset": "the first partition that is shown; 0"},
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
    ),
    Route(
        "GET",
        "/topics/{topic}/search",
        "broker.shell.page.search.stream:search",
        "Search the messages of a topic, in a process of its own: all that is given must fit. Streams JSON lines:"
        " begin, progress, hit (as messages have it), end.",
        name="search_messages",
        query=SEARCH,
        errors={404: "no such topic or partition", 503: "as many searches are running as there can be"},
        media="application/x-ndjson",
    ),
    Route(
        "GET",
        "/topics/{topic}/tail",
        "broker.shell.page.search.follow:show_tail",
        "The newest messages of all partitions that fit; `next` is the path of what comes after them.",
        name="tail_messages",
        errors={404: "no such topic"},
        query={**FITTING, "since": "as `next` has it", "limit": "so many at most; 100"},
    ),
    Route(
        "POST",
        "/topics/{topic}/alter",
        "broker.shell.page.doing.topics:alter_topic",
        'Alter a topic: "config" is set, "unset" goes back to the default, "partitions" is how many there shall be.',
        body={"config": Optional_({"*": str}), "unset": Optional_([str]), "partitions": Optional_(int)},
        example={"config": {"retention.ms": "600000"}},
        errors={404: "no such topic", 409: "Kafka's reason why a setting or the number is refused"},
    ),
    Route(
        "DELETE",
        "/topics/{topic}",
        "broker.shell.page.doing.topics:delete_topic",
        "Delete a topic with its records.",
        errors={409: "Kafka's reason why it is not deleted: there is none"},
    ),
)
