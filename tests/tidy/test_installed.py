"""What users install runs: packages are there before a command imports them, and the table of tests/installed runs each
command with each of its options."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from source_tree import REPOSITORY, imports, modules, text_of, tree_of

from momus.cli.main import COMMANDS, cli

sys.path.append(str(REPOSITORY / "tests" / "installed"))

from table import SCENES  # a folder that is run as a program

MAIN = "momus/cli/main.py"
PACKAGED = ("protocol", "storage", "broker", "pipeline")  # in the wheel, these are off the path
SCRIPTS = [path for path in sorted((REPOSITORY / "docker" / "bin").iterdir()) if "python" in text_of(path)[:40]]
BETWEEN = re.compile(r"[|;&<>()]+|then|do|done")


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Each command that does something, with the words before its options."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from commands(found, (*path, name))


def used() -> Iterator[tuple[str, ...]]:
    """The words after `momus` of each command in the table."""
    for scene in SCENES:
        for line in re.sub(r"\s# (?:exit|=>).*", "", scene.lines).splitlines():
            words: list[str] = []
            for word in [*shlex.split(re.sub(r"([|;&]+)(\s|$)", r" \1 ", line)), ";"]:
                if BETWEEN.fullmatch(word) or word == "--":
                    if "momus" in words:
                        yield tuple(words[words.index("momus") + 1 :])
                    words = [] if word != "--" else ["--"]
                else:
                    words.append(word)


def test_table_runs_each_command_with_each_option() -> None:
    known = dict(commands(cli))
    wanted = {(path, each.opts[-1]) for path, command in known.items() for each in command.params} | {((), "--version")}
    seen = {((), words[0]) for words in used() if words[:1] == ("--version",)}
    for words in used():
        path = next((words[:n] for n in (1, 2) if words[:n] in known), None)
        if path is not None:
            command = known[path]
            parser = command.make_parser(click.Context(command, **command.context_settings))
            _, _, order = parser.parse_args([word for word in words[len(path) :] if word != "--help"])
            seen |= {(path, each.opts[-1]) for each in order}
    missing = sorted(f"momus {' '.join(path)} {option}" for path, option in wanted - seen)
    assert missing == []


def test_packages_are_there_before_a_command_imports_them() -> None:
    """In a checkout they are on the path anyway, in an installed wheel only once `use_packages` has run: `cli` calls it
    after the module of a command is imported, and before any of its functions runs."""
    (group,) = (
        node for node in tree_of(REPOSITORY / MAIN).body if isinstance(node, ast.FunctionDef) and node.name == "cli"
    )
    assert ast.unparse(group.body[1]) == "launch.use_packages()"  # after the docstring
    known, seen, wrong = modules("momus"), set[str](), []
    ready = {"momus.cli.main", *(each.partition(":")[0] for each in COMMANDS.values())}
    while ready - seen:
        module = min(ready - seen)
        seen.add(module)
        found = imports(known[module], for_types=False, in_functions=False)
        wrong += [f"{module}:{line} imports {name}" for name, line in found if name.split(".")[0] in PACKAGED]
        ready |= {each for name, _ in found for each in (name, name.rpartition(".")[0]) if each in known}
    assert len(seen) > len(COMMANDS)
    assert wrong == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_of_the_image_imports_packages_only_when_they_are_there(script: Path) -> None:
    calls = [node.lineno for node in ast.walk(tree_of(script)) if ast.unparse(node) == "launch.use_packages()"]
    named = [line for name, line in imports(script) if name.startswith((*PACKAGED, "momus.client"))]
    assert not named or min(calls) < min(named)
