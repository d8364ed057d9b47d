"""Compares two descriptions of Apache Kafka, or one of them with what is served here: what differs, a line each.

Nothing is read and nothing is run here: tools/new_release.py makes the descriptions and prints the lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, TypeVar

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
_TRAITS = ("type", "versions", "nullableVersions", "taggedVersions", "tag", "default", "flexibleVersions")
K = TypeVar("K", int, str)
V = TypeVar("V")


@dataclass(frozen=True)
class Schema:
    """One message: its versions, since when it is flexible, and field -> its traits. Of a nested field the name is
    `Topics.Partitions.Offset`; a structure that several fields share is one, `TopicPartitions.Partitions`."""

    versions: str
    flexible: str = "none"
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """One key, in Kafka's words; `allowed` is empty where all values of the type are."""

    type: str
    default: str
    allowed: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.default or '(empty)'} {self.allowed}".rstrip()


@dataclass(frozen=True)
class Description:
    """What a release is made of, as far as it meets what is served here."""

    name: str
    apis: Mapping[int, str] = field(default_factory=dict)  # key -> "oldest-newest", as a broker answers ApiVersions
    messages: Mapping[str, Schema] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)  # broker, topic, group -> key
    errors: Mapping[int, str] = field(
        default_factory=dict
    )  # code -> name, and "retriable" where a client may try again
    features: Mapping[str, str] = field(default_factory=dict)  # name -> "lowest-highest"


@dataclass(frozen=True)
class Served:
    """What is served here, or is in a list of what is not."""

    apis: Mapping[int, str]
    absent: frozenset[int]
    messages: Mapping[str, int]  # those that are declared -> newest version
    keys: frozenset[str]  # of brokers and topics
    group_keys: frozenset[str]
    errors: Mapping[int, str]
    features: Mapping[str, str]


def read_schema(text: str) -> tuple[str, Schema]:
    """Name and schema of one of Kafka's JSON files, which have comments. Errors: ValueError: it is none."""
    found = json.loads(_COMMENT.sub(lambda match: match[1] or "", text))
    rows: dict[str, str] = {}
    for prefix, fields in (
        ("", found.get("fields", ())),
        *((f"{each['name']}.", each["fields"]) for each in found.get("commonStructs", ())),
    ):
        rows.update(_rows(fields, prefix))
    return found["name"], Schema(found.get("validVersions", "none"), str(found.get("flexibleVersions", "none")), rows)


def _rows(fields: Iterable[Mapping[str, Any]], prefix: str) -> Iterator[tuple[str, str]]:
    for each in fields:
        words = [str(each["type"]), str(each.get("versions", "all"))]
        words += [f"{name}={each[name]}" for name in _TRAITS[2:] if name in each]
        yield prefix + each["name"], " ".join(words)
        yield from _rows(each.get("fields", ()), f"{prefix}{each['name']}.")


def compare(old: Description, new: Description, api_name: Callable[[int], str]) -> list[str]:
    """What the newer release has that the older has not, and the other way round; a section each, none empty."""
    lines = _section("APIs of a broker", _changes(old.apis, new.apis, lambda key: f"{key} {api_name(key)}"))
    lines += _section("messages", _messages(old.messages, new.messages))
    for kind in sorted(old.settings.keys() | new.settings.keys()):
        changes = _changes(old.settings.get(kind, {}), new.settings.get(kind, {}))
        lines += _section(f"settings of a {kind}", changes)
    lines += _section("errors", _changes(old.errors, new.errors))
    lines += _section("features", _changes(old.features, new.features))
    return lines or [f"nothing differs between {old.name} and {new.name}"]


def _section(title: str, lines: Iterable[str]) -> list[str]:
    found = [f"  {line}" for line in lines]
    return [f"{title}:", *found] if found else []


def _changes(old: Mapping[K, V], new: Mapping[K, V], label: Callable[[K], str] = str) -> Iterator[str]:
    for key in sorted(old.keys() | new.keys()):
        if key not in old:
            yield f"+ {label(key)}: {new[key]}"
        elif key not in new:
            yield f"- {label(key)}: {old[key]}"
        elif old[key] != new[key]:
            yield f"{label(key)}: {old[key]} -> {new[key]}"


def _messages(old: Mapping[str, Schema], new: Mapping[str, Schema]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before is None or after is None:
            yield f"+ {name}: {after.versions}" if after else f"- {name}: {before.versions if before else ''}"
            continue
        versions = before.versions if before.versions == after.versions else f"{before.versions} -> {after.versions}"
        flexible = "" if before.flexible == after.flexible else f", flexible {before.flexible} -> {after.flexible}"
        yield f"{name}: {versions}{flexible}"
        yield from (f"  {line}" for line in _changes(before.fields, after.fields))


def compare_served(new: Description, here: Served, api_name: Callable[[int], str]) -> list[str]:
    """What there is to do: where what is served here is not what the release has."""
    lines = _section("APIs, broker/handlers/__init__.py", _apis(new, here, api_name))
    lines += _section("messages, protocol/messages", _declared(new.messages, here.messages))
    theirs = {key for kind in ("broker", "topic") for key in new.settings.get(kind, ())}
    groups = new.settings.get("group", {})
    lines += _section("settings of brokers and topics, broker/config/key_effects.py", _keys(theirs, here.keys))
    lines += _section("settings of groups, broker/config/config_defs.py", _keys(groups.keys(), here.group_keys))
    lines += _section("errors, protocol/errors.py", _changes(here.errors, new.errors))
    lines += _section("features, broker/config/features.py", _changes(here.features, new.features))
    return lines or [f"all of {new.name} is served here, or is in a list of what is not"]


def _keys(theirs: Set[str], ours: Set[str]) -> Iterator[str]:
    yield from (f"+ {key}" for key in sorted(theirs - ours))
    yield from (f"- {key}: no longer Kafka's" for key in sorted(ours - theirs))


def _apis(new: Description, here: Served, api_name: Callable[[int], str]) -> Iterator[str]:
    for key in sorted(new.apis.keys() | here.apis.keys()):
        label = f"{key} {api_name(key)}"
        if key not in here.apis:
            if key not in here.absent:
                yield f"+ {label}: {new.apis[key]}, neither served nor in ABSENT"
        elif key not in new.apis:
            yield f"- {label}: {here.apis[key]} served, not Kafka's"
        else:
            (first, last), (lowest, highest) = _range(here.apis[key]), _range(new.apis[key])
            if last != highest or first > lowest:  # older versions than Kafka's are served on purpose
                yield f"{label}: {here.apis[key]} served, {new.apis[key]} are Kafka's"


def _range(versions: str) -> tuple[int, int]:
    """Of "2-4" or "3"."""
    first, _, last = versions.partition("-")
    return int(first), int(last or first)


def _declared(theirs: Mapping[str, Schema], ours: Mapping[str, int]) -> Iterator[str]:
    for name in sorted(theirs.keys() & ours.keys()):
        versions = theirs[name].versions
        if versions != "none" and _range(versions)[1] != ours[name]:
            yield f"{name}: declared up to {ours[name]}, Kafka's {versions}"
