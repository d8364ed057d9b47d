"""Flat decode and encode functions for one version of a message, made from its declaration when first asked for.

    codec(OffsetCommitRequest, 8).decode(frame, position) -> message, position after it
    python -m protocol.codegen OffsetCommitRequest 8      prints the source

Why generated: construct interprets a tree for each field, 65 us for a small OffsetCommit and 12 us compiled; the
flat functions need 3. The two emitters (`emit_decode`, `emit_encode`) say how; they are imported with the first
codec, and each function is compiled with its first use, about 1 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from protocol.api import message_class
from protocol.declare import Message

M = TypeVar("M", bound=Message)

KEPT = frozenset(["cluster", "metadata_records"])  # the modules of messages some of whose functions are kept


class Codec(Generic[M]):
    """The functions of one class and version; each is compiled when it is first used."""

    __slots__ = ("cls", "decode", "encode", "encode_parts", "version")

    decode: Callable[..., tuple[M, int]]  # (buffer, position=0) -> message, position after it
    encode: Callable[[M], bytes]
    encode_parts: Callable[[M], list[Any]]  # bytes, and `records` that are not bytes kept as they are

    def __init__(self, cls: type[M], version: int) -> None:
        self.cls = cls
        self.version = version

    def __getattr__(self, name: str) -> Any:
        """Compile a function; called only while its slot is empty."""
        if name not in ("decode", "encode", "encode_parts"):
            raise AttributeError(name)
        made = _kept(self.cls, self.version, name) or _generated(self.cls, self.version, name)
        setattr(self, name, made)
        return made

    def source(self) -> str:
        """The generated Python, for people."""
        return "\n\n".join(make_source(self.cls, self.version, name)[0] for name in ("decode", "encode"))


def _kept(cls: type[Message], version: int, name: str) -> Any:
    """The function from protocol/generated; None if it is not kept there."""
    family = cls.__module__.rpartition(".")[2]
    if family not in KEPT:
        return None
    factory = import_module(f"protocol.generated.{family}").FUNCTIONS.get((cls.__name__, version, name))
    return None if factory is None else factory()


def _generated(cls: type[Message], version: int, name: str) -> Any:
    source, names = make_source(cls, version, name)
    exec(compile(source, f"<{cls.__name__} v{version} {name}>", "exec"), names)
    return names[name]


def make_source(cls: type[Message], version: int, name: str) -> tuple[str, dict[str, Any]]:
    """The text of a function, and the names that it needs."""
    if name == "decode":
        from protocol.emit_decode import decoder  # 0.3 ms: a start does without it

        return decoder(cls, version)
    from protocol.emit_encode import encoder  # 0.3 ms: a start does without it

    return encoder(cls, version, name)


_codecs: dict[tuple[type[Message], int], Codec[Any]] = {}


def codec(cls: type[M], version: int) -> Codec[M]:
    """The codec of one version of a message; the same object each time."""
    found = _codecs.get((cls, version))
    if found is None:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise ValueError(f"{cls.__name__} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}")
        found = _codecs[cls, version] = Codec(cls, version)
    return cast("Codec[M]", found)


def _main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python -m protocol.codegen MESSAGE VERSION")
    sys.stdout.write(codec(message_class(sys.argv[1]), int(sys.argv[2])).source())


if __name__ == "__main__":
    _main()
