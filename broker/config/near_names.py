"""Which setting an unknown name may stand for: near in its letters, or the topic's or broker's twin of it."""

from __future__ import annotations

from collections.abc import Collection

from broker.config.settings import TOPIC_KEYS

NEAR_ENOUGH = 0.75  # of difflib's ratio: one wrong letter in four


def did_you_mean(key: str, known: Collection[str]) -> str:
    """A question to end a sentence with, " Did you mean num.partitions?"; "" where nothing is near."""
    import difflib  # 3 ms

    spelled = key.strip().lower().replace("_", ".")
    twin = _twin(spelled)
    if twin in known:
        return f" Did you mean {twin}?"
    if spelled in known:
        return f" Did you mean {spelled}?"
    near = difflib.get_close_matches(spelled, known, 1, NEAR_ENOUGH)
    return f" Did you mean {near[0]}?" if near else ""


def _twin(key: str) -> str | None:
    """The broker's default of a topic's setting, or the topic's setting that has this broker's as its default."""
    if key in TOPIC_KEYS:
        return TOPIC_KEYS[key][4]
    return next((name for name, row in TOPIC_KEYS.items() if row[4] == key), None)
