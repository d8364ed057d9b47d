"""The text of a schedule: at which request what happens.

    OffsetCommit[group=billing]#2 make_event expel_member before
    2/EndTxn[transactional_id=copier]#1 disconnect_on after + OffsetCommit[group=g]#1 make_event rebalance before

A step is the API, names that the request has, which one of these it is, counted from 1, and a fault with its words.
`2/`: in the second cluster that the test makes. ` + ` stands between two steps.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from momus.kit.words import unknown

# kind of a fault -> its words in their order; all have a default but the first
WORDS = {
    "inject_error": ("error",),
    "make_event": ("event", "when"),
    "disconnect_on": ("when",),
    "delay_on": ("ms", "when"),
    "deliver_twice": (),
    "kill_program": ("when",),
}
NAMES = ("client_id", "group", "topic", "transactional_id")
BETWEEN = " + "
_STEP = re.compile(r"(?:(\d+)/)?(\w+)(?:\[([^\]]*)\])?#(\d+) (\w+)((?: \S+)*)")
_QUOTED = str.maketrans({"%": "%25", ",": "%2C", "]": "%5D", " ": "%20", "+": "%2B", "\n": "%0A"})


class Step(NamedTuple):
    """One thing that happens. `names`: of the request, name -> value; `words`: of the fault."""

    api: str
    names: tuple[tuple[str, str], ...]
    number: int
    kind: str
    words: tuple[tuple[str, object], ...]
    cluster: int = 1

    def text(self) -> str:
        """As the module's docstring shows it."""
        place = f"{self.cluster}/" if self.cluster != 1 else ""
        named = ",".join(f"{name}={value.translate(_QUOTED)}" for name, value in self.names)
        words = " ".join(str(value) for _, value in self.words)
        return f"{place}{self.api}{f'[{named}]' if named else ''}#{self.number} {self.kind} {words}".rstrip()

    def fault(self, name: str, passed: int = 0) -> dict[str, object]:
        """The fault that makes it happen. `passed`: so many such requests came before it is set."""
        trigger = {"on_call": self.number - passed}
        return {
            "fault": "hold" if self.kind == "kill_program" else self.kind,  # whoever has started it kills it then
            "name": name,
            "api": self.api,
            **dict(self.names),
            **dict(self.words),
            "trigger": trigger,
        }


Schedule = tuple[Step, ...]


def text_of(schedule: Schedule) -> str:
    """All steps."""
    return BETWEEN.join(step.text() for step in schedule)


def parse(text: str) -> Schedule:
    """A schedule from its text. Errors: ValueError, which says what is wrong."""
    return tuple(_step(each.strip()) for each in text.split(BETWEEN))


def _step(text: str) -> Step:
    found = _STEP.fullmatch(text)
    if found is None:
        raise ValueError(
            f"no step of a schedule: {text!r}; write it as OffsetCommit[group=billing]#2 make_event rebalance before"
        )
    cluster, api, named, number, kind, rest = found.groups()
    if wrong := unknown("a schedule knows no fault", (kind,), WORDS):
        raise ValueError(wrong)
    given = rest.split()
    if len(given) > len(WORDS[kind]) or (WORDS[kind] and not given):
        raise ValueError(f"{kind} takes {' and '.join(WORDS[kind]) or 'no words'}, not {' '.join(given) or 'nothing'}")
    words = tuple(
        (name, int(value) if name == "ms" else value) for name, value in zip(WORDS[kind], given, strict=False)
    )
    names = []
    for pair in filter(None, (named or "").split(",")):
        name, equals, value = pair.partition("=")
        if not equals or name not in NAMES:
            raise ValueError(f"no name of a request: {pair!r}; there are {', '.join(NAMES)}, as group=billing")
        names.append((name, _unquoted(value)))
    if int(number) < 1:
        raise ValueError("requests are counted from 1")
    return Step(api, tuple(names), int(number), kind, words, int(cluster or 1))


def _unquoted(value: str) -> str:
    return re.sub(r"%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), value)
