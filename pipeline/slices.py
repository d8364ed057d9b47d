"""Plans which slices of which segments are read, and reads them: for the data source and `scan`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from pipeline.decode.batches import EVERYTHING, Bounds, Source, chunks
from pipeline.decode.columnar import decode_columns
from pipeline.files import Segment, log_segments, open_directory, segments
from pipeline.schema import TOPICS, VIEWS, chosen

_UNITS: Final = ("", "k", "m", "g")
_ATTEMPTS: Final = 5  # to find a file before it is renamed again


def options_of(
    path: str, records: str, topic: str | None = None, columns: Iterable[str] | None = None
) -> dict[str, str]:
    """The options of a read as text, as Spark hands them on; what is not given has its default."""
    return {"path": path, "records": records, "topic": topic or "", "columns": ",".join(columns or ())}


class Settings:
    """The options of a read, checked."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.path = options.get("path") or ""
        self.records = options.get("records") or "raw"
        if not self.path:
            raise ValueError("the option `path` is missing: it names a broker's data directory")
        if self.records not in VIEWS:
            raise ValueError(f"the option `records` is one of {', '.join(VIEWS)}; {self.records!r} is none of them")
        self.columns = _names(options.get("columns"))
        chosen(self.records, self.columns)
        self.topic = options.get("topic") or TOPICS[self.records]
        self.files, self.root = open_directory(self.path)
        self.max_bytes_per_trigger = _bytes("maxBytesPerTrigger", options.get("maxBytesPerTrigger"))
        self.logs = _names(options.get("logs"))

    def segments(self) -> list[Segment]:
        found: list[Segment] = segments(self.path, self.topic, self.logs)
        return found


def _names(text: str | None) -> tuple[str, ...] | None:
    """a,b; nothing: None."""
    return tuple(each.strip() for each in text.split(",")) if text else None


def _bytes(name: str, text: str | None) -> int:
    """A number of bytes, or of KiB, MiB and GiB: 64m."""
    if not text:
        return 0
    digits, unit = (text[:-1], text[-1].lower()) if text[-1].isalpha() else (text, "")
    if unit not in _UNITS or not digits.isdecimal() or int(digits) == 0:
        raise ValueError(f"the option `{name}` is a number of bytes (1048576, 64m, 1g); {text!r} is none")
    return int(digits) << 10 * _UNITS.index(unit)


@dataclass(frozen=True, slots=True)
class Slice:
    """Some offsets of one log, in the file that had them when this was planned."""

    log: str
    segment: int
    path: str
    size: int
    bounds: Bounds


def slices_of(found: list[Segment]) -> list[Slice]:
    """The whole of every log: each segment up to where the next one begins."""
    slices = []
    for number, each in enumerate(found):
        following = found[number + 1] if number + 1 < len(found) else None
        is_tail = following is None or following.log != each.log
        end = EVERYTHING if following is None or is_tail else following.base_offset
        slices.append(
            Slice(each.log, each.base_offset, each.path, each.size, Bounds(each.base_offset, end, 0, is_tail))
        )
    return slices


def read_slice(settings: Settings, wanted: Slice, attempts: int = _ATTEMPTS) -> Iterator[pa.RecordBatch]:
    """The records of a slice, from wherever they are by now."""
    try:
        file = settings.files.open_input_file(wanted.path)
    except FileNotFoundError:
        # Cleaned into another file, or deleted with its records: the offsets say what to look for.
        if attempts:
            for each in slices_of(log_segments(settings.files, settings.root, wanted.log)):
                first, end = max(each.bounds.first, wanted.bounds.first), min(each.bounds.end, wanted.bounds.end)
                if first < end:
                    moved = replace(each, bounds=replace(wanted.bounds, first=first, end=end, position=0))
                    yield from read_slice(settings, moved, attempts - 1)
        return
    with file:
        for chunk in chunks(file, Source(wanted.log, wanted.segment), wanted.bounds):
            yield from decode_columns(chunk, settings.records, settings.columns)


def scan(
    path: str, records: str = "raw", topic: str | None = None, columns: Iterable[str] = ()
) -> Iterator[pa.RecordBatch]:
    """The same rows without Spark, in the order of logs and offsets."""
    settings = Settings(options_of(str(path), records, topic, columns))
    for each in slices_of(settings.segments()):
        yield from read_slice(settings, each)
