"""What commands print. Names in it may be anybody's choice, so no character that a terminal obeys is let through."""

from __future__ import annotations

import click

from momus.kit.visible import visible, visible_json


def say(line: str, *, err: bool = False) -> None:
    """Print one line."""
    click.echo(visible(line), err=err)


def say_json(value: object, indent: int | None = 2) -> None:
    """Print a JSON document; without `indent` on one line."""
    import json  # 1 ms

    click.echo(visible_json(json.dumps(value, indent=indent, ensure_ascii=False)))
