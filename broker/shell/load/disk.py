"""Reads files that fill a cluster from the disk: one, or those of a folder in order of their names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker.load.problems import LoadError, Problem
from broker.load.sources import read_documents
from broker.load.texts import ENDINGS

if TYPE_CHECKING:
    from broker.load.items import Load

MOST_BYTES: Final = 512 << 20  # of a file; its records are all in memory before the first is written


def read_paths(paths: list[str]) -> Load:
    """What files say together.

    Errors: LoadError: what is wrong, also that a file cannot be read.
    """
    documents, problems = [], list[Problem]()
    for path in paths:
        try:
            for each in _documents(Path(path)):
                documents.append((str(each), _text(each)))
        except OSError as error:
            problems.append(Problem(path, 0, "", str(error.strerror or error)))
    if problems:
        raise LoadError(problems)
    return read_documents(documents, lambda name: _text(Path(name)))


def _documents(path: Path) -> list[Path]:
    """The files of a path. Hidden ones are left out, as those that Kubernetes keeps beside a ConfigMap's."""
    if not path.is_dir():
        return [path]
    inside = sorted(path.iterdir(), key=lambda each: each.name)
    return [each for each in inside if each.suffix in ENDINGS and each.name[0] != "." and each.is_file()]


def _text(path: Path) -> str:
    """Errors: OSError: it cannot be read, or has no end."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(f"{path} is larger than {MOST_BYTES >> 20} MB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise OSError(f"{path} is not UTF-8, at byte {error.start}") from None
