"""Writes SUPPORTED.md from the routing table and from docstrings: `python -m broker.supported > SUPPORTED.md`.

The header block of a handler module has a line for each API, "OffsetCommit  v9: member epochs", and every module of the
broker may have paragraphs that begin with one of LABELS, all with further lines indented. Sources are read, not
imported.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from broker.config.key_effects import OBEYED, WITHOUT_EFFECT
from broker.config.refused_keys import REFUSED
from broker.handlers import ABSENT, make_routes
from protocol.api import ApiKey, api_name, request_class

LABELS = ("Beyond Kafka", "Differs", "Absent")
_BROKER = Path(__file__).parent
_BLOCK = re.compile(r"^([A-Z]\w*)  +(\S.*(?:\n .*)*)|^([A-Z][\w ]*):\s+(\S.*(?:\n .*)*)", re.MULTILINE)

HEAD = """\
# What is supported

Made from the routing table and the handlers' header blocks by `python -m broker.supported`; do not edit. The reference
is Apache Kafka 4.4.0.

## APIs

| key | API | versions | flexible since | notes |
|---|---|---|---|---|
"""

_SETTINGS = """
## Settings of brokers and topics

All keys of Apache Kafka 4.4.0, in three classes. *obeyed*: with a test that fails when the key is ignored. *no effect*:
stored, described, and named once at a start that sets it to something else than the default. *refused*: asks for
security, a limit or a Java class that this broker does not have; a value that asks for it makes `momus serve` exit with
code 2, and a change while running is an error.

| key | class | what to do |
|---|---|---|
"""

_NOT_MET = (
    "ZooKeeper's layout, which the proposal replaces; writes that scale over several machines; the loss of a machine."
)


@cache
def blocks() -> tuple[tuple[str, str], ...]:
    """(label or API, text in one line) of all blocks in the broker's module docstrings, in the order of the paths."""
    return tuple(_blocks())


def _blocks() -> Iterator[tuple[str, str]]:
    for path in sorted(_BROKER.rglob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        for found in _BLOCK.finditer(text.partition("\n")[2]):
            api, note, label, paragraph = found.groups()
            yield api or label, " ".join((note or paragraph).split())


def notes_of_apis() -> dict[str, str]:
    """What header blocks say of each API."""
    names = {api_name(key) for key in ApiKey}
    return {label: text for label, text in blocks() if label in names}


def supported() -> str:
    """The whole page."""
    routes = sorted(make_routes(), key=lambda route: route.api_key)
    notes = notes_of_apis()
    rows = []
    for route in routes:
        name = api_name(route.api_key)
        flexible = request_class(route.api_key).FLEXIBLE_SINCE
        since = flexible if flexible <= route.max_version else "-"
        versions = f"{route.min_version}-{route.max_version}"
        rows.append(f"| {int(route.api_key)} | {name} | {versions} | {since} | {notes[name]} |\n")
    absent = [f"| {', '.join(f'{api_name(key)} ({int(key)})' for key in keys)} | {why} |\n" for keys, why in ABSENT]
    return "".join(
        [
            HEAD,
            *rows,
            "\n## Beyond Kafka\n\n",
            *_items("Beyond Kafka"),
            "\n## Different from Kafka\n\n",
            *_items("Differs"),
            "\n## Absent\n\n",
            *_items("Absent"),
            "\n| API | why absent |\n|---|---|\n",
            *absent,
            _SETTINGS,
            *_settings(),
            f"\n## Not met of the offset management proposal\n\n{_NOT_MET}\n",
        ]
    )


def _settings() -> Iterator[str]:
    for key in sorted({*OBEYED, *WITHOUT_EFFECT, *REFUSED}):
        if key in OBEYED:
            yield f"| {key} | obeyed | |\n"
        else:
            advice = REFUSED[key][1] if key in REFUSED else ""
            yield f"| {key} | {'refused' if key in REFUSED else 'no effect'} | {advice} |\n"


def _items(label: str) -> list[str]:
    return [f"* {text[0].upper()}{text[1:]}\n" for found, text in blocks() if found == label]


if __name__ == "__main__":
    sys.stdout.write(supported())
