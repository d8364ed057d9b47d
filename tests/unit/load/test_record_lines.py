"""The forms in which people have records in files, and what is said of a line that is of none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker.load.problems import LoadError
from broker.load.sources import read_documents

FILES = {
    "lines.txt": "one coffee\n\ntwo: teas\r\n",
    "keyed.log": "table-4:one coffee\ntable-5:two: teas\n",
    "tabs.log": "a\tb\n",
    "kcat.jsonl": '{"topic":"x","partition":1,"offset":7,"tstype":"create","ts":5,"broker":1,"headers":["a","b"],'
    '"key":"k","payload":"v"}\n{"topic":"x","partition":0,"offset":8,"key":null,"payload":null,"tstype":"create","ts":6}\n',
    "values.jsonl": '{"id": 7, "item": "coffee"}\n{"id": "b"}\n',
    "numbers.jsonl": '1\n"two"\n[3]\n',
    "rows.csv": 'id,item\n7,"one, coffee"\n8,"two\nteas"\n',
    "records.csv": "key,value,partition,timestamp\nk,v,2,5\n,w,,\n",
}
READ: list[tuple[dict[str, Any], list[tuple[Any, ...]]]] = [
    ({"records_from": "lines.txt"}, [(None, b"one coffee"), (None, b"two: teas")]),
    (
        {"records_from": "keyed.log", "records_format": "keyed"},
        [(b"table-4", b"one coffee"), (b"table-5", b"two: teas")],
    ),
    ({"records_from": "tabs.log", "records_format": "keyed", "records_separator": "\t"}, [(b"a", b"b")]),
    ({"records_from": "kcat.jsonl"}, [(b"k", b"v"), (None, None)]),
    (
        {"records_from": "values.jsonl", "records_format": "values", "records_key": "id"},
        [(b"7", b'{"id":7,"item":"coffee"}'), (b"b", b'{"id":"b"}')],
    ),
    ({"records_from": "numbers.jsonl", "records_format": "values"}, [(None, b"1"), (None, b"two"), (None, b"[3]")]),
    (
        {"records_from": "rows.csv", "records_key": "id"},
        [(b"7", b'{"id":"7","item":"one, coffee"}'), (b"8", b'{"id":"8","item":"two\\nteas"}')],
    ),
    ({"records_from": "records.csv"}, [(b"k", b"v"), (None, b"w")]),
]


def loaded(topic: dict[str, Any]) -> list[Any]:
    """The records of a topic with these fields."""
    document = json.dumps({"topics": [{"name": "t", **topic}]})
    load = read_documents([("a.json", document)], FILES.__getitem__)
    return list(load.topics[0].rows)


@pytest.mark.parametrize(("topic", "expected"), READ, ids=lambda each: str(each)[:40])
def test_file_is_read_in_its_form(topic, expected):
    assert [(row.key, row.value) for row in loaded(topic)] == expected


def test_places_times_and_headers_of_kcat_and_of_a_csv_are_kept():
    first, _ = loaded({"records_from": "kcat.jsonl"})
    assert (first.partition, first.timestamp_ms, list(first.headers)) == (1, 5, [("a", b"b")])
    first, second = loaded({"records_from": "records.csv"})
    assert (first.partition, first.timestamp_ms) == (2, 5)
    assert (second.partition, second.timestamp_ms) == (None, None)


WRONG = [
    ({"records_from": "lines.txt", "records_format": "keyed"}, "lines.txt:1: there is no ':' between key and value"),
    (
        {"records_from": "rows.csv", "records_key": "name"},
        "rows.csv:1: there is no column 'name', which is to be the key",
    ),
    ({"records_from": "values.jsonl"}, "values.jsonl:1: .*no such field"),
    (
        {"records_from": "values.jsonl", "records_format": "values", "records_key": "item"},
        "values.jsonl:2: .*no field 'item'",
    ),
    (
        {"records_from": "lines.txt", "records_separator": "|"},
        "records_separator: has no effect with records_format lines",
    ),
    ({"records_format": "csv"}, "records_format: has no effect without records_from"),
    ({"records_from": "rows.csv", "records_format": "xml"}, "records_format"),
]


@pytest.mark.parametrize(("topic", "told"), WRONG, ids=lambda each: str(each)[:40])
def test_line_or_field_that_cannot_be_meant_is_named(topic, told):
    with pytest.raises(LoadError, match=told):
        loaded(topic)
