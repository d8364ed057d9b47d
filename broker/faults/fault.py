"""A fault as data: what it does, to which requests, and at which of them.

    {"fault": "inject_error", "api": "OffsetCommit", "group": "billing", "error": "NOT_COORDINATOR", "trigger": "once"}

The words are those of KAFKA-21074 where it has one.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from broker.faults.errors import FaultError
from protocol.api import ApiKey, api_name
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.faults.named import Named
    from storage.files.env import Rng

BEFORE, AFTER, MIDDLE = "before", "after", "middle"
DISK: Final = ("slow_disk", "full_disk", "fail_write", "fail_fsync")
# The fields that each fault takes beside filters and trigger: name -> default, or REQUIRED.
REQUIRED: Final[Any] = object()
FIELDS: Final[dict[str, dict[str, Any]]] = {
    "inject_error": {"error": REQUIRED},
    "delay_on": {"ms": REQUIRED, "when": AFTER},
    "hold": {"when": AFTER},
    "disconnect_on": {"when": AFTER},
    "blackhole_client": {},
    "throttle": {"bytes_per_second": REQUIRED},
    "corrupt_reply": {"at": None},
    "deliver_twice": {},
    "slow_disk": {"ms": REQUIRED},
    "full_disk": {"free_bytes": 0},
    "fail_write": {},
    "fail_fsync": {},
}
WHENS: Final = {"disconnect_on": (BEFORE, AFTER, MIDDLE), "delay_on": (BEFORE, AFTER), "hold": (BEFORE, AFTER)}
FILTERS: Final = (
    "api",
    "version",
    "client_id",
    "principal",
    "connection",
    "listener",
    "broker",
    "topic",
    "partition",
    "group",
    "transactional_id",
)
BODY_FILTERS: Final = ("topic", "partition", "group", "transactional_id")
DISK_FILTERS: Final = ("topic", "partition")
_ALL_FIELDS: Final = {"fault", "name", "trigger", *FILTERS, *(key for fields in FIELDS.values() for key in fields)}
MOST_MS: Final = 86_400_000
MOST_DISK_MS: Final = 10_000  # a write is waited for, and nothing else happens meanwhile


class Trigger:
    """At which of the requests that match a fault acts."""

    __slots__ = ("_fired", "kind", "number", "probability", "rng", "seed")

    def __init__(self, kind: str = "every_time", number: int = 0, probability: float = 0.0, seed: int = 0) -> None:
        self.kind = kind
        self.number = number
        self.probability = probability
        self.seed = seed
        self.rng: Rng | None = None
        self._fired = 0

    def fires(self, call: int) -> bool:
        """Whether the fault acts at this call, counted from 1. Asked once for each call."""
        if self.kind == "on_call":
            return call == self.number
        if self.rng is not None:
            return self.rng.random() < self.probability
        return self.kind == "every_time" or self._fired < self.number

    def fired(self) -> None:
        """The fault has acted."""
        self._fired += 1

    def as_json(self) -> Any:
        """What it was read from."""
        if self.kind == "every_time" or self.kind == "once":
            return self.kind
        if self.kind == "with_probability":
            return {"with_probability": self.probability, "seed": self.seed}
        return {self.kind: self.number}


class Fault:
    """One fault of a cluster, with how often it was met (`calls`) and has acted (`hits`)."""

    __slots__ = ("apis", "calls", "code", "filters", "held", "hits", "kind", "name", "trigger", "values")

    def __init__(self, name: str, kind: str, filters: dict[str, Any], values: dict[str, Any], trigger: Trigger) -> None:
        self.name = name
        self.kind = kind
        self.filters = filters
        self.values = values
        self.trigger = trigger
        self.apis: frozenset[int] = frozenset(filters.get("api", ()))  # none: all
        self.code: ErrorCode | None = values.get("error")
        self.calls = 0
        self.hits = 0
        self.held = 0  # requests or replies that it keeps now

    @property
    def is_of_disk(self) -> bool:
        """Whether it acts on files, not on requests."""
        return self.kind in DISK

    def needs_body(self) -> bool:
        """Whether the request must be decoded to know if it matches."""
        return any(name in self.filters for name in BODY_FILTERS)

    def matches_head(self, api_key: int, api_version: int, connection: Any, client_id: str) -> bool:
        """Whether a request matches as far as its header and its connection go."""
        if self.apis and api_key not in self.apis:
            return False
        filters = self.filters
        first, last = filters.get("version", (0, 1 << 15))
        return (
            first <= api_version <= last
            and _fits(filters.get("client_id"), (client_id,))
            and _fits(filters.get("principal"), (connection.principal,))
            and ("broker" not in filters or filters["broker"] == connection.node_id)
            and ("listener" not in filters or filters["listener"] == connection.listener.name)
            and ("connection" not in filters or filters["connection"] == address_of(connection))
        )

    def matches_body(self, named: Named) -> bool:
        """Whether a request matches by what it names. Topic and partition must be named together."""
        filters = self.filters
        topic, partition = filters.get("topic"), filters.get("partition")
        if partition is not None:
            if not any(index == partition and _fits(topic, (name,)) for name, index in named.partitions):
                return False
        elif not _fits(topic, named.topics):
            return False
        return _fits(filters.get("group"), named.groups) and _fits(
            filters.get("transactional_id"), named.transactional_ids
        )

    def acts(self) -> bool:
        """Count a matching request. Whether the fault would act on it; call `trigger.fired` if it is to."""
        self.calls += 1
        return self.trigger.fires(self.calls)

    def hit(self) -> None:
        """It has acted: on a request, or on its reply."""
        self.hits += 1

    def as_json(self) -> dict[str, Any]:
        """The fault as it was given, its name, and the counts."""
        filters = dict(self.filters)
        if "api" in filters:
            filters["api"] = [api_name(key) for key in filters["api"]]
        if "version" in filters:
            filters["version"] = list(filters["version"])
        values = {key: value for key, value in self.values.items() if value is not None}
        if self.code is not None:
            values["error"] = self.code.name
        counts = {"calls": self.calls, "hits": self.hits, "held": self.held}
        return {"name": self.name, "fault": self.kind, **values, **filters, "trigger": self.trigger.as_json(), **counts}


def address_of(connection: Any) -> str:
    """HOST:PORT of the client."""
    peer = connection.transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if peer else ""


def _fits(pattern: str | None, found: Iterable[str]) -> bool:
    return pattern is None or any(fnmatchcase(each, pattern) for each in found)


_APIS: Final = {api_name(key).lower(): int(key) for key in ApiKey}


def parse(data: Any, name: str, make_rng: Callable[[int], Rng], new_seed: Callable[[], int]) -> Fault:
    """A fault from its JSON object. Errors: FaultError."""
    if not isinstance(data, dict):
        raise FaultError("a fault is a JSON object")
    for key in data.keys() - _ALL_FIELDS:
        raise FaultError(f'no such field: "{key:.80}"{_meant(key, _ALL_FIELDS)}')
    kind = data.get("fault")
    if kind not in FIELDS:
        raise FaultError(f'"fault" is {kind!r}{_meant(kind, FIELDS)}: give one of {", ".join(FIELDS)}')
    fields = FIELDS[kind]
    allowed = DISK_FILTERS if kind in DISK else FILTERS
    for key in data.keys() - {"fault", "trigger", "name"} - fields.keys():
        if key not in allowed:
            raise FaultError(f"{kind} takes no {key!r}; it takes {', '.join((*fields, *allowed))}")
    missing = [key for key, default in fields.items() if default is REQUIRED and key not in data]
    if missing:
        raise FaultError(f"{kind} needs {missing[0]!r}")
    values = {key: _value(kind, key, data.get(key, default)) for key, default in fields.items()}
    filters = {key: _filter(key, data[key]) for key in allowed if data.get(key) is not None}
    trigger = _trigger(data.get("trigger", "every_time"), make_rng, new_seed)
    given = data.get("name", name)
    if not isinstance(given, str) or not re.fullmatch(r"[\w.-]{1,80}", given):
        raise FaultError(f'"name" is {given!r:.90}: letters, digits, ".", "_" and "-" only')
    return Fault(given, kind, filters, values, trigger)


def _value(kind: str, key: str, value: Any) -> Any:
    if key == "error":
        return error_code(value)
    if key == "when":
        if value not in WHENS[kind]:
            raise FaultError(f'"when" of {kind} is one of {", ".join(WHENS[kind])}, not {value!r}')
        return value
    if key == "at" and value is None:
        return None
    most = MOST_DISK_MS if kind in DISK and key == "ms" else MOST_MS if key == "ms" else 1 << 53
    least = 1 if key == "bytes_per_second" else 0
    if type(value) is not int or not least <= value <= most:
        raise FaultError(f'"{key}" of {kind} is a whole number from {least} to {most}, not {value!r}')
    return value


def error_code(value: Any) -> ErrorCode:
    """An error by its name. Errors: FaultError: there is none."""
    try:
        code = ErrorCode[value] if isinstance(value, str) else ErrorCode(value)
    except (KeyError, ValueError):
        raise FaultError(f"{value!r} is no error of Kafka's{_meant(value, ErrorCode.__members__)}") from None
    if code == ErrorCode.NONE:
        raise FaultError("NONE is not an error: give the name of one")
    return code


def _filter(key: str, value: Any) -> Any:
    if key == "api":
        if value == []:
            raise FaultError('"api" is an empty list: name one, or leave it out for all')
        return tuple(api_key(each) for each in (value if isinstance(value, list) else [value]))
    if key == "version":
        ends = value if isinstance(value, list) else [value, value]
        if len(ends) != 2 or any(type(end) is not int for end in ends):
            raise FaultError(f'"version" is a number or [first, last], not {value!r}')
        return tuple(ends)
    if key in ("partition", "broker"):
        if type(value) is not int:
            raise FaultError(f'"{key}" is a number, not {value!r}')
        return value
    if not isinstance(value, str):
        raise FaultError(f'"{key}" is a text, not {value!r}')
    return value


def api_key(value: Any) -> int:
    """The key of an API by its name. Errors: FaultError: there is none."""
    if isinstance(value, int) and value in ApiKey.__members__.values():
        return int(value)
    key = _APIS.get(str(value).replace("_", "").lower())
    if key is None:
        raise FaultError(f"{value!r} is no API{_meant(value, [api_name(key) for key in ApiKey])}")
    return key


def _trigger(data: Any, make_rng: Callable[[int], Rng], new_seed: Callable[[], int]) -> Trigger:
    if data == "every_time":
        return Trigger()
    if data == "once":
        return Trigger("once", 1)
    if isinstance(data, dict):
        numbered = [kind for kind in ("on_call", "times") if data.keys() == {kind}]
        if numbered and type(data[numbered[0]]) is int and data[numbered[0]] >= 1:
            return Trigger(numbered[0], data[numbered[0]])
        chance, seed = data.get("with_probability"), data.get("seed")
        if data.keys() <= {"with_probability", "seed"} and isinstance(chance, (int, float)) and 0 <= chance <= 1:
            if seed is not None and type(seed) is not int:
                raise FaultError(f'"seed" is a whole number, not {seed!r}')
            made = Trigger("with_probability", 0, float(chance), new_seed() if seed is None else seed)
            made.rng = make_rng(made.seed)
            return made
    raise FaultError(
        f'"trigger" is {data!r:.80}: give "once", "every_time", {{"on_call": N}}, {{"times": N}}'
        ' or {"with_probability": P, "seed": S}, N from 1, P from 0 to 1'
    )


def _meant(word: Any, known: Iterable[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(str(word).lower(), by_lower, 1, 0.6)
    return f" (did you mean {by_lower[close[0]]}?)" if close else ""
