"""What tools/new_release.py says of two releases, and of a release and what is served here."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

import new_release  # noqa: E402  # of tools/
from release_compare import Description, Schema, Served, Setting, compare, compare_served, read_schema  # noqa: E402  # same

FETCH = """\
// A comment with "quotes".
{
  "apiKey": 1, "type": "request", "name": "FetchRequest", "validVersions": "4-18", "flexibleVersions": "12+",
  "fields": [  // and one here
    { "name": "Rack", "type": "string", "versions": "11+", "default": "", "about": "See http://example.org // there." },
    { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "13+", "nullableVersions": "14+" }
    ]}
  ],
  "commonStructs": [
    { "name": "Node", "versions": "0+", "fields": [ { "name": "Port", "type": "int32", "versions": "0+", "tag": 2,
      "taggedVersions": "12+" } ] }
  ]
}
"""
OLD = Description(
    "1.0",
    {1: "0-3", 2: "0-1"},
    {"FetchRequest": Schema("0-3", "2+", {"Rack": "string 1+", "Gone": "int8 0-2"}), "OldRecord": Schema("0")},
    {"broker": {"a": Setting("INT", "1"), "b": Setting("LIST", "")}, "topic": {}},
    {1: "ONE", 2: "TWO"},
    {"metadata.version": "7-30"},
)
NEW = Description(
    "2.0",
    {1: "1-4", 3: "0-0"},
    {"FetchRequest": Schema("1-4", "2+", {"Rack": "string 1-3", "Id": "uuid 4+"}), "NewRecord": Schema("0")},
    {"broker": {"a": Setting("INT", "5", "[1,...]")}, "topic": {"t": Setting("LONG", "-1")}},
    {1: "ONE", 2: "TWO retriable", 3: "THREE"},
    {"metadata.version": "7-33", "share.version": "0-2"},
)
HERE = Served(
    {1: "0-4"},
    frozenset({3}),
    {"FetchRequest": 4},
    frozenset({"a", "t"}),
    frozenset(),
    NEW.errors,
    NEW.features,
)


def api_name(key: int) -> str:
    return f"Api{key}"


def to_do(release: Description = NEW, **changes: object) -> list[str]:
    return compare_served(release, dataclasses.replace(HERE, **changes), api_name)


def test_schema_is_read_without_its_comments() -> None:
    assert read_schema(FETCH) == (
        "FetchRequest",
        Schema(
            "4-18",
            "12+",
            {
                "Rack": "string 11+ default=",
                "Topics": "[]Topic 0+",
                "Topics.Id": "uuid 13+ nullableVersions=14+",
                "Node.Port": "int32 0+ taggedVersions=12+ tag=2",
            },
        ),
    )


def test_two_releases_differ_in_what_came_went_and_changed() -> None:
    assert compare(OLD, NEW, api_name) == [
        "APIs of a broker:",
        "  1 Api1: 0-3 -> 1-4",
        "  - 2 Api2: 0-1",
        "  + 3 Api3: 0-0",
        "messages:",
        "  FetchRequest: 0-3 -> 1-4",
        "    - Gone: int8 0-2",
        "    + Id: uuid 4+",
        "    Rack: string 1+ -> string 1-3",
        "  + NewRecord: 0",
        "  - OldRecord: 0",
        "settings of a broker:",
        "  a: INT 1 -> INT 5 [1,...]",
        "  - b: LIST (empty)",
        "settings of a topic:",
        "  + t: LONG -1",
        "errors:",
        "  2: TWO -> TWO retriable",
        "  + 3: THREE",
        "features:",
        "  metadata.version: 7-30 -> 7-33",
        "  + share.version: 0-2",
    ]


def test_a_message_that_becomes_flexible_is_named() -> None:
    changed = dataclasses.replace(NEW, messages=NEW.messages | {"FetchRequest": Schema("1-4", "4+")})
    assert "  FetchRequest: 1-4, flexible 2+ -> 4+" in compare(NEW, changed, api_name)


def test_the_same_release_differs_in_nothing() -> None:
    assert compare(NEW, NEW, api_name) == ["nothing differs between 2.0 and 2.0"]


def test_nothing_is_to_do_where_all_is_served_or_listed() -> None:
    assert to_do() == ["all of 2.0 is served here, or is in a list of what is not"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"apis": {1: "0-3"}}, "  1 Api1: 0-3 served, 1-4 are Kafka's"),
        ({"apis": {1: "2-4"}}, "  1 Api1: 2-4 served, 1-4 are Kafka's"),
        ({"apis": {1: "0-5"}}, "  1 Api1: 0-5 served, 1-4 are Kafka's"),
        ({"apis": {1: "0-4", 9: "0-1"}}, "  - 9 Api9: 0-1 served, not Kafka's"),
        ({"absent": frozenset()}, "  + 3 Api3: 0-0, neither served nor in ABSENT"),
        ({"messages": {"FetchRequest": 3}}, "  FetchRequest: declared up to 3, Kafka's 1-4"),
        ({"keys": frozenset({"a"})}, "  + t"),
        ({"keys": frozenset({"a", "t", "z"})}, "  - z: no longer Kafka's"),
        ({"group_keys": frozenset({"g"})}, "  - g: no longer Kafka's"),
        ({"errors": {1: "ONE", 2: "TWO", 3: "THREE"}}, "  2: TWO -> TWO retriable"),
        ({"features": {"metadata.version": "7-33"}}, "  + share.version: 0-2"),
    ],
)
def test_what_is_to_do_is_named(changes: dict[str, object], line: str) -> None:
    assert line in to_do(**changes)


def test_what_is_served_here_is_read_from_the_tables_of_the_broker() -> None:
    here = new_release.served()
    assert here.apis[0].startswith("3-")
    assert here.apis[0].endswith(f"-{here.messages['ProduceRequest']}")
    assert here.errors[3] == "UNKNOWN_TOPIC_OR_PARTITION retriable"
    keys = {line[2:] for line in new_release.KEYS.read_text().splitlines() if not line.startswith("#")}
    assert here.keys == keys


def test_keys_are_written_as_they_are_kept() -> None:
    lines = new_release.KEYS.read_text().splitlines()
    version = lines[0].split()[6].rstrip(":")
    settings = {
        kind: {line[2:]: Setting("INT", "") for line in lines[1:] if line[0] == kind[0].upper()}
        for kind in ("broker", "topic")
    }
    assert new_release.keys_text(Description(version, settings=settings)) == new_release.KEYS.read_text()
