"""Which engine runs a job: what --engine says, or by what the job reads and how much of it there is."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from pyarrow import fs

from pipeline.broker_address import is_broker
from pipeline.errors import PipelineError
from pipeline.files import join_path, open_directory
from pipeline.schema import TOPICS, VIEWS
from pipeline.source.segment_files import list_segments

if TYPE_CHECKING:
    import argparse

    from pipeline.source.segment_files import SegmentFile

LOCAL, SPARK, AUTO = "local", "spark", "auto"
MOST_BYTES: Final = 2 << 30
MOST_RECORDS: Final = 50_000_000
RECORD_BYTES: Final = 8  # the least that a record takes
HINT: Final = "in a checkout of momus, pip install '.[{}]'"


class Choice(NamedTuple):
    """An engine, and why, for the line that says so."""

    engine: str
    why: str


def choose(args: argparse.Namespace, *, is_for_both: bool, topics: tuple[str, ...]) -> Choice:
    """The engine of a job. is_for_both: the local engine can run it; topics: globs of what it reads.

    Errors:  PipelineError: the engine that is asked for cannot run this, or is not installed.
    """
    only = _only_spark(args, is_for_both=is_for_both)
    if args.engine == LOCAL:
        if only:
            raise PipelineError(f"--engine local: {only}")
        made = Choice(LOCAL, "as asked")
    elif args.engine == SPARK or only:
        made = Choice(SPARK, "as asked" if args.engine == SPARK else str(only))
    elif not is_installed(LOCAL):
        made = Choice(SPARK, "duckdb is not installed")
    elif not is_installed(SPARK):
        made = Choice(LOCAL, "pyspark is not installed")
    else:
        made = _by_size(args, topics)
    if not is_installed(made.engine):
        extra = "pipeline" if made.engine == LOCAL else "spark"
        name = "duckdb" if made.engine == LOCAL else "pyspark"
        raise PipelineError(
            f"the job {args.job} needs the engine {made.engine} ({made.why}), and {name} is not installed: "
            + HINT.format(extra)
        )
    return made


def is_installed(engine: str) -> bool:
    """Whether an engine can be imported."""
    return find_spec("duckdb" if engine == LOCAL else "pyspark") is not None


def _only_spark(args: argparse.Namespace, *, is_for_both: bool) -> str | None:
    """Why only Spark can run it; None: both can."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return "spark-submit has started this"
    if not is_for_both:
        return f"the job {args.job} runs on Spark alone"
    if getattr(args, "follow", False):
        return "--follow is Spark's"
    if args.format == "delta":
        return "--format delta is Spark's"
    if args.master or args.conf:
        return "--master and --conf are Spark's"
    return None


def _by_size(args: argparse.Namespace, topics: tuple[str, ...]) -> Choice:
    if is_broker(args.input):
        return Choice(LOCAL, "a broker is read over one connection")
    tables = [join_path(args.input, records) for records in VIEWS]
    parts = [open_directory(path) for path in tables]
    if any(files.get_file_info(root).type == fs.FileType.Directory for files, root in parts):
        return _archive(parts)
    found = [each for each in list_segments(args.input, "*", None) if _is_wanted(each.log, topics)]
    size = sum(each.size for each in found)
    return _judged(size, _offsets(found))


def _archive(parts: list[tuple[fs.FileSystem, str]]) -> Choice:
    size = 0
    for files, root in parts:
        if files.type_name != "local":
            return Choice(SPARK, "the archive is not on a local disk")
        for each in files.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True)):
            if "/_delta_log/" in each.path:
                return Choice(SPARK, "the archive is in Delta Lake's format")
            size += each.size or 0
    return _judged(size, 0)


def _judged(size: int, records: int) -> Choice:
    text = f"{size / 1e6:,.1f} MB" + (f", at most {records:,} records" if records else "")
    return Choice(LOCAL if size <= MOST_BYTES and records <= MOST_RECORDS else SPARK, text)


def _is_wanted(log: str, topics: tuple[str, ...]) -> bool:
    topic = log.rpartition("-")[0]
    return any(fnmatchcase(topic, pattern) for pattern in topics)


def _offsets(found: list[SegmentFile]) -> int:
    """The offsets of all segments: up to the last one of each log exactly, and that one by its bytes."""
    count = 0
    for number, each in enumerate(found):
        following = found[number + 1] if number + 1 < len(found) else None
        if following is not None and following.log == each.log:
            count += following.base_offset - each.base_offset
        else:
            count += each.size // RECORD_BYTES
    return count


# job -> the topics that it reads; others read all
READS: Final = {
    "offsets": (TOPICS["offsets"],),
    "resets": (TOPICS["offsets"],),
    "coverage": (TOPICS["offsets"], TOPICS["transactions"]),
}
EVERYTHING: Final = ("*",)
