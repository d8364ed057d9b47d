"""Commits that a broker has refused, read from its journal: rows as `momus offsets history` has them of accepted ones.

May only be imported where momus.launch.use_packages() has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from momus.control import Control
from momus.journal import MOST, Journal
from protocol.errors import error_label

if TYPE_CHECKING:
    from momus.kit.typed import JournalEntry

APIS = ("OffsetCommit", "TxnOffsetCommit")

Row = dict[str, Any]


def refused_commits(control: Control, topic_name: Callable[[str], str]) -> Iterator[Row]:
    """A row for each partition of each commit that was refused, as far back as the journal goes.

    topic_name   the name for a topic id, as the journal writes ids.
    Errors:      ControlError.
    """
    journal = Journal(control, control.prefix)
    for api in APIS:
        for entry in journal.entries(api=api, limit=MOST):
            request, response = entry["request"], entry["response"]
            if entry["errors"] and request is not None and response is not None:
                yield from _rows(entry, request, response, topic_name)


def _rows(entry: JournalEntry, request: Row, response: Row, topic_name: Callable[[str], str]) -> Iterator[Row]:
    codes = {
        (_name(topic, topic_name), each["partition_index"]): each["error_code"]
        for topic in _items(response["topics"])
        for each in _items(topic["partitions"])
    }
    for topic in _items(request["topics"]):
        name = _name(topic, topic_name)
        for each in _items(topic["partitions"]):
            code = codes.get((name, each["partition_index"]), 0)
            if code:
                yield {
                    "time_ms": entry["at_ms"],
                    "group": request["group_id"],
                    "topic": name,
                    "partition": each["partition_index"],
                    "offset": each["committed_offset"],
                    "metadata": each["committed_metadata"] or None,
                    "member": request.get("member_id") or None,
                    "instance": request.get("group_instance_id"),
                    "generation": _generation(request),
                    "client": entry["client_id"] or None,
                    "producer_id": request.get("producer_id"),
                    "log": None,
                    "refused": error_label(code),
                    "why": entry.get("why") or entry.get("fault"),
                }


def _items(rows: list[Any]) -> Iterator[Row]:
    """The journal shows the first of a long list, and then a sentence."""
    return (row for row in rows if isinstance(row, dict))


def _name(topic: Row, topic_name: Callable[[str], str]) -> str:
    return topic.get("name") or topic_name(topic.get("topic_id", ""))


def _generation(request: Row) -> int | None:
    found: int = request.get("generation_id_or_member_epoch", -1)
    return found if found >= 0 else None
