"""A fault as data: what it does, to which requests, and at which of them.

    {"fault": "inject_error", "api": "OffsetCommit", "group": "billing", "error": "NOT_COORDINATOR", "trigger": "once"}

The words are those of KAFKA-21074 where it has one.
"""

from __future__ import annotations

import re
from collections import deque
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from broker.faults.errors import FaultError
from broker.faults.fields import BODY_FILTERS, REQUIRED, Field
from broker.faults.kinds import KINDS, DiskKind, Kind, OfRegistry, RequestKind
from protocol.api import ApiKey, api_name
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.faults.named import Met, Named
    from storage.files.env import Rng

_ALL_FIELDS: Final = {
    "fault",
    "name",
    "trigger",
    *(field.name for kind in KINDS.values() for field in (*kind.fields, *kind.filters)),
}
EXPLORED: Final = "explore."  # begins the names of faults that belong to a schedule, not to a test
RESERVED: Final = "kinds"  # as a name it would hide a fault from GET /faults/{name}


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

    __slots__ = (
        "apis",
        "calls",
        "code",
        "filters",
        "held",
        "hits",
        "kept",
        "kind",
        "met",
        "name",
        "outcome",
        "trigger",
        "values",
    )

    def __init__(
        self, name: str, kind: Kind, filters: dict[str, Any], values: dict[str, Any], trigger: Trigger
    ) -> None:
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
        self.met: Met | None = None  # of an event: the request that it is about
        self.outcome: str | None = None  # of an event: "made", or why there was none
        self.kept: deque[Callable[[], None]] = deque()  # calls that let requests of the registry go, the oldest first

    @property
    def is_unmet(self) -> bool:
        """Whether a test is to fail for it: it never acted, and the test has set it itself."""
        return not self.hits and not self.name.startswith(EXPLORED)

    @property
    def is_of_disk(self) -> bool:
        """Whether it acts on files, not on requests."""
        return isinstance(self.kind, DiskKind)

    @property
    def meets_requests(self) -> bool:
        """Whether it acts on clients' requests, or on the replies to them."""
        return isinstance(self.kind, RequestKind)

    def matches_registry(self, route: str, subject: str | None, principal: str) -> bool:
        """Whether it is about a request of the schema registry."""
        filters = self.filters
        return (
            isinstance(self.kind, OfRegistry)
            and _fits(filters.get("route"), (route,))
            and _fits(filters.get("subject"), () if subject is None else (subject,))
            and _fits(filters.get("principal"), (principal,))
        )

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

    def as_json(self) -> dict[str, object]:
        """The fault as it was given, its name, and the counts."""
        filters = dict(self.filters)
        if "api" in filters:
            filters["api"] = [api_name(key) for key in filters["api"]]
        if "version" in filters:
            filters["version"] = list(filters["version"])
        values = {key: value for key, value in self.values.items() if value is not None}
        if self.code is not None:
            values["error"] = self.code.name
        given = {"name": self.name, "fault": self.kind.name, **values, **filters, "trigger": self.trigger.as_json()}
        made = {} if self.outcome is None else {"outcome": self.outcome}
        return {**given, "calls": self.calls, "hits": self.hits, "held": self.held, **made}


def first_acting(matching: Iterable[Fault]) -> Fault | None:
    """The fault that acts where these match: the first whose trigger fires. All of them count the call."""
    acting = [fault for fault in matching if fault.acts()]
    if not acting:
        return None
    acting[0].trigger.fired()
    acting[0].hit()
    return acting[0]


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
    wanted = data.get("fault")
    kind = KINDS.get(wanted) if isinstance(wanted, str) else None
    if kind is None:
        raise FaultError(f'"fault" is {wanted!r}{_meant(wanted, KINDS)}: give one of {", ".join(KINDS)}')
    taken = [field.name for field in (*kind.fields, *kind.filters)]
    for key in data.keys() - {"fault", "trigger", "name"}:
        if key not in taken:
            raise FaultError(f"{kind.name} takes no {key!r}; it takes {', '.join(taken)}")
    for field in kind.fields:
        if field.default is REQUIRED and field.name not in data:
            raise FaultError(f"{kind.name} needs {field.name!r}")
    values = {field.name: _value(kind, field, data.get(field.name, field.default)) for field in kind.fields}
    given_filters = [field for field in kind.filters if data.get(field.name) is not None]
    filters = {field.name: _filter(field, data[field.name]) for field in given_filters}
    trigger = _trigger(data.get("trigger", "every_time"), make_rng, new_seed)
    given = data.get("name", name)
    if not isinstance(given, str) or not re.fullmatch(r"[\w.-]{1,80}", given):
        raise FaultError(f'"name" is {given!r:.90}: letters, digits, ".", "_" and "-" only')
    if given == RESERVED:
        raise FaultError(f'"name" is {given!r}, which the control plane uses itself: give another name')
    return Fault(given, kind, filters, values, trigger)


def _value(kind: Kind, field: Field, value: Any) -> Any:
    if field.type == "error":
        return error_code(value)
    if field.type == "choice":
        if value not in field.choices:
            raise FaultError(f'"{field.name}" of {kind.name} is one of {", ".join(field.choices)}, not {value!r}')
        return value
    if value is None and field.default is None:
        return None
    if type(value) is not int or not field.least <= value <= field.most:
        raise FaultError(
            f'"{field.name}" of {kind.name} is a whole number from {field.least} to {field.most}, not {value!r}'
        )
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


def _filter(field: Field, value: Any) -> Any:
    if field.type == "api":
        if value == []:
            raise FaultError('"api" is an empty list: name one, or leave it out for all')
        return tuple(api_key(each) for each in (value if isinstance(value, list) else [value]))
    if field.type == "version":
        ends = value if isinstance(value, list) else [value, value]
        if len(ends) != 2 or any(type(end) is not int for end in ends):
            raise FaultError(f'"version" is a number or [first, last], not {value!r}')
        return tuple(ends)
    if field.type == "number":
        if type(value) is not int:
            raise FaultError(f'"{field.name}" is a number, not {value!r}')
        return value
    if not isinstance(value, str):
        raise FaultError(f'"{field.name}" is a text, not {value!r}')
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
