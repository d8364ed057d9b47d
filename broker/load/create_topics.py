"""Topics as the image of wurstmeister takes them: KAFKA_CREATE_TOPICS=orders:3:1,prices:1:1:compact."""

from __future__ import annotations

from typing import Final

from broker.load.problems import LoadError, Problem

VARIABLE: Final = "KAFKA_CREATE_TOPICS"
FORM: Final = "it is name:partitions:replicas or name:partitions:replicas:cleanup.policy"


def topics_of(text: str, separator: str | None = None) -> dict[str, object]:
    """What a file would say. `separator`: between topics, a comma unless given. Errors: LoadError."""
    topics = []
    for word in (each.strip() for each in text.split(separator or ",")):
        if word:
            topics.append(_topic(word))
    return {"topics": topics}


def _topic(word: str) -> dict[str, object]:
    name, *rest = (part.strip() for part in word.split(":"))
    if not name or not 2 <= len(rest) <= 3 or not all(part.isascii() and part.isdigit() for part in rest[:2]):
        raise LoadError([Problem(VARIABLE, 0, word, FORM)])
    config = {"cleanup.policy": rest[2]} if rest[2:] and rest[2] else {}
    partitions, replicas = int(rest[0]), int(rest[1])
    return {"name": name, "partitions": partitions, "replicas": replicas, "config": config}
