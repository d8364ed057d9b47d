"""What a request about associations changes, for an authorizer: subjects, and the topics that are resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from broker.registry.associations.given import DELETE, Given, Item, read, wanted_of
from broker.registry.associations.table import Wanted
from broker.registry.contexts import beside, given_prefix
from broker.registry.errors import RegistryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.registry.jobs import Ask
    from broker.registry.state import RegistryState


class Touched(NamedTuple):
    """A subject, or a topic, and what is done to it, in the words of routes.py."""

    needs: str
    subject: str = ""
    topic: str = ""


def touched(state: RegistryState, ask: Ask, needs: str) -> list[Touched]:
    """What a request that changes associations touches; nothing of one that is refused for its form anyway.

    needs   what its route asks of a subject.
    """
    if "resourceId" in ask.words and not ask.body:
        rows = state.associations.of_resource(ask.words["resourceId"], wanted_of(ask, by_lifecycle=False))
        return [Touched(needs, row.subject) for row in rows]
    requests = ask.body.get("requests")
    try:
        bodies = [row for row in requests if isinstance(row, dict)] if isinstance(requests, list) else [ask.body]
        givens = [read(body, is_batch=isinstance(requests, list)) for body in bodies]
        prefix = given_prefix(ask.query["context"]) if ask.query.get("context") else ""
    except (RegistryError, ValueError):
        return []
    found = []
    for given in givens:
        found.append(Touched(needs, topic=given.name))
        for item in given.items:
            found += _of_item(state, given, item, prefix, needs, ask.words.get("resourceId"))
    return found


def _of_item(
    state: RegistryState, given: Given, item: Item, prefix: str, needs: str, resource_id: str | None
) -> Iterator[Touched]:
    kind = item.kind or "value"
    old = state.associations.of_resource(given.resource_id or resource_id or "", Wanted(kinds=(kind,)))
    if item.operation == DELETE:
        yield from (Touched("delete", row.subject) for row in old)
        return
    if item.subject is None:
        subject = old[0].subject if old else given.default(kind)
    else:
        subject = state.alias(beside(prefix, item.subject))
    yield Touched(needs, subject)
    rows: Any = (item.schema or {}).get("references")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("subject"), str):
            named = beside(subject, row["subject"])
            yield from (Touched("describe", each) for each in dict.fromkeys((named, state.alias(named))))
