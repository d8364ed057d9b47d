"""Finds the last tagged fields of a reply as its bytes come, without reading what stands before them.

The steps are made from the declaration of the message: so many bytes, a text or bytes of any length, a list, tagged
fields. Records are one step, however many megabytes they are. Only flexible versions are walked.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from broker.proxy.varint import CUT, after_tags, varint
from protocol.api import ApiKey, response_class
from protocol.declare import Message
from protocol.errors import MalformedError
from protocol.wire import Array

FIXED: Final = 0
SIZED: Final = 1  # an unsigned varint, one more than its bytes
LIST: Final = 2  # the same of its elements
TAGS: Final = 3
LAST_TAGS: Final = 4
HEAD_BYTES: Final = 8  # of a reply: size, correlation id
DEEPEST: Final = 8


class Step:
    """One step: its kind, the bytes of a fixed one, the steps of a list's element."""

    __slots__ = ("inner", "kind", "size")

    def __init__(self, kind: int, size: int = 0, inner: list[Step] | None = None) -> None:
        self.kind = kind
        self.size = size
        self.inner: list[Step] = inner if inner is not None else []


@cache
def steps_of(api_key: int, version: int) -> list[Step]:
    """The steps through a whole reply, from its correlation id on."""
    head = [Step(FIXED, 4), Step(TAGS)] if api_key != ApiKey.API_VERSIONS else [Step(FIXED, 4)]
    made = [*head, *_steps(response_class(api_key), version), Step(LAST_TAGS)]
    return _joined(made)


def _steps(cls: Any, version: int) -> list[Step]:
    made: list[Step] = []
    for each in cls.FIELDS:
        if not each.is_in(version) or each.is_tagged(version):
            continue
        wire = each.wire
        if isinstance(wire, Array):
            element: Any = wire.element
            if isinstance(element, type) and issubclass(element, Message):
                made.append(Step(LIST, 0, _joined([*_steps(element, version), Step(TAGS)])))
            else:
                made.append(Step(LIST, 0, [Step(FIXED, element.size) if element.size else Step(SIZED)]))
        elif isinstance(wire, type):
            raise NotImplementedError(f"{cls.__name__}.{each.name} is a message of its own")  # no reply walked has one
        else:
            made.append(Step(FIXED, wire.size) if wire.size else Step(SIZED))
    return made


def _joined(steps: list[Step]) -> list[Step]:
    """The same with fixed ones that follow each other as one."""
    made: list[Step] = []
    for step in steps:
        if made and step.kind == FIXED and made[-1].kind == FIXED:
            made[-1] = Step(FIXED, made[-1].size + step.size)
        else:
            made.append(step)
    return made


class Walk:
    """A walk through one reply.

    Feed it the bytes from `at` on, an offset in the reply with its size field; it moves `at` on, maybe beyond them.
    """

    __slots__ = ("_index", "_left", "_stack", "_steps", "at", "found_at", "is_at_end", "marks")

    def __init__(self, api_key: int, version: int) -> None:
        self.at = 4
        self.is_at_end = False  # the last tagged fields begin at `at`
        self.found_at = -1  # where the number of the tagged field 0 stands
        self.marks: list[int] | None = None  # offsets of all bytes that were read, if they are wanted
        self._steps: list[Step] = steps_of(api_key, version)
        self._index = 0
        self._left = 1  # elements of the list whose steps these are
        self._stack: list[tuple[list[Step], int, int]] = []

    def feed(self, data: bytes, begin: int, stop: int) -> None:
        """Go as far as data[begin:stop] allows, which stands at `at`. Errors: MalformedError."""
        origin = begin - self.at
        at, steps, index = begin, self._steps, self._index
        while True:
            if index == len(steps):
                self._left -= 1
                if self._left:
                    index = 0
                elif self._stack:
                    steps, index, self._left = self._stack.pop()
                continue
            step = steps[index]
            kind = step.kind
            if kind == FIXED:
                at += step.size
                index += 1
                if at >= stop:
                    break
                continue
            if kind == LAST_TAGS:
                self.is_at_end = True
                break
            value, place = varint(data, at, stop)
            if place == CUT:  # the whole step waits for more bytes
                break
            self._mark(at - origin, place - origin, kind == TAGS and value > 0)
            if kind == SIZED:
                at = place + (value - 1 if value else 0)
                index += 1
            elif kind == LIST:
                at = place
                index += 1
                if value > 1:
                    if len(self._stack) == DEEPEST:
                        raise MalformedError("lists in lists")
                    self._stack.append((steps, index, self._left))
                    steps, index, self._left = step.inner, 0, value - 1
            else:
                place = after_tags(data, place, stop, value)
                if place == CUT:
                    break
                at = place
                index += 1
            if at >= stop:
                break
        self._steps, self._index = steps, index
        self.at = at - origin

    def _mark(self, begin: int, stop: int, is_more_read: bool) -> None:
        if self.marks is not None:
            self.marks.extend(range(begin, stop))
            if is_more_read:  # sizes of tagged fields, which are not marked
                self.marks = None

    def look(self, data: bytes, begin: int, stop: int) -> bool:
        """Whether the last tagged fields, all of which stand in data[begin:stop], have the field 0; then `found_at` is
        the offset of its number in `data`. Errors: MalformedError."""
        count, at = varint(data, begin, stop)
        for _ in range(count):
            place = at
            tag, at = varint(data, at, stop)
            size, at = varint(data, at, stop) if at != CUT else (0, CUT)
            if at == CUT:
                break
            if tag == 0:
                self.found_at = place
                return True
            at += size
        if at == CUT:
            raise MalformedError("the reply ends within its last fields")
        return False
