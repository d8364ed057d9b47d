"""Which setting an unknown name may stand for: near in its letters, or the topic's or broker's twin of it."""

from __future__ import annotations

from collections.abc import Collection

from broker.config.settings import TOPIC_KEYS

NEAR_ENOUGH = 0.75  # of difflib's ratio: one wrong letter in four


def did_you_mean(key: str, known: Collection[str]) -> str:
    """A question to end a sentence with, " Did you mean num.partitions?"; "" where nothing is near."""
    spelled = key.strip().lower().replace("_", ".")
    twin = _twin(spelled)
    if twin in known:
        return f" Did you mean {twin}?"
    if spelled in known:
        return f" Did you mean {spelled}?"
    return near(spelled, known)


def near(name: str, known: Collection[str]) -> str:
    """The same for a name that is no setting."""
    import difflib  # 3 ms

    found = difflib.get_close_matches(name, known, 1, NEAR_ENOUGH)
    return f" Did you mean {found[0]}?" if found else ""


def _twin(key: str) -> str | None:
    """The broker's default of a topic's setting, or the topic's setting that has this broker's as its default."""
    if key in TOPIC_KEYS:
        return TOPIC_KEYS[key][4]
    return next((name for name, row in TOPIC_KEYS.items() if row[4] == key), None)
