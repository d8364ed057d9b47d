"""Writes momus/aio.pyi: the types of the twins that are awaited, from the handles' own signatures and docstrings.

.venv/bin/python tools/aio_stub.py            # writes it
.venv/bin/python tools/aio_stub.py --check    # exit code 1 where it is not fresh
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

MOMUS = Path(__file__).parent.parent / "momus"
STUB = MOMUS / "aio.pyi"

# The twin's name -> (its base, the classes whose calls it has, each with its file)
TWINS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "AsyncClock": ("", [("control.py", "Clock")]),
    "AsyncFault": ("", [("faults.py", "Fault")]),
    "AsyncFaults": ("", [("faults.py", "Faults")]),
    "AsyncJournal": ("", [("journal.py", "Journal")]),
    "AsyncSnapshot": ("", [("cluster.py", "Snapshot")]),
    "AsyncUsers": ("", [("security.py", "Users")]),
    "AsyncAcls": ("", [("security.py", "Acls")]),
    "AsyncCertificates": ("", [("security.py", "Certificates")]),
    "AsyncHandle": (
        "",
        [
            *[("kit/group_verbs.py", "GroupVerbs"), ("kit/node_verbs.py", "NodeVerbs")],
            *[("handle.py", "ClusterHandle"), ("cluster.py", "Forkable")],
        ],
    ),
    "AsyncCluster": ("AsyncHandle", [("cluster.py", "Cluster")]),
    "AsyncBroker": ("AsyncHandle", [("kit/process.py", "Broker")]),
}
HANDLES = {"Clock", "Fault", "Faults", "Journal", "Snapshot", "Users", "Acls", "Certificates", "Cluster"}
ASKS = {"calls", "hits", "held", "registry_url"}
# Of the kit itself, or in a process that has ended: no call of a test's.
LEFT_OUT = {
    *("aio", "control", "asked", "counted", "begin_anew", "end", "forget", "follow", "look", "newest", "near"),
    *("cluster", "settle", "left", "unverified", "found", "death", "known_control", "log_path"),
}
HEAD = '''"""Types of momus/aio.py. Made by tools/aio_stub.py from the handles; do not edit."""

from __future__ import annotations

import builtins
from collections.abc import Coroutine, Iterable, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, Unpack

from momus.journal import DEFAULT_MB, MOST
from momus.kit.upstream.cluster_name import ClusterName
from momus.kit.load_files import Loadable
from momus.kit.typed import (
    ApiFilters,
    ClientFilters,
    DiskFilters,
    Flush,
    GroupState,
    Headers,
    Isolation,
    JournalEntry,
    JournalFilters,
    LetterFilters,
    RegistryFilters,
    RequestFilters,
    Security,
    Units,
    Value,
    EventWord,
    When,
    WhenOrMiddle,
)
from momus.record import Record

class Twin:
    target: Any
    def __init__(self, target: Any) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
'''


class _Renamed(ast.NodeTransformer):
    """Annotations with the twins in place of handles, and without what a stub cannot see."""

    def visit_Name(self, node: ast.Name) -> ast.AST:  # as ast calls it
        if node.id in HANDLES:
            return ast.Name(f"Async{node.id}")
        return ast.Name("builtins.list") if node.id == "list" else node


def _annotation(node: ast.expr | None) -> ast.expr | None:
    found: ast.expr | None = None if node is None else _Renamed().visit(node)
    return found


def _is_property(function: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "property" for each in function.decorator_list)


def _is_call(function: ast.FunctionDef) -> bool:
    """Whether a test may await it: one that is always refused is none."""
    is_refused = isinstance(function.returns, ast.Name) and function.returns.id == "NoReturn"
    return not is_refused and function.name not in LEFT_OUT


def _method(function: ast.FunctionDef) -> str:
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = _annotation(each.annotation)
    returns = _annotation(function.returns)
    assert returns is not None, function.name
    said = ast.get_docstring(function, clean=False)
    text = f'        """{said}"""\n' if said else ""
    if _is_property(function):
        kind = f"Coroutine[Any, Any, {ast.unparse(returns)}]" if function.name in ASKS else ast.unparse(returns)
        return f"    @property\n    def {function.name}(self) -> {kind}:\n{text or '        ...'}\n"
    head = f"    async def {function.name}({ast.unparse(arguments)}) -> {ast.unparse(returns)}:\n"
    return f"{head}{text or '        ...'}\n"


def _class(name: str, base: str, sources: list[tuple[str, str]]) -> str:
    said, members = "", dict[str, str]()
    for file, source in sources:
        tree = ast.parse((MOMUS / file).read_text())
        (found,) = (each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == source)
        said = ast.get_docstring(found, clean=False) or said
        for each in found.body:
            if isinstance(each, ast.FunctionDef) and not each.name.startswith("_") and _is_call(each):
                members[each.name] = _method(each)
    attributes = {"AsyncFault": "    name: str\n", "AsyncCluster": "    name: str\n    cluster_id: str\n"}.get(name, "")
    text = f'    """{said}"""\n\n' if said else ""
    return f"class {name}({base or 'Twin'}):\n{text}{attributes}" + "".join(members.values())


def stub() -> str:
    """The whole text, formatted."""
    text = HEAD + "\n" + "\n".join(_class(name, *parts) for name, parts in TWINS.items())
    ruff = [str(Path(sys.executable).parent / "ruff")]
    options = ["--stdin-filename", str(STUB), "-"]
    sorted_ = subprocess.run(
        [*ruff, "check", "--quiet", "--fix-only", *options], input=text, capture_output=True, text=True, check=True
    ).stdout
    return subprocess.run(
        [*ruff, "format", "--quiet", *options], input=sorted_, capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    made = stub()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if STUB.exists() and STUB.read_text() == made else f"{STUB} is not fresh: run tools/aio_stub.py")
    STUB.write_text(made)
