"""Kafka settings as people already write them: server.properties, KEY=VALUE, and the environment of Kafka's
Docker image."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# Variables that Kafka's own scripts and images read and that are no broker settings.
_NOT_SETTINGS = frozenset(
    f"KAFKA_{name}"
    for name in (
        "CLUSTER_ID",
        "DEBUG",
        "ENABLE_KRAFT",
        "GC_LOG_OPTS",
        "HEAP_OPTS",
        "HOME",
        "JMX_HOSTNAME",
        "JMX_OPTS",
        "JMX_PORT",
        "JVM_PERFORMANCE_OPTS",
        "KRAFT_CLUSTER_ID",
        "LOG4J_LOGGERS",
        "LOG4J_OPTS",
        "LOG4J_ROOT_LOGLEVEL",
        "OPTS",
        "TOOLS_LOG4J_LOGLEVEL",
        "VERSION",
    )
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.?))", re.DOTALL)
# Of Bitnami's, Apache's and Confluent's images; the last one wins.
_CLUSTER_ID = ("KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CLUSTER_ID", "CLUSTER_ID")


def parse_properties(text: str) -> dict[str, str]:
    """The settings of a Java properties file.

    Keys end at `=`, `:` or white space; `#` and `!` open comments; a backslash at a line's end continues it
    and before any other character stands for that character, but `u` and four digits for that unit of UTF-16.
    """
    settings: dict[str, str] = {}
    lines = iter(text.splitlines())
    for raw in lines:
        line = raw.lstrip()
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip()
        key, value = _split(line)
        settings[key] = value.rstrip()
    return settings


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """The settings given as KEY=VALUE; ValueError names the one that is not."""
    settings: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{assignment!r} is not KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


def parse_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in `KAFKA_...` variables: `_` stands for `.`, `__` for `_`, `___` for `-`, as in Kafka's
    Docker image. `KAFKA_CFG_...` are Bitnami's, and win. The cluster's id may be in a variable of its own."""
    settings = {}
    for prefix in ("KAFKA_", "KAFKA_CFG_"):
        for name, value in environment.items():
            if name.startswith(prefix) and name not in _NOT_SETTINGS:
                settings[_key(name.removeprefix(prefix))] = value
    settings = {key: value for key, value in settings.items() if not key.startswith("cfg.")}
    for name in _CLUSTER_ID:
        if environment.get(name):
            settings["cluster.id"] = environment[name]
    return settings


def _key(name: str) -> str:
    return name.lower().replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    key = []
    i = 0
    while i < len(line) and line[i] not in "=: \t\f":
        i += line[i] == "\\"
        key.append(line[i : i + 1])
        i += 1
    rest = line[i:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], rest)
    return "".join(key), text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
