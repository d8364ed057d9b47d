"""What the wheel brings that others have written and that is no package of its own, for the lists that a release makes.

Such a file begins with a comment: name, version, source, and its licence as a whole (broker/shell/page/static/
uplot.js). tests/tidy/test_vendored.py says which file has another one's copyright and no such comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("broker", "momus", "protocol", "storage", "pipeline")
HEAD = re.compile(
    r"/\*\n(?P<name>\S+) (?P<version>\S+) \((?P<source>[^)]*)\)[^\n]*Its licence:\n\n(?P<licence>.*?)\*/", re.DOTALL
)
TITLE = re.compile(r"The (?P<id>\S+) License|(?P<other>Apache License)")
COPYRIGHT = re.compile(rb"copyright \(c\)|permission is hereby granted|licensed under the", re.IGNORECASE)


class Vendored(NamedTuple):
    """One of them. `licence` is its text, `kind` the first words of it."""

    path: Path
    name: str
    version: str
    source: str
    kind: str
    licence: str


def find(root: Path) -> Iterator[Vendored]:
    """All of a checkout. Errors: ValueError: a file has a licence in it, and does not say whose."""
    for path in sorted(each for package in PACKAGES for each in (root / package).rglob("*") if each.is_file()):
        data = path.read_bytes() if path.suffix not in (".pyc", ".so") else b""
        if COPYRIGHT.search(data) is None:
            continue
        head = HEAD.match(data.decode())
        if head is None:
            raise ValueError(
                f"{path.relative_to(root)} has a licence in it, and does not begin as tools/vendored.py says"
            )
        title = TITLE.search(head["licence"])
        kind = "" if title is None else title["id"] or title["other"]
        yield Vendored(path, head["name"], head["version"], head["source"], kind, head["licence"].strip())


def add(root: Path, licences: Path, sbom: Path) -> None:
    """Add those of a checkout to the two lists, which are there."""
    found = list(find(root))
    with licences.open("a") as file:
        for each in found:
            file.write(f"\n{each.name}\n{each.version}\n{each.kind} License\n{each.licence}\n")
    bill = json.loads(sbom.read_text())
    for each in found:
        licence = {"license": {"name": f"{each.kind} License", "text": {"content": each.licence}}}
        bill.setdefault("components", []).append(
            {
                "type": "library",
                "bom-ref": f"{each.name}=={each.version}",
                "name": each.name,
                "version": each.version,
                "description": f"{each.source}; in {each.path.relative_to(root)}",
                "licenses": [licence],
            }
        )
    sbom.write_text(json.dumps(bill, indent=2))
