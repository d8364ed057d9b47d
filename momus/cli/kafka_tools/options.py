"""The options of Kafka's tools as Kafka reads them, and the settings of clients that some of them name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import click

from momus.client.connect_settings import SETTINGS
from momus.client.properties import parse_properties
from momus.kit.visible import visible


class Options(argparse.ArgumentParser):
    """Options of one tool. What is wrong ends it with a sentence and exit code 1, as Kafka's tools do."""

    def __init__(self, tool: str) -> None:
        super().__init__(prog=tool, add_help=False, usage=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        """End the tool."""
        sys.exit(f"{self.prog}: {message}")

    def text(self, *names: str, **more: Any) -> None:
        """Options with a value."""
        for name in names:
            self.add_argument(name, **more)

    def flags(self, *names: str) -> None:
        """Options without a value."""
        for name in names:
            self.add_argument(name, action="store_true")

    def repeated(self, *names: str) -> None:
        """Options that may come several times."""
        for name in names:
            self.add_argument(name, action="append", default=[])

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """What was given. `-topic` is `--topic`, as for Kafka; one that is not here ends the tool by its name."""
        known = {name for action in self._actions for name in action.option_strings}
        given, others = self.parse_known_args(
            [f"-{word}" if f"-{word.split('=')[0]}" in known else word for word in words]
        )
        if others:
            self.error(f"{others[0]} is not a recognized option here")
        return given


def say(*lines: str, err: bool = False) -> None:
    """Print lines. What a terminal obeys is not let through, but for tabs, which these tools have between columns."""
    for line in lines:
        click.echo("\t".join(map(visible, line.split("\t"))), err=err)


def bootstrap_options(options: Options) -> None:
    """Where the cluster is, and a file of settings for the way there."""
    options.text("--bootstrap-server", "--command-config")


def one_action(options: Options, given: argparse.Namespace, *actions: str) -> str:
    """The one action that was asked for, without its dashes. Errors: ends the tool."""
    chosen = [action for action in actions if getattr(given, action[2:].replace("-", "_"))]
    if len(chosen) != 1:
        options.error(f"Command must include exactly one action: {', '.join(actions)}")
    return chosen[0][2:]


def without_effect(options: Options, given: argparse.Namespace, names: Iterable[str]) -> None:
    """Say which options of Kafka's that were given change nothing here."""
    said = [name for name in names if getattr(given, name[2:].replace("-", "_")) is not None]
    if said:
        say(f"{options.prog}: no effect here: {', '.join(said)}", err=True)


def use_settings(options: Options, files: Iterable[str | None], words: Iterable[str] = ()) -> dict[str, str]:
    """Connect by these settings, files first; returns them all. Errors: ends the tool."""
    found: dict[str, str] = {}
    for path in files:
        if path:
            try:
                with open(path, encoding="utf-8") as file:
                    found.update(parse_properties(file.read()))
            except (OSError, ValueError) as error:
                options.error(f"{path}: {getattr(error, 'strerror', None) or error}")
    found.update(assignments(options, words))
    SETTINGS.update(found)
    return found


def assignments(options: Options, words: Iterable[str]) -> dict[str, str]:
    """KEY=VALUE words. A value keeps its spaces: it may be what stands between key and value. Errors: ends the tool."""
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            options.error(f"{word!r} is not KEY=VALUE")
        found[key.strip()] = value
    return found
