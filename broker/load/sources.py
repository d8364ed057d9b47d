"""Goes through files that fill a cluster: all are read and checked, and only then is there a Load.

A file that another one names (`records_from`, `file`) is no document of its own, whatever its ending is.
"""

from __future__ import annotations

import hashlib
import posixpath
from typing import TYPE_CHECKING, Any

from broker.load.building import Builder
from broker.load.items import Load
from broker.load.problems import LoadError, Problem
from broker.load.text_errors import TextError, check_depth
from broker.load.texts import Text, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    ReadFile = Callable[[str], str]


class MissingFileError(OSError):
    """A file that a document names is not there."""


def read_documents(documents: Sequence[tuple[str, str]], read_file: ReadFile) -> Load:
    """What documents say together.

    documents   (name, text), in their order.
    read_file   the text of a file that one of them names, by its name joined to the folder of that document.
    Errors:     LoadError: all that is wrong.
    """
    digest, problems = hashlib.sha256(), list[Problem]()
    read: list[tuple[str, Text | LoadError]] = []
    for name, text in documents:
        try:
            read.append((name, read_text(name, text)))
        except LoadError as error:
            read.append((name, error))
    named = {each for name, text in read if isinstance(text, Text) for each in _named(name, text.value)}
    load = Load()

    def fetch(document: str, name: str) -> tuple[str, str]:
        path = joined(document, name)
        text = read_file(path)
        _take(digest, path, text)
        return path, text

    builder = Builder(load, fetch)
    for (name, source), (_, found) in zip(documents, read, strict=True):
        if posixpath.normpath(name) in named:
            continue
        load.files.append(name)
        _take(digest, name, source)
        if isinstance(found, LoadError):
            problems += found.problems
        elif found.value is not None:  # an empty file
            builder.add(found)
    problems += builder.problems
    if problems:
        raise LoadError(problems)
    load.digest = digest.hexdigest()
    return load


def read_value(name: str, value: Any) -> Load:
    """What a value says that is not from a file. Errors: LoadError."""
    try:
        check_depth(value)
    except TextError as error:
        raise LoadError([Problem(name, 0, "", str(error))]) from None
    load = Load()
    load.files.append(name)

    def fetch(document: str, path: str) -> tuple[str, str]:
        raise MissingFileError(f"{path} is beside no file: what is loaded has none")

    builder = Builder(load, fetch)
    text = Text(name, value, dict)
    builder.add(text)
    if builder.problems:
        raise LoadError([each._replace(line=0) for each in builder.problems])
    return load


def joined(document: str, name: str) -> str:
    """The name of a file beside a document."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(document), name))


def names_beside(document: str, text: str) -> list[str]:
    """The files that a document names, if it can be read."""
    try:
        return _named(document, read_text(document, text).value)
    except LoadError:
        return []


def _take(digest: Any, name: str, text: str) -> None:
    data = text.encode(errors="surrogatepass")
    digest.update(f"{posixpath.basename(name)} {len(data)}\n".encode(errors="surrogatepass"))
    digest.update(data)


def _named(document: str, value: Any) -> list[str]:
    found = []
    for part, field in (("topics", "records_from"), ("schemas", "file")):
        rows = value.get(part) if isinstance(value, dict) else None
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get(field), str):
                found.append(joined(document, row[field]))
    return found
