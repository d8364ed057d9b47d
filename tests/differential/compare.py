"""Where two normalised answers differ, and the class that a difference belongs to."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from differential.plain import Plain, Values

LONGEST_VALUE = 60
STATES = ("closed", "parked", "undecodable")


class Difference(NamedTuple):
    """One value that differs. A path ends in "#" where lists differ in length."""

    path: str
    kafka: Plain
    momus: Plain


def differences(kafka: Plain, momus: Plain, path: str = "") -> list[Difference]:
    """All of them, in the order of the fields' names."""
    if isinstance(kafka, dict) and isinstance(momus, dict):
        found = []
        for name in sorted(kafka.keys() | momus.keys()):
            if name not in kafka or name not in momus:
                found.append(Difference(f"{path}.{name}", kafka.get(name, "<absent>"), momus.get(name, "<absent>")))
            else:
                found += differences(kafka[name], momus[name], f"{path}.{name}")
        return found
    if isinstance(kafka, list) and isinstance(momus, list):
        if len(kafka) != len(momus):
            return [Difference(path + "#", len(kafka), len(momus))]
        return [each for a, b in zip(kafka, momus, strict=True) for each in differences(a, b, path + "[]")]
    return [] if kafka == momus and type(kafka) is type(momus) else [Difference(path, kafka, momus)]


def shown(value: Plain) -> str:
    """A value as the patterns of the allow-list see it."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return text if len(text) < LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def class_of(api: str, difference: Difference, late: bool) -> str:
    """API, path and, where they are codes or words, the two values: what counts as one kind of difference."""
    path, kafka, momus = difference
    if path.endswith("#"):
        text = f"{api} {path} {'more' if kafka > momus else 'fewer'} in Kafka"
    else:
        text = f"{api} {path} {_kind(path, kafka)} -> {_kind(path, momus)}"
    return text + (" (late)" if late else "")


def _kind(path: str, value: Plain) -> str:
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value) if path.endswith(("Code", "Source", "Type")) or -2 <= value <= 1 else "n"
    if isinstance(value, dict):
        return next((state for state in STATES if state in value), "object")
    if isinstance(value, list):
        return "list"
    return value if len(str(value)) < 24 else "text"


def error_codes(answer: Any) -> list[Any]:
    """Every error code of a normalised answer, and True where it was no answer but a wait or an end."""
    found: list[Any] = []
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name.endswith("ErrorCode") or name in ("closed", "parked"):
                found.append(value)
            else:
                found += error_codes(value)
    elif isinstance(answer, list):
        for value in answer:
            found += error_codes(value)
    return found


def is_answer(answer: Values) -> bool:
    """Whether there is a body: the broker has not closed the connection nor kept the client waiting."""
    return not any(state in answer for state in STATES)
