"""The allow-list: which differences are known, and why.

A rule is a JSON object. `name` and `why` are for readers. `api`, `path`, `kafka`, `momus` are regular expressions that
must match whole; `when` is a Python expression over `v` (version), `b` (the step's body), `k` and `m` (the two
values), `K` and `M` (the two answers), `late` (the answer came with a later step), `steps` (the whole case),
`codes(answer)` and `dups(...)`. `stop`: the two brokers are in different states from here on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from differential.compare import Difference, error_codes, shown
from differential.plain import Values

BUILTINS = {"any": any, "all": all, "str": str, "len": len, "set": set, "isinstance": isinstance, "json": json}


class Rule(NamedTuple):
    """One known difference."""

    name: str
    api: re.Pattern[str]
    path: re.Pattern[str]
    kafka: re.Pattern[str]
    momus: re.Pattern[str]
    when: CodeType | None
    stop: bool
    is_open: bool  # a fault of momus that is known and not mended yet


def _rule(given: dict[str, Any]) -> Rule:
    def pattern(name: str) -> re.Pattern[str]:
        return re.compile(given.get(name, ".*"), re.DOTALL)

    when = compile(given["when"], given["name"], "eval") if given.get("when") else None
    return Rule(
        given["name"],
        pattern("api"),
        pattern("path"),
        pattern("kafka"),
        pattern("momus"),
        when,
        bool(given.get("stop")),
        given.get("kind") == "a",
    )


def named_twice(body: Values, topics: str, name: str, partitions: str, index: str | None = None) -> bool:
    """Whether a request names a partition of a topic more than once."""
    seen = set()
    for topic in body.get(topics) or []:
        for part in topic.get(partitions) or []:
            key = str(topic.get(name)), part if index is None else part.get(index)
            if key in seen:
                return True
            seen.add(key)
    return False


class AllowList:
    """Rules of some files, first match wins."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.rules = [_rule(given) for path in paths if path.exists() for given in json.loads(path.read_text())]

    def rule_for(
        self, step: Values, difference: Difference, kafka: Values, momus: Values, late: bool, steps: list[Values]
    ) -> Rule | None:
        """The rule that explains a difference; None: nothing does."""
        texts = (step["api"], difference.path, shown(difference.kafka), shown(difference.momus))
        for rule in self.rules:
            patterns = (rule.api, rule.path, rule.kafka, rule.momus)
            if all(pattern.fullmatch(text) for pattern, text in zip(patterns, texts, strict=True)) and self._holds(
                rule, step, difference, kafka, momus, late, steps
            ):
                return rule
        return None

    def _holds(
        self,
        rule: Rule,
        step: Values,
        difference: Difference,
        kafka: Values,
        momus: Values,
        late: bool,
        steps: list[Values],
    ) -> bool:
        if rule.when is None:
            return True
        names = {
            **BUILTINS,
            "v": step["v"],
            "b": step.get("b", {}),
            "k": difference.kafka,
            "m": difference.momus,
            "K": kafka,
            "M": momus,
            "late": late,
            "steps": steps,
            "codes": error_codes,
            "dups": named_twice,
        }
        try:
            return bool(eval(rule.when, names))
        except (TypeError, KeyError, AttributeError, IndexError, ValueError):
            return False  # the expression speaks of fields that this request does not have
