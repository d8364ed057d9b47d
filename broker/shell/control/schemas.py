"""The JSON Schemas of what handlers check themselves: records, faults, entries of the journal. `Told` names them.

Those of faults are made from the kinds themselves (broker/faults/kinds.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from broker.faults.fields import Field

Json = dict[str, Any]

TEXT: Final[Json] = {"type": "string"}
WHOLE: Final[Json] = {"type": "integer"}
# null, a text, or what is no UTF-8 in base64
BYTES: Final[Json] = {
    "anyOf": [
        {"type": ["string", "null"]},
        {"type": "object", "properties": {"base64": TEXT}, "required": ["base64"], "additionalProperties": False},
    ]
}
HEADERS: Final[Json] = {
    "type": "array",
    "items": {"type": "array", "items": BYTES, "minItems": 2, "maxItems": 2},
    "description": "pairs of a name and a value",
}
COUNTS: Final[Json] = {
    "calls": {**WHOLE, "description": "how many requests have matched it"},
    "hits": {**WHOLE, "description": "on how many it has acted"},
    "held": {**WHOLE, "description": "how many requests and replies it keeps now"},
}
# what a trigger takes beside "once" and "every_time"
NUMBERS: Final[Json] = {
    "on_call": {**WHOLE, "minimum": 1},
    "times": {**WHOLE, "minimum": 1},
    "with_probability": {"type": "number"},
}


def _object(fields: Json, required: tuple[str, ...] = (), *, closed: bool = True, about: str = "") -> Json:
    made: Json = {"type": "object", "properties": fields, "required": list(required)}
    if closed:
        made["additionalProperties"] = False
    return {**made, "description": about} if about else made


def new_record() -> Json:
    """A record to append."""
    fields: Json = {
        "key": BYTES,
        "value": {"anyOf": [BYTES, {"type": ["object", "array"]}], "description": "an object or a list is JSON"},
        "headers": HEADERS,
        "partition": {"type": ["integer", "null"], "description": "null: where Java's producer sends it"},
        "timestamp_ms": {"type": ["integer", "null"], "description": "Unix milliseconds; null: the cluster's clock"},
    }
    return _object(fields)


def record() -> Json:
    """A record that was read."""
    whole = ("partition", "offset", "timestamp_ms")
    fields: Json = {**dict.fromkeys(whole, WHOLE), "key": BYTES, "value": BYTES, "headers": HEADERS}
    return _object(fields, (*whole, "key", "value", "headers"), closed=False)


def trigger() -> Json:
    """On which of the requests that match a fault acts."""
    numbers = [_object({name: schema}, (name,)) for name, schema in NUMBERS.items() if name != "with_probability"]
    chance = _object({"with_probability": NUMBERS["with_probability"], "seed": WHOLE}, ("with_probability",))
    return {"anyOf": [{"type": "string", "enum": ["once", "every_time"]}, *numbers, chance]}


def _field(field: Field) -> Json:
    if field.choices:
        return {"type": "string", "enum": list(field.choices)}
    if field.type == "number":
        return {"type": "integer", "minimum": field.least, "maximum": field.most}
    if field.type == "api":
        return {"anyOf": [TEXT, {"type": "array", "items": TEXT}], "description": "a name, or several"}
    if field.type == "version":
        return {"anyOf": [WHOLE, {"type": "array", "items": WHOLE}], "description": "a number, or [first, last]"}
    if field.type == "error":
        return {**TEXT, "description": "an error of Kafka's, as NOT_COORDINATOR"}
    return TEXT


def _of_kinds(extra: Json, *, closed: bool) -> Json:
    from broker.faults.kinds import KINDS  # 2 ms: most endpoints are not asked what they are

    made = []
    for kind in KINDS.values():
        about = str(kind.as_json()["about"])
        fields: Json = {"fault": {"type": "string", "enum": [kind.name]}, "name": TEXT}
        fields |= {field.name: _field(field) for field in (*kind.fields, *kind.filters)}
        fields |= {"trigger": {"$ref": "#/components/schemas/Trigger"}, **extra}
        required = tuple(field.name for field in kind.fields if field.as_json()["required"])
        made.append(_object(fields, ("fault", *required), closed=closed, about=about))
    return {"anyOf": made}


def fault() -> Json:
    """A fault to set: its kind with the kind's fields and filters, and a trigger."""
    return _of_kinds({}, closed=True)


def set_fault() -> Json:
    """A fault that is set, with how often it was met."""
    found = _of_kinds(COUNTS, closed=False)
    for each in found["anyOf"]:
        each["required"] = ["name", *each["required"], *COUNTS]
    return found


def released_fault() -> Json:
    """A fault of which something was let go."""
    return _with(set_fault(), "released", {**WHOLE, "description": "how many were let go"})


def awaited_fault() -> Json:
    """A fault that was waited for."""
    met = _with(set_fault(), "met", {"type": "boolean", "description": "false: it was not so in time"})
    return _with(met, "why", {**TEXT, "description": "empty: it was"})


def _with(made: Json, name: str, schema: Json) -> Json:
    for each in made["anyOf"]:
        each["properties"] = {**each["properties"], name: schema}
        each["required"] = [*each["required"], name]
    return made


def fault_kind() -> Json:
    """A kind of faults, with its fields and filters."""
    word = _object(
        {
            "name": TEXT,
            "type": {"type": "string", "enum": ["number", "text", "error", "api", "version", "choice"]},
            "required": {"type": "boolean"},
            "default": {"type": ["string", "integer", "null"]},
            "choices": {"type": "array", "items": TEXT},
        },
        ("name", "type", "required"),
        closed=False,
    )
    words = {"type": "array", "items": word}
    return _object(
        {"fault": TEXT, "about": TEXT, "fields": words, "filters": words},
        ("fault", "about", "fields", "filters"),
        closed=False,
    )


def journal_entry() -> Json:
    """A request and its reply."""
    fields: Json = {
        "number": WHOLE,
        "answered": WHOLE,
        "at_ms": {**WHOLE, "description": "Unix milliseconds by the cluster's clock"},
        "latency_ms": {"type": ["number", "null"], "description": "as measured; null: there is no reply yet"},
        **dict.fromkeys(("connection", "client_id", "software", "listener", "principal", "api"), TEXT),
        **dict.fromkeys(("broker", "version", "correlation_id", "bytes_in", "bytes_out"), WHOLE),
        "errors": {"type": "array", "items": TEXT},
        "request": {"type": ["object", "null"], "description": "null: it was too large to be kept"},
        "response": {"type": ["object", "null"], "description": "null: it was too large to be kept, or is none"},
    }
    fields["client_id"] = {"type": ["string", "null"]}
    notes: Json = {
        "why": {**TEXT, "description": "why it was refused"},
        "fault": {**TEXT, "description": "the fault that has acted on it"},
        "topic_names": {"type": "object", "description": "by id, where the request has ids"},
    }
    return _object({**fields, **notes}, tuple(fields), closed=False)


SCHEMAS: Final[dict[str, Callable[[], Json]]] = {
    "NewRecord": new_record,
    "Record": record,
    "Trigger": trigger,
    "Fault": fault,
    "SetFault": set_fault,
    "ReleasedFault": released_fault,
    "AwaitedFault": awaited_fault,
    "FaultKind": fault_kind,
    "JournalEntry": journal_entry,
}
