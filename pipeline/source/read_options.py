"""The options of a read of a data directory: checked, and as the text that Spark passes to a data source."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from pipeline.decode.batches import partition_of
from pipeline.files import open_directory
from pipeline.schema import TOPICS, VIEWS, view_fields
from pipeline.source.log_starts import log_starts
from pipeline.source.segment_files import SegmentFile, list_segments, up_to
from pipeline.source.topic_ids import log_key

_UNITS: Final = ("", "k", "m", "g")  # powers of 1024


def spark_options(
    path: str,
    records: str,
    topic: str | None = None,
    columns: Iterable[str] | None = None,
    *,
    skip_damaged: bool = False,
    until: datetime | None = None,
    without: Mapping[str, Collection[int]] | None = None,
    ends: Mapping[str, int] | None = None,
) -> dict[str, str]:
    """The options as Spark takes them; an empty text means the default."""
    found = {"path": path, "records": records, "topic": topic or "", "columns": ",".join(columns or ())}
    found["until"] = "" if until is None else until.isoformat()
    found["without"] = json.dumps(without) if without else ""
    found["ends"] = "" if ends is None else json.dumps(ends)
    return {**found, "skipDamaged": "true"} if skip_damaged else found


class ReadOptions:
    """The options of a read, checked. The table in pipeline/source/data_source.py explains each.

    Errors:  ValueError: an option is missing or has a value that it cannot have; PipelineError: see open_directory.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.path = options.get("path") or ""
        self.records = options.get("records") or "raw"
        if not self.path:
            raise ValueError("the option `path` is missing: it names a broker's data directory")
        if self.records not in VIEWS:
            raise ValueError(f"the option `records` must be one of {', '.join(VIEWS)}, not {self.records!r}")
        self.columns = _names(options.get("columns"))
        view_fields(self.records, self.columns)
        self.topic = options.get("topic") or TOPICS[self.records]
        self.files, self.root = open_directory(self.path)
        self.max_bytes_per_trigger = _bytes("maxBytesPerTrigger", options.get("maxBytesPerTrigger"))
        self.logs = _names(options.get("logs"))
        self.skip_damaged = _flag("skipDamaged", options.get("skipDamaged"))
        self.plan = options.get("plan") or None
        self.only: list[tuple[str, Collection[object]]] = []  # conditions of a query: log, topic or partition, values
        self.until_ms = _millis("until", options.get("until"))
        self.without: dict[str, list[int]] = json.loads(options.get("without") or "{}")
        self.ends: dict[str, int] | None = json.loads(options.get("ends") or "null")

    def segments(self) -> list[SegmentFile]:
        """The segment files that there are now, in the order of log and base offset."""
        found: list[SegmentFile] = list_segments(self.path, self.topic, self.logs)
        for name, values in self.only:
            found = [each for each in found if _place(each.log)[name] in values]
        if self.without:
            left = self.without
            found = [each for each in found if each.base_offset not in left.get(log_key(each.log, each.topic_id), ())]
        return found if self.until_ms is None else up_to(self.files, found, self.until_ms)

    def log_starts(self) -> dict[str, int]:
        """Log -> its start, where DeleteRecords or retention has moved it. Errors: PipelineError: see log_starts."""
        return log_starts(self.files, self.root).offsets


def _place(log: str) -> dict[str, object]:
    topic, partition = partition_of(log)
    return {"log": log, "topic": topic, "partition": partition}


def _names(text: str | None) -> tuple[str, ...] | None:
    """`a,b` as a tuple; None for no text."""
    return tuple(each.strip() for each in text.split(",")) if text else None


def _millis(name: str, text: str | None) -> int | None:
    """A time in ISO 8601, UTC unless a zone is given, as Unix milliseconds; None for no text."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"the option `{name}` must be a time in ISO 8601, not {text!r}") from None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _flag(name: str, text: str | None) -> bool:
    if (text or "false") not in ("true", "false"):
        raise ValueError(f"the option `{name}` must be true or false, not {text!r}")
    return text == "true"


def _bytes(name: str, text: str | None) -> int:
    """A number of bytes, with or without a unit of KiB, MiB or GiB: 64m. 0 for no text."""
    if not text:
        return 0
    digits, unit = (text[:-1], text[-1].lower()) if text[-1].isalpha() else (text, "")
    if unit not in _UNITS or not digits.isdecimal() or int(digits) == 0:
        raise ValueError(f"the option `{name}` must be a number of bytes (1048576, 64m, 1g), not {text!r}")
    return int(digits) << 10 * _UNITS.index(unit)
