"""Where momus answers otherwise than Confluent's registry on purpose: each by name, with the reason and how it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from answers import Answer
from steps import Step


class Reason(NamedTuple):
    """`ends`: the two registries hold other things from there on, so that the rest of a sequence says nothing."""

    name: str
    why: str
    applies: Callable[[Step, Answer, Answer], bool]
    ends: bool = True


def in_one_form(step: Step, theirs: Answer, ours: Answer) -> tuple[Any, Any]:
    """Both answers without what momus leaves out of an answer to a registration: the schema that was sent."""
    one, other = theirs.compared, ours.compared
    is_registered = step.method == "POST" and "/versions" in step.path and "compatibility" not in step.path
    if is_registered and isinstance(other[2], dict) and "schema" not in other[2] and one[0] == other[0] == 200:
        one = (*one[:2], {key: value for key, value in one[2].items() if key in ("id", "version", "guid")})
    return one, other


REASONS: Final[tuple[Reason, ...]] = ()
