"""A request with its reply as one line, for reports of failed tests: time, API, client, what it names, errors, why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from broker.base.visible import visible

# What the line shows of a request: word -> the fields that may hold it.
NAMED: Final = {
    "group": ("group_id", "groups_names", "group_ids", "groups"),
    "member": ("members",),  # of LeaveGroup
    "txn": ("transactional_id", "v3_and_below_transactional_id"),
    "topic": ("topics", "topic_data", "topic_partitions", "subscribed_topic_names", "groups.topics"),
    "subject": ("subject",),  # of the schema registry
}
MOST_NAMES: Final = 3


def one_line(entry: Mapping[str, Any]) -> str:
    """An entry, as `describe` of reading.py makes it."""
    at = datetime.fromtimestamp(entry["at_ms"] / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    latency = "no reply" if entry["latency_ms"] is None else f"{entry['latency_ms']:.2f} ms"
    words = [at, what(entry), latency, entry["client_id"] or "-", entry["connection"]]
    for word, fields in NAMED.items():
        names = _names(entry["request"], entry.get("topic_names", {}), fields)
        if names:
            more = ",..." if len(names) > MOST_NAMES else ""
            words.append(f"{word}={','.join(names[:MOST_NAMES])}{more}")
    words += entry["errors"]
    words += [f"({entry[key]})" for key in ("fault", "why") if key in entry]
    return visible("  ".join(words))


def _names(request: dict[str, Any] | None, by_id: dict[str, str], fields: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for field in fields:
        for each in _values(request or {}, field):
            name = each if isinstance(each, str) else _name_of(each, by_id)
            if name and name not in found:
                found.append(name)
    return found


def what(entry: Mapping[str, Any]) -> str:
    """The API and its version; of the schema registry the route and what was asked."""
    asked = entry["request"] or {}
    if "route" in asked and "path" in asked:
        return f"{entry['api']} {asked['route']} {asked['method']} {asked['path']}"
    return f"{entry['api']} v{entry['version']}"


def _values(request: dict[str, Any], field: str) -> list[Any]:
    """What a field holds, one by one; groups.topics: that of each group."""
    outer, dot, inner = field.partition(".")
    value = request.get(outer)
    found = value if isinstance(value, list) else [value]
    return [each for item in found if isinstance(item, dict) for each in _values(item, inner)] if dot else found


def _name_of(item: object, by_id: dict[str, str]) -> str:
    if not isinstance(item, dict):
        return ""
    topic_id = str(item.get("topic_id") or "")
    own = item.get("name") or item.get("topic") or item.get("group_id") or item.get("group_instance_id")
    return str(own or item.get("member_id") or by_id.get(topic_id, topic_id))
