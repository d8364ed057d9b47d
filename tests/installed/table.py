"""The table of what an installed momus must do: every command with every option, run by `python tests/installed`.

table.txt has the scenes. Each is a folder of its own, with files, in which lines of a shell run one after the other.
`line &` starts what goes on running, and waits until it has printed what follows `# =>`, or `momus ready`; `stop` ends
the newest of these by SIGTERM, `stop all` all. `# => REGEX` after a line: what it must print, errors too. `# exit N`:
how it must end, 0 unless said. Ports are those of the documents: the lines run in a network of their own.

tests/tidy/test_installed.py fails for a command or an option that no line runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PROJECT = HERE / "project"
ONE_OF_A_KIND = "one of a kind"  # the scene that the compiled wheel, the binary and the image are asked too


class Scene(NamedTuple):
    """A folder with files, and the lines that run in it; `extras`: the environment has more than momus alone."""

    name: str
    lines: str
    files: dict[str, str]
    extras: bool = False


def _scenes() -> Iterator[Scene]:
    kit = {path.name: path.read_text() for path in PROJECT.glob("*.py")}
    row = "pytest -q -p no:cacheprovider -W ignore check_kit.py  # => 15 passed"
    yield Scene("the kit: each fixture and each verb", row, kit, extras=True)
    for part in re.split(r"^== ", (HERE / "table.txt").read_text(), flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        before, _, lines = body.partition("--\n") if body.startswith("--\n") else body.partition("\n--\n")
        sections = re.split(r"^-- ", before, flags=re.MULTILINE)[1:]
        files = {each.partition("\n")[0]: each.partition("\n")[2].rstrip("\n") + "\n" for each in sections}
        yield Scene(name.removesuffix(" [extras]"), lines, files, name.endswith(" [extras]"))


SCENES = tuple(_scenes())
ORDERS = next(each.files["orders.yaml"] for each in SCENES if "orders.yaml" in each.files)
