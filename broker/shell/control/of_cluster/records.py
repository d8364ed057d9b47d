"""Routes of topics and records: create, produce, consume, load files. Their handlers are loaded when first called."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import BYTES, Optional_, Route, Told

ROUTES: Final = (
    Route(
        "POST",
        "/load",
        "broker.shell.load.call:load_files",
        'Fill the cluster with what "files" say, name -> text, or with one "document" (docs/load.md). All is checked'
        ' before anything is done. "if_present": fail or skip. "needs": files that these name, to be sent with them;'
        " nothing was loaded then.",
        errors={409: "Kafka's reason why something is refused, and what was loaded before that"},
        body={"files": Optional_({"*": str}), "document": Optional_(dict), "if_present": Optional_(str)},
        example={"document": {"topics": [{"name": "loaded", "records": [{"value": "x"}]}]}, "if_present": "skip"},
    ),
    Route(
        "POST",
        "/topics",
        "records:create_topic",
        "Create a topic.",
        errors={409: "Kafka's reason why it is not made: it is there, its name or a setting is wrong"},
        body={
            "name": str,
            "partitions": Optional_(int),
            "replicas": Optional_(int),
            "config": Optional_({"*": str}),
        },
        example={"name": "orders", "partitions": 3},
    ),
    Route(
        "POST",
        "/create-topics",
        "records:create_topics",
        "Create topics, name -> partitions (-1: as many as the setting says), all of them or none.",
        errors={409: "Kafka's reasons why they are not made; then none is"},
        body={"topics": {"*": int}, "replicas": Optional_(int), "config": Optional_({"*": str})},
        example={"topics": {"carts": 6, "returns": 1}},
    ),
    Route(
        "POST",
        "/topics/{topic}/records",
        "producing:produce",
        'Append records: "value" and "key" are texts, null or {"base64": ...}; a value that is another object, or a'
        ' list, is JSON; "headers" [name, value] pairs; "partition" and "timestamp_ms" numbers. Without "partition" a'
        " record goes where Java's producer sends its key; those without a key go round, from partition 0.",
        errors={
            404: "no such partition",
            409: "Kafka's reason why a record is refused; those of other partitions may be there",
        },
        body={"records": [Told(dict, "NewRecord")]},
        example={"records": [{"key": "k", "value": "one coffee"}]},
    ),
    Route(
        "POST",
        "/topics/{topic}/consume",
        "records:consume",
        'Read all records, or those of "partition" from "offset" on, or those with a "key" (a text, null or {"base64":'
        ' ...}); wait until there are "least". An answer has 10,000 at most: where "more" is true, ask again with its'
        ' "offsets" and "source".',
        errors={
            404: 'without "least": no such topic or partition',
            409: "the topic is another one than before, or was deleted",
        },
        body={
            "partition": Optional_(int),
            "offset": Optional_(int),
            "offsets": Optional_({"*": int}),
            "source": Optional_(str),
            "key": Optional_(BYTES),
            "least": Optional_(int),
            "most": Optional_(int),
            "isolation": Optional_(str),
            "timeout_ms": Optional_(int),
        },
        example={"least": 1, "timeout_ms": 1000},
        unmet=408,
    ),
)
