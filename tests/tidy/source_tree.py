"""The sources as tidy tests see them: modules by name, parsed once, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("protocol", "storage", "broker", "momus", "pipeline")


@cache
def modules(*packages: str) -> dict[str, Path]:
    """Module name -> file, of some packages."""
    return {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path
        for package in packages
        for path in sorted((REPOSITORY / package).rglob("*.py"))
    }


@cache
def files_of_tests() -> tuple[Path, ...]:
    return tuple(sorted((REPOSITORY / "tests").rglob("*.py")))


@cache
def every_file() -> tuple[Path, ...]:
    """Every Python file of the repository but those that are generated."""
    folders = (*PACKAGES, "tests", "tools", "examples", "benchmarks")
    found = sorted(path for folder in folders for path in (REPOSITORY / folder).rglob("*.py"))
    return tuple(path for path in found if not path.is_relative_to(REPOSITORY / "protocol" / "generated"))


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


@cache
def imports(path: Path, *, for_types: bool = True, in_functions: bool = True) -> tuple[tuple[str, int], ...]:
    """Names that a file imports, with their lines; `from broker import x` is broker.x. `for_types`: those for type
    checkers alone too."""
    return tuple(_imports(tree_of(path), for_types, in_functions))


def _imports(tree: ast.AST, for_types: bool, in_functions: bool) -> Iterator[tuple[str, int]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports are not used here"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not for_types:
            yield from _imports(ast.Module(node.orelse, []), for_types, in_functions)
        elif in_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(node, for_types, in_functions)


@cache
def graph(*packages: str) -> dict[str, frozenset[str]]:
    """Module -> the modules that it imports in any way: at its top, for type checkers, inside functions."""
    known = modules(*packages)
    found = {}
    for module, path in known.items():
        targets = set()
        for imported, _ in imports(path):
            name = imported
            while name and name not in known:
                name = name.rpartition(".")[0]
            if name and name != module:
                targets.add(name)
        found[module] = frozenset(targets)
    return found


def circles(edges: dict[str, frozenset[str]]) -> list[list[str]]:
    """The groups of modules that import one another in a circle (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in sorted(edges[module]):
            if target not in index:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            at = stack.index(module)
            if len(stack) > at + 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for module in edges:
        if module not in index:
            visit(module)
    return found
