"""Where momus answers otherwise than Confluent's registry on purpose: each by name, with the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from answers import Answer
from step import Step

INVALID: Final = 42201
CONTEXT_NAMED: Final = re.compile(r":\.cu[0-9a-f]{8}:")
OK: Final = 200


class Reason(NamedTuple):
    """`applies` is given the steps so far, and what both have answered to the last of them.

    ends   the two registries hold other things from there on, so that the rest of a sequence says nothing.
    """

    name: str
    why: str
    applies: Callable[[Sequence[Step], Answer, Answer], bool]
    ends: bool = True


def in_one_form(step: Step, theirs: Answer, ours: Answer) -> tuple[Any, Any]:
    """Both answers without what only the other one's form has.

    Confluent's answer to a registration repeats the schema that was sent; its answer to a lookup says whether the
    version is deleted only where it had to search for it. Where several subjects have an id, it shows one of them, and
    lists them, in the order of a hash table; so stand the messages of what does not fit. With
    referenceFormat=qualified its guid is that of another content.
    """
    one, other, path = theirs.compared, ours.compared, step.path.partition("?")[0]
    if one[0] != other[0]:
        return one, other
    mine, his = one[2], other[2]
    if isinstance(mine, list) and isinstance(his, list) and "/schemas/ids/" in path:
        mine, his = sorted(mine, key=str), sorted(his, key=str)
    elif isinstance(mine, dict) and isinstance(his, dict) and one[0] == OK:
        left_out: set[str] = set()
        if step.method == "POST" and "schema" not in his and "guid" in his:
            left_out |= mine.keys() - {"id", "version", "guid"}
        elif step.method == "POST" and ("deleted" in mine) != ("deleted" in his):
            left_out |= {"deleted"}
        if "/schemas/ids/" in path and mine.get("subject") != his.get("subject"):
            left_out |= {"subject", "version", "deleted"}
        if "referenceFormat=qualified" in step.path:
            left_out |= {"guid"}
        mine, his = ({key: value for key, value in each.items() if key not in left_out} for each in (mine, his))
        for each in (mine, his):
            if isinstance(each.get("messages"), list):
                each["messages"] = sorted(each["messages"])
    if "format=serialized" in step.path:
        mine, his = _without_descriptor(mine), _without_descriptor(his)
    return (*one[:2], mine), (*other[:2], his)


def _without_descriptor(answer: Any) -> Any:
    """protoc's descriptors have names resolved, and Confluent's as they were written; both mean the same."""
    if isinstance(answer, str):
        return None
    if not isinstance(answer, dict) or answer.get("schemaType") != "PROTOBUF":
        return answer
    return {key: value for key, value in answer.items() if key != "schema"}


def _code(answer: Answer) -> int:
    return answer.body.get("error_code", 0) if isinstance(answer.body, dict) else 0


def _has_rules(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return any("uleSet" in json.dumps(step.body) for step in steps)


def _is_no_json_schema(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return _is_refused_here(theirs, ours, "JSON", "details: at $")


def _is_refused_here(theirs: Answer, ours: Answer, schema_type: str, why: str) -> bool:
    """Whether a schema is none here alone, for what its parser says; a verbose test says it among its messages."""
    text = str(ours.body)
    is_told = (
        _code(ours) == INVALID or "'messages': ['Invalid schema" in text or "'messages': [\"Invalid schema" in text
    )
    is_told_there = _code(theirs) == INVALID or "Invalid schema" in str(theirs.body)
    return is_told and not is_told_there and f"schemaType={schema_type}" in text and why in text


def _is_protoc(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return _is_refused_here(theirs, ours, "PROTOBUF", "line ")


def _is_internal(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return theirs.status == 500 == _code(theirs) and ours.status < 500


def _is_empty(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return theirs.status == OK and "Empty schema" in str(ours.body)


def _is_no_type(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return ours.status == theirs.status and "Invalid schema type" in str(ours.body)


def _has_failed(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return _code(theirs) // 100 == 500  # 50001 to 50004: its Kafka has not answered in time


def _is_no_text(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return ours.status == 422 and "takes a text" in str(ours.body)


def _is_left(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return steps[-1].path.startswith("/contexts?") and ours.body == [] and theirs.status == 200


def _is_as_sent(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    one, other = theirs.compared[2], ours.compared[2]
    if not (theirs.status == ours.status == OK and isinstance(one, dict) and isinstance(other, dict)):
        return False
    return "id" in one and all(one.get(each) == other.get(each) for each in ("id", "version")) and _registers(steps[-1])


def _registers(step: Step) -> bool:
    return step.method == "POST" and step.path.partition("?")[0].endswith("/versions")


def _is_leaked(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    """Whether an alias leads there to a subject of another sequence's context."""
    has_alias = any("alias" in (step.body or {}) for step in steps if step.path.startswith(("/config", "/contexts")))
    there = {*CONTEXT_NAMED.findall(json.dumps(theirs.body))}
    return has_alias and "/schemas/ids/" in steps[-1].path and not there <= {*CONTEXT_NAMED.findall(str(ours.body))}


def _is_cached(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    is_kept = theirs.status == OK and "No schema reference found" in str(ours.body)
    return is_kept and any(step.method == "DELETE" for step in steps) and "references" in json.dumps(steps[-1].body)


def _is_unevaluated(steps: Sequence[Step], theirs: Answer, ours: Answer) -> bool:
    return any("unevaluated" in json.dumps(step.body) for step in steps)


REASONS: Final[tuple[Reason, ...]] = (
    Reason("rules", "Rule sets are kept and given to clients; the open registry drops them.", _has_rules),
    Reason("protoc", "protoc refuses a .proto that Confluent's registry takes as long as nothing uses it.", _is_protoc),
    Reason("meta-schema", "What the meta-schema of its draft refuses is no JSON Schema.", _is_no_json_schema),
    Reason(
        "unevaluated",
        'What is not evaluated counts beside "type" too; Confluent\'s parser of drafts since 2019-09 loses it there.',
        _is_unevaluated,
    ),
    Reason(
        "as-sent",
        "A schema that is there is answered as it is stored; Confluent's answer has the text and guid that were sent.",
        _is_as_sent,
        ends=False,
    ),
    Reason("context", "A registration that is refused leaves no context; there it does.", _is_left, ends=False),
    Reason(
        "alias",
        "An id is looked up by an alias within its context; Confluent's looks there into all of them.",
        _is_leaked,
        ends=False,
    ),
    Reason(
        "cached",
        "A schema that refers to a deleted one is none; Confluent's takes one that it has parsed before the deletion.",
        _is_cached,
    ),
    Reason("empty", "IMPORT takes no schema that is empty; there it does.", _is_empty),
    Reason("type", "A type that is none is told before the mode in any request.", _is_no_type, ends=False),
    Reason("store", "Confluent's registry has lost its Kafka, on a machine that is busy.", _has_failed),
    Reason("internal", "What ends in Confluent's in an internal error is answered.", _is_internal, ends=False),
    Reason("text", "A schema that is no text is refused; Confluent's makes one of a number.", _is_no_text, ends=False),
)
