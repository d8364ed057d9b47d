"""The error codes of a response, of the whole request or of each partition, topic, group or member in it.

Codes that the version of the response lacks are replaced (the table is in errors.py); what is left is counted.

Source: Kafka's errorCounts of each response, without NONE.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from broker.wire.errors import OLDER
from protocol.declare import Message
from protocol.wire import Array

if TYPE_CHECKING:
    from broker.turn.metrics import Metrics

CODES: Final = ("error_code", "partition_error_code")


class _Plan:
    """Where a message has error codes: its own, and those of messages in it."""

    __slots__ = ("code", "code_of", "nested")

    def __init__(self, cls: type[Message]) -> None:
        own = [each.name for each in cls.FIELDS if each.name in CODES]
        self.code = own[0] if own else ""
        self.code_of: attrgetter[int] | None = attrgetter(own[0]) if own else None
        self.nested: list[tuple[attrgetter[Any], bool, _Plan]] = []  # the field, whether it is a list, its messages
        for each in cls.FIELDS:
            is_list = isinstance(each.wire, Array)
            inner = each.wire.element if isinstance(each.wire, Array) else each.wire
            if isinstance(inner, type) and issubclass(inner, Message):
                plan = _plan(inner)
                if plan.code_of is not None or plan.nested:
                    self.nested.append((attrgetter(each.name), is_list, plan))


@cache
def _plan(cls: type[Message]) -> _Plan:
    return _Plan(cls)


def _add(found: list[int], messages: Iterable[Message], plan: _Plan) -> None:
    if plan.code_of is not None:
        found += filter(None, map(plan.code_of, messages))  # 4 us for 100 partitions
    for field, is_list, inner in plan.nested:
        for message in messages:
            value = field(message)
            if value:
                _add(found, value if is_list else (value,), inner)


def errors_in(response: Message) -> list[int]:
    """Each error code of a response, as often as it is there."""
    found: list[int] = []
    _add(found, (response,), _plan(type(response)))
    return found


def _replace(messages: Iterable[Message], plan: _Plan, codes: dict[int, int]) -> None:
    for message in messages:
        if plan.code_of is not None and plan.code_of(message) in codes:
            setattr(message, plan.code, codes[plan.code_of(message)])
        for field, is_list, inner in plan.nested:
            value = field(message)
            if value:
                _replace(value if is_list else (value,), inner, codes)


def settle_errors(metrics: Metrics, api_key: int, api_version: int, response: Message) -> bool:
    """Replace the codes that the version lacks, and count the errors that are sent. Whether there are any."""
    errors = errors_in(response)
    if not errors:
        return False
    rows = OLDER.get(api_key)
    if rows is not None:
        codes: dict[int, int] = {code: older for code, (since, older) in rows.items() if api_version < since}
        if codes and not codes.keys().isdisjoint(errors):
            _replace((response,), _plan(type(response)), codes)
            errors = [codes.get(code, code) for code in errors]
    for code in errors:
        metrics.error(api_key, code)
    return True
