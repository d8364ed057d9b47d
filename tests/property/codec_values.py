"""Every declared message with its versions, and Hypothesis strategies for their values."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import protocol.messages
from protocol import wire
from protocol.declare import Field, Message, WireType

_FAMILIES = [each.stem for each in Path(protocol.messages.__file__).parent.glob("[a-z]*.py")]


def _declared() -> list[type[Message]]:
    found = []
    for name in sorted(_FAMILIES):
        module = import_module(f"protocol.messages.{name}")
        for value in vars(module).values():
            is_message = isinstance(value, type) and issubclass(value, Message) and value is not Message
            if is_message and value.__module__ == module.__name__ and "MAX_VERSION" in vars(value):
                found.append(value)
    return found


MESSAGES = _declared()
NAMES = [each.__name__ for each in MESSAGES]


def versions(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


_INTEGERS = {
    "Int8": st.integers(-(2**7), 2**7 - 1),
    "Int16": st.integers(-(2**15), 2**15 - 1),
    "UInt16": st.integers(0, 2**16 - 1),
    "Int32": st.integers(-(2**31), 2**31 - 1),
    "UInt32": st.integers(0, 2**32 - 1),
    "Int64": st.integers(-(2**63), 2**63 - 1),
}
_ATOMS: dict[str, st.SearchStrategy[Any]] = {
    **_INTEGERS,
    "Bool": st.booleans(),
    "Float64": st.floats(allow_nan=False),
    "Uuid": st.binary(min_size=16, max_size=16),
    # short ones often, and now and then one whose length needs two bytes as a varint
    "String": st.one_of(st.just(""), st.text(max_size=6), st.text(max_size=6).map(lambda text: text + "é" * 100)),
    "Bytes": st.one_of(st.binary(max_size=6), st.just(bytes(200))),
    "Records": st.one_of(st.binary(max_size=6), st.just(bytes(200))),
}
_TAGS = st.one_of(st.none(), st.none(), st.dictionaries(st.integers(100, 300), st.binary(max_size=3), max_size=2))


@st.composite
def messages(draw: st.DrawFn, cls: type[Message], version: int, flexible: bool | None = None) -> Message:
    """An object of one version: what the version does not have keeps its default."""
    flexible = version >= cls.FLEXIBLE_SINCE if flexible is None else flexible
    values = {each.name: draw(_value(each, version, flexible)) for each in cls.FIELDS if each.is_in(version)}
    made = cls(**values)
    made.unknown_tags = draw(_TAGS) if flexible else None
    return made


def _value(field: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    some = _kind(field.wire, version, flexible)
    if field.is_nullable(version):
        some = st.one_of(st.none(), some)
    if field.is_tagged(version):
        some = st.one_of(st.builds(field.fresh_default), some)
    return some


def _kind(kind: WireType, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if isinstance(kind, wire.Array):
        return st.lists(_kind(kind.element, version, flexible), max_size=4)
    if isinstance(kind, wire.Wire):
        return _ATOMS[kind.name]
    return messages(kind, version, flexible)


def sample(cls: type[Message], version: int, rng: random.Random, *, unknown_tags: bool = True) -> Message:
    """The same without Hypothesis, many times faster: plain values for tests about bytes."""
    return _sample_message(cls, version, rng, version >= cls.FLEXIBLE_SINCE and unknown_tags)


def _sample_message(cls: type[Message], version: int, rng: random.Random, unknown_tags: bool) -> Message:
    made = cls(**{f.name: _sample_field(f, version, rng, unknown_tags) for f in cls.FIELDS if f.is_in(version)})
    if unknown_tags and rng.random() < 0.2:
        made.unknown_tags = {200: b"kept"}
    return made


def _sample_field(field: Field, version: int, rng: random.Random, unknown_tags: bool) -> Any:
    if field.is_nullable(version) and rng.random() < 0.2:
        return None
    return _sample_kind(field.wire, version, rng, unknown_tags)


def _sample_kind(kind: WireType, version: int, rng: random.Random, unknown_tags: bool) -> Any:
    if isinstance(kind, wire.Array):
        count = rng.choice((1, 1, 2, 4))
        return [_sample_kind(kind.element, version, rng, unknown_tags) for _ in range(count)]
    if not isinstance(kind, wire.Wire):
        return _sample_message(kind, version, rng, unknown_tags)
    if kind is wire.String:
        return rng.choice(("", "a", "name", "a-longer-name"))
    if kind in (wire.Bytes, wire.Records):
        return rng.randbytes(rng.choice((0, 5)))
    if kind is wire.Uuid:
        return rng.randbytes(16)
    if kind is wire.Bool:
        return rng.random() < 0.5
    return rng.randrange(100)
