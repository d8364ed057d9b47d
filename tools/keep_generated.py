"""Writes protocol/generated/: the functions that a broker needs from its start to its first answered Produce.

    python tools/keep_generated.py [--check]       check: change nothing, exit 1 if the files are not up to date

Why these and no others: a start is 8 ms quicker with them, and the functions of all 462 served requests and responses
would be 33,000 lines.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from protocol import codec_support  # noqa: E402  # the path comes first
from protocol.codegen import KEPT, make_source  # noqa: E402  # the same
from protocol.declare import Message  # noqa: E402  # the same
from protocol.messages import cluster, metadata_records  # noqa: E402  # the same

FOLDER = REPOSITORY / "protocol" / "generated"
_BOTH = ("encode", "decode")
_CONTENT: dict[str, list[tuple[type[Message], tuple[int, ...], tuple[str, ...]]]] = {
    "metadata_records": [
        (metadata_records.FeatureLevelRecord, (0,), _BOTH),
        (metadata_records.TopicRecord, (0,), _BOTH),
        (metadata_records.ConfigRecord, (0,), _BOTH),
        (metadata_records.PartitionRecord, (0,), _BOTH),
    ],
    "cluster": [
        (cluster.ApiVersionsRequest, (3, 4), ("decode",)),
        (cluster.ApiVersionsResponse, (3, 4), ("encode",)),
        (cluster.MetadataRequest, (12, 13), ("decode",)),
        (cluster.MetadataResponse, (12, 13), ("encode",)),
    ],
}


def text_of(family: str) -> str:
    """The module that keeps functions of one family's messages."""
    kept = [(cls, version, name) for cls, versions, names in _CONTENT[family] for version in versions for name in names]
    factories = [_factory(*each) for each in kept]
    table = [f'    ("{cls.__name__}", {v}, "{name}"): _{name}_{cls.__name__}_{v},' for cls, v, name in kept]
    head = [
        f'"""Generated from protocol/messages/{family}.py by tools/keep_generated.py: do not edit."""',
        "from struct import Struct, pack, unpack_from",
        "from struct import error as StructError",
        "from protocol.codec_support import *",
        f"from protocol.messages.{family} import *",
        "new = object.__new__",
    ]
    return "\n".join([*head, *factories, "FUNCTIONS = {", *table, "}"]) + "\n"


def _factory(cls: type[Message], version: int, name: str) -> str:
    """A function that makes the generated one, with the names that it needs around it."""
    source, names = make_source(cls, version, name)
    body = [*_assignments(names), source.rstrip("\n"), f"return {name}"]
    return f"def _{name}_{cls.__name__}_{version}():\n" + textwrap.indent("\n".join(body), "    ")


def _assignments(names: dict[str, Any]) -> Iterator[str]:
    for name, value in names.items():
        if isinstance(value, codec_support.DecodeErrors):
            yield f"{name} = DecodeErrors({value.label!r}, {value.paths!r})"
        elif isinstance(value, Message):
            yield f"{name} = {type(value).__name__}()"
        elif hasattr(getattr(value, "__self__", None), "format"):  # a method of a struct.Struct
            yield f"{name} = Struct({value.__self__.format!r}).{value.__name__}"


def main() -> None:
    """Write all modules, or check them."""
    assert set(_CONTENT) == KEPT
    stale = False
    for family in _CONTENT:
        path = FOLDER / f"{family}.py"
        text = text_of(family)
        if sys.argv[1:] != ["--check"]:
            path.write_text(text)
        elif path.read_text() != text:
            stale = True
            sys.stderr.write(f"{path} is not up to date: python tools/keep_generated.py\n")
    raise SystemExit(stale)


if __name__ == "__main__":
    main()
