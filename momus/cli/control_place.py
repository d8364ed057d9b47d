"""Which control endpoint a command means: --control, -d DIR, MOMUS_CONTROL, or what was started in this folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.control import Control

F = TypeVar("F", bound=Callable[..., object])

FILE = ".momus-control"  # of a data directory: written by `momus serve --control`
DEFAULT_DATA_DIR = "./data"
START_ONE = "`momus serve --control 127.0.0.1:9090` starts one"


class Endpoint:
    """A control endpoint as a command was told of it.

    source   the words by which it was found: "--control", "MOMUS_CONTROL", or the file.
    """

    def __init__(self, address: str, source: str, token: str | None, data_dir: str | None = None) -> None:
        if not re.fullmatch(r".+:\d{1,5}", address):
            raise click.BadParameter(f"{address!r} is not HOST:PORT", param_hint=source)
        self.address = address
        self._source = source
        self._token = token
        self._data_dir = data_dir

    def connect(self) -> Control:
        """Errors: ControlError: nothing answers there, or what answers is not the broker of the data directory."""
        from momus.control import Control, ControlError  # 25 ms

        control = Control(self.address, self._token)
        control.death = self._silence
        if self._data_dir is not None and self._is_of_another(control):
            raise ControlError(
                f"{self._source} names {self.address}, where the broker of another directory answers: the process that"
                f" wrote the file has ended; `momus serve --control {self.address} -d {self._data_dir}` starts one"
            )
        return control

    def _silence(self) -> str:
        start = f"momus serve --control {self.address}"
        if self._data_dir is None:
            return f"nothing answers at {self.address}, which {self._source} names; `{start}` starts a broker there"
        return (
            f"nothing answers at {self.address}, which {self._source} names: its process has ended;"
            f" `{start} -d {self._data_dir}` starts one"
        )

    def _is_of_another(self, control: Control) -> bool:
        """Whether what answers at the address has another cluster than the directory: the port has a new owner."""
        answer: Any = control.ask("GET", "/_admin/clusters/default")
        with open(os.path.join(self._data_dir or "", "meta.properties"), encoding="utf-8") as file:
            return f"cluster.id={answer['cluster_id']}" not in file.read().splitlines()


def find_endpoint(control: str | None, data_dir: str | None) -> Endpoint:
    """The endpoint that options or environment name. Errors: UsageError: none does."""
    if control is not None and data_dir is not None:
        raise click.UsageError("give --control or --data-dir, not both")
    token = os.environ.get("MOMUS_CONTROL_TOKEN") or None
    if control is not None:
        return Endpoint(control, "--control", token)
    if data_dir is not None:
        return _of_directory(data_dir)
    named = os.environ.get("MOMUS_CONTROL", "")
    if named and not named.endswith(":0"):  # as `serve` may be told: which port it got is in the file
        return Endpoint(named, "MOMUS_CONTROL", token)
    usual = os.environ.get("MOMUS_DATA_DIR") or DEFAULT_DATA_DIR
    if os.path.exists(os.path.join(usual, FILE)):
        return _of_directory(usual)
    raise click.UsageError(
        "which broker? Name its control endpoint by --control HOST:PORT or the variable MOMUS_CONTROL, or its data"
        f" directory by -d DIR; there is no {os.path.join(usual, FILE)} either. {START_ONE}."
    )


def _of_directory(data_dir: str) -> Endpoint:
    path = os.path.join(data_dir, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return Endpoint(found["address"], path, found["token"], data_dir)
    except FileNotFoundError:
        raise click.UsageError(
            f"there is no {path}: no broker with a control endpoint runs on this directory (one with --flush memory"
            f" writes no file); `momus serve --control 127.0.0.1:0 -d {data_dir}` starts one"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{path} is damaged: {error}") from None


def endpoint(command: F) -> F:
    """Give a command its options --control and --data-dir, and the Endpoint that they mean as `address`."""

    @wraps(command)
    def run(*args: Any, control: str | None, data_dir: str | None, **words: Any) -> object:
        return command(*args, address=find_endpoint(control, data_dir), **words)

    with_directory = click.option(
        "-d",
        "--data-dir",
        type=click.Path(file_okay=False),
        help="The broker's data directory, in which `momus serve --control` writes where its endpoint is."
        f"  [default: {DEFAULT_DATA_DIR}]",
    )
    with_address = click.option(
        "--control",
        metavar="HOST:PORT",
        help="The endpoint, as `momus serve --control` names it in its second line.  [env var: MOMUS_CONTROL]",
    )
    decorated: F = with_address(with_directory(run))  # type: ignore[assignment]  # click keeps what it decorates
    return decorated
