"""Flat decode and encode functions for one version of a message, made from its declaration when first asked for.

    codec(OffsetCommitRequest, 8).decode(frame, position) -> message, position behind it
    python -m protocol.codegen OffsetCommitRequest 8      prints the source

Why generated: construct interprets a tree for each field, 65 us for a small OffsetCommit and 12 us compiled; the
flat functions need 3. The two emitters (`emit_decode`, `emit_encode`) say how; they are imported with the first
codec, and each function is compiled with its first use, about 1 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from protocol.declare import Message

M = TypeVar("M", bound=Message)


class Codec(Generic[M]):
    """The functions of one class and version; each is compiled when it is first used."""

    __slots__ = ("cls", "decode", "encode", "encode_parts", "version")

    decode: Callable[..., tuple[M, int]]  # (buffer, position=0) -> message, position behind it
    encode: Callable[[M], bytes]
    encode_parts: Callable[[M], list[Any]]  # bytes, and `records` that are not bytes kept as they are

    def __init__(self, cls: type[M], version: int) -> None:
        self.cls = cls
        self.version = version

    def __getattr__(self, name: str) -> Any:
        """Compile a function; called only while its slot is empty."""
        if name not in ("decode", "encode", "encode_parts"):
            raise AttributeError(name)
        source, names = _source(self.cls, self.version, name)
        file_name = f"<{self.cls.__name__} v{self.version} {name}>"
        exec(compile(source, file_name, "exec"), names)
        setattr(self, name, names[name])
        return names[name]

    def source(self) -> str:
        """The generated Python, for people."""
        return "\n\n".join(_source(self.cls, self.version, name)[0] for name in ("decode", "encode"))


def _source(cls: type[Message], version: int, name: str) -> tuple[str, dict[str, Any]]:
    if name == "decode":
        from protocol.emit_decode import decoder

        return decoder(cls, version)
    from protocol.emit_encode import encoder

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
    import sys

    from protocol.api import message_class

    if len(sys.argv) != 3:
        sys.exit("usage: python -m protocol.codegen MESSAGE VERSION")
    sys.stdout.write(codec(message_class(sys.argv[1]), int(sys.argv[2])).source())


if __name__ == "__main__":
    _main()
