"""Reads files that fill a cluster, in the process of a test, and sends them: the broker may be on another machine."""

from __future__ import annotations

import os
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from momus.control import Control

    Loadable = str | os.PathLike[str] | Mapping[str, Any]

ENDINGS = (".json", ".toml", ".yaml", ".yml")


def load_into(control: Control, prefix: str, load: Loadable, if_present: str = "fail") -> dict[str, int]:
    """Fill a cluster with what a file, a folder of files or a value says. Returns what was loaded, in numbers.

    Errors: ControlError: what is wrong, by file, line and field; nothing was loaded. OSError: a file cannot be read.
    """
    if isinstance(load, Mapping):
        return dict(_ask(control, prefix, {"document": dict(load), "if_present": if_present})["loaded"])
    files = {name: _read(name) for name in documents(os.fspath(load))}
    if not files:
        return {}
    while True:
        answer = _ask(control, prefix, {"files": files, "if_present": if_present})
        if not answer["needs"]:
            return dict(answer["loaded"])
        files.update({name: _read(name) for name in answer["needs"]})


def documents(path: str) -> list[str]:
    """The files of a path: itself, or those in the folder, by name; hidden ones are left out."""
    if not os.path.isdir(path):
        return [path.replace(os.sep, "/")]
    names = sorted(each for each in os.listdir(path) if each.endswith(ENDINGS) and each[0] != ".")
    found = [os.path.join(path, each) for each in names]
    return [each.replace(os.sep, "/") for each in found if os.path.isfile(each)]


def loads_of_serve(load: Loadable) -> dict[str, Any]:
    """The same as a process that is started reads it."""
    if isinstance(load, Mapping):
        return {"value": dict(load)}
    return {"paths": [os.path.abspath(os.fspath(load))]}


def _ask(control: Control, prefix: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = control.ask("POST", f"{prefix}/load", body)
    assert isinstance(answer, dict)
    return answer


def _read(name: str) -> str:
    with open(name, encoding="utf-8") as file:
        return file.read()
