"""What generated codecs call off their fast path: long varints, tagged fields, and the words of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.errors import MalformedError

if TYPE_CHECKING:
    from collections.abc import Iterable

BYTES = tuple([bytes([each]) for each in range(256)])
STRING_MAX_BYTES = 0x7FFF  # Kafka's own limit, which compact strings have too
MOST_ELEMENTS = 1_000_000  # of one array, as Kafka reads them since 4.4
MOST_TAGS = 10_000  # tagged fields of one section, as well
INT_MAX = 0x7FFFFFFF


def read_uvarint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Value and the position after it; more than 31 bits cannot be a length in Kafka."""
    value = 0
    for shift in range(0, 35, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > INT_MAX:
                break
            return value, position
    raise MalformedError(f"varint longer than 31 bits ends at byte {position}")


def read_tags(
    buffer: bytes | memoryview, position: int, bad: DecodeErrors, field: str
) -> tuple[dict[int, bytes] | None, int]:
    """Tagged fields of which the declaration knows none."""
    count, position = read_uvarint(buffer, position)
    if count > MOST_TAGS:
        raise bad.tags(field, count)
    tags: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        end = position + size
        if end > len(buffer):
            raise bad.cut(f"{field} (tag {tag})", size, len(buffer) - position)
        tags[tag] = bytes(buffer[position:end])
        position = end
    return tags or None, position


def uvarint(value: int) -> bytes:
    """Seven bits a byte, lowest first."""
    if value < 0x80:
        return BYTES[value]
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def tag_section(tags: dict[int, bytes]) -> bytes:
    """Tagged fields by rising tag."""
    parts = [uvarint(len(tags))]
    for tag in sorted(tags):
        parts += (uvarint(tag), uvarint(len(tags[tag])), tags[tag])
    return b"".join(parts)


def string_size(size: int) -> bytes:
    """The varint before a long compact string."""
    if size - 1 > STRING_MAX_BYTES:
        raise ValueError(f"a string of {size - 1} bytes; Kafka's limit is {STRING_MAX_BYTES}")
    return uvarint(size)


def merge_parts(parts: Iterable[Any]) -> list[Any]:
    """Neighbouring bytes joined; everything else (memoryview, slice of a file) kept as it is, in order."""
    merged: list[Any] = []
    run: list[bytes] = []
    for part in parts:
        if part.__class__ is bytes:
            run.append(part)
        else:
            if run:
                merged.append(b"".join(run))
                run = []
            merged.append(part)
    if run:
        merged.append(b"".join(run))
    return merged


def join_parts(parts: Iterable[Any]) -> bytes:
    """One bytes object; a slice of a file is read."""
    return b"".join(
        [part if part.__class__ is bytes or hasattr(part, "__getitem__") else part.read() for part in parts]
    )


class DecodeErrors:
    """Makes the errors of one decode function: which message, which field, what was claimed, what is there."""

    def __init__(self, label: str, paths: dict[int, str]) -> None:
        self.label = label
        self.paths = paths  # line of the generated source -> field

    def short(self, error: BaseException, size: int) -> MalformedError:
        """The buffer ended inside a fixed-size field."""
        trace = error.__traceback__
        field = ""
        if trace is not None:
            field = self.paths.get(trace.tb_lineno - trace.tb_frame.f_code.co_firstlineno + 1, "")
        return MalformedError(f"{self.label}: the {size} bytes end inside {field or 'a field'}")

    def cut(self, field: str, need: int, left: int) -> MalformedError:
        """A length that the rest of the buffer cannot hold."""
        return MalformedError(f"{self.label}: {field} claims {need} bytes, {max(left, 0)} are left")

    def count(self, field: str, count: int, left: int) -> MalformedError:
        """A negative count, unsigned or not; one above Kafka's limit, or that the rest of the buffer cannot hold."""
        if not 0 <= count <= INT_MAX:
            return self.null(field)
        if MOST_ELEMENTS < count <= left:
            return MalformedError(f"{self.label}: {field} has {count} elements, an array has at most {MOST_ELEMENTS}")
        return MalformedError(f"{self.label}: {field} claims {count} elements, {max(left, 0)} bytes are left")

    def null(self, field: str) -> MalformedError:
        """A null where this version of the field allows none."""
        return MalformedError(f"{self.label}: {field} is null, which this version does not allow")

    def long(self, field: str, size: int) -> MalformedError:
        """A string whose claimed size exceeds Kafka's limit of 32767 bytes."""
        return MalformedError(f"{self.label}: {field} claims {size} bytes, a string has at most {STRING_MAX_BYTES}")

    def tags(self, field: str, count: int) -> MalformedError:
        """More tagged fields in one section than Kafka reads."""
        return MalformedError(f"{self.label}: {field} claims {count} tagged fields, {MOST_TAGS} are the most")

    def tag(self, field: str) -> MalformedError:
        """A tagged field whose content ends before or after the size it claims."""
        return MalformedError(f"{self.label}: tagged field {field} does not fill the size it claims")
