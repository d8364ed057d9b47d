"""`momus decode`: frames given as hex or in a file, shown as trees of fields with their byte positions."""

from __future__ import annotations

import os
import re
import sys

import click

from momus.cli.commands import _json
from momus.cli.say import say_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protocol.tree import Tree

_HEX = re.compile(rb"[0-9A-Fa-f\s:]*")
SIZE_BYTES = 4


@click.command()
@click.argument("frames", nargs=-1, required=True, metavar="HEX|FILE|-")
@click.option(
    "--response",
    metavar="API:VERSION",
    help="The frames are responses of this API, by key or name, in this version; without it, requests.",
)
@click.option(
    "--sized/--bare",
    default=None,
    help="Whether four bytes of size stand before each frame; found out unless told.",
)
@_json
def decode(frames: tuple[str, ...], response: str | None, sized: bool | None, as_json: bool) -> None:
    """Show the fields of Kafka requests or responses, and where a malformed one goes wrong.

    Takes hex, with or without spaces, or a file of raw bytes or hex; one frame, or several that follow one another,
    each after its size. Positions count from the first byte after the size. Exits 1 if a frame is malformed.
    """
    from protocol import tree as trees

    data = _input(frames)
    api = None if response is None else _api(response)
    if sized is None:
        sized = _is_sized(data, is_request=api is None)
    found = _trees(data, sized, api)
    if as_json:
        say_json([{"position": position, **trees.as_json(tree)} for position, tree in found])
    else:
        for number, (position, tree) in enumerate(found, 1):
            if number > 1:
                click.echo()
            if len(found) > 1:
                click.echo(f"frame {number}, at byte {position} of the input")
            for line in trees.text_lines(tree):
                click.echo(line)
    if any(tree.fault is not None for _, tree in found):
        raise SystemExit(1)


def _input(frames: tuple[str, ...]) -> bytes:
    """The bytes that the arguments stand for. Errors: BadParameter: neither hex nor a file."""
    if frames == ("-",):
        data = sys.stdin.buffer.read()
    elif len(frames) == 1 and os.path.isfile(frames[0]):
        with open(frames[0], "rb") as stream:
            data = stream.read()
    else:
        data = " ".join(frames).encode()
        if not _HEX.fullmatch(data):
            raise click.BadParameter(f"{frames[0]!r} is neither hex nor a file", param_hint="HEX|FILE|-")
    if not _HEX.fullmatch(data):
        return data
    digits = re.sub(rb"[\s:]", b"", data)
    if len(digits) % 2:
        raise click.BadParameter(f"{len(digits)} hex digits are not whole bytes", param_hint="HEX|FILE|-")
    return bytes.fromhex(digits.decode())


def _api(text: str) -> tuple[int, int]:
    """(key, version) of "8:3", "OffsetCommit:3" or "OFFSET_COMMIT:3". Errors: BadParameter."""
    from protocol.api import ApiKey

    name, colon, version = text.partition(":")
    keys = {each.name.replace("_", ""): int(each) for each in ApiKey}
    key = int(name) if name.isdecimal() else keys.get(name.replace("_", "").upper())
    if key is None or not colon or not version.isdecimal():
        raise click.BadParameter(f"{text!r} is not API:VERSION", param_hint="--response")
    return key, int(version)


def _is_sized(data: bytes, *, is_request: bool) -> bool:
    """Whether the bytes are frames after their sizes: these lead exactly to the end, or no request begins at once."""
    position = 0
    while position + SIZE_BYTES <= len(data):
        size = int.from_bytes(data[position : position + SIZE_BYTES], "big", signed=True)
        if size < 0:
            break
        position += SIZE_BYTES + size
    if position == len(data):
        return True
    return is_request and not _begins_a_request(data) and _begins_a_request(data[SIZE_BYTES:])


def _begins_a_request(data: bytes) -> bool:
    from protocol.api import is_declared, request_class

    key, version = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:4], "big")
    if not is_declared(key):
        return False
    cls = request_class(key)
    return cls.MIN_VERSION <= version <= cls.MAX_VERSION


def _trees(data: bytes, sized: bool, api: tuple[int, int] | None) -> list[tuple[int, Tree]]:
    """(position in the input, tree) of each frame; a frame that is cut short, or has no true size, is the last."""
    from protocol.tree import Fault, request_tree, response_tree

    found: list[tuple[int, Tree]] = []
    position = 0
    while position < len(data) or not found:
        start, end = position, len(data)
        size = end - start
        if sized:
            size = int.from_bytes(data[start : start + SIZE_BYTES], "big", signed=True)
            start += SIZE_BYTES
            if 0 <= size <= end - start:
                end = start + size
        frame = data[start:end]
        tree = request_tree(frame) if api is None else response_tree(frame, *api)
        if tree.fault is None and size != len(frame):
            left = f"{len(frame)} bytes follow"
            tree.fault = Fault(tree.label, "size", -SIZE_BYTES, f"0 to {len(frame)}", f"found {size}, {left}")
        found.append((position, tree))
        position = end
    return found
