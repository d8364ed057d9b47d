"""Copies the records of all logs into the target, and compares what is there afterwards with the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.engine import F
from pipeline.errors import PipelineError
from pipeline.migrate import plan
from pipeline.migrate.worker import comparer, copier, first_differs, reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pipeline.migrate.worker import Copied

Sizes = dict[str, dict[str, Any]]  # by log: plan.counts


def refusals(
    records: DataFrame, client: dict[str, Any], sizes: Sizes, starts: dict[str, int], ends: dict[str, int]
) -> list[str]:
    """Why the copy would be refused, from what the target's logs hold before it: starts, ends (offsets by log)."""
    found = []
    for log, row in sizes.items():
        if row["at_time_0"] is not None:
            found.append(
                f"{log} has a record with the timestamp 0 at offset {row['at_time_0']}: librdkafka would set the "
                "current time, and the copy would not be equal"
            )
    begun = []
    for log, end in ends.items():
        kept = sizes[log]["kept"] if log in sizes else 0
        if starts[log]:
            found.append(f"{log} of the target starts at offset {starts[log]}: it has held other records")
        elif end > kept:
            found.append(f"{log} of the target has {end} records, the source only {kept}")
        elif end:
            begun.append((log, sizes[log]["first_kept"]))
    if begun:
        known = records.sparkSession.createDataFrame(begun, "log string, offset long")
        wanted = records.where("kept").join(F.broadcast(known), ["log", "offset"])
        for each in wanted.collect():
            if first_differs(client, each):
                found.append(
                    f"{each.log} of the target holds something else: its record 0 is not the source's at offset "
                    f"{each.offset}"
                )
    return found


def copied_records(records: DataFrame, client: dict[str, Any], sizes: Sizes) -> dict[str, Copied]:
    """Copy all logs; by log what was copied."""
    done = plan.in_order(records, len(sizes)).mapPartitions(copier(client)).collect()
    errors = [each.error for each in done if each.error]
    if errors:
        raise PipelineError(errors[0])
    copied = {each.log: each for each in done}
    for log, row in sizes.items():
        have = copied[log].already + copied[log].written if log in copied else 0
        if have != row["kept"]:
            raise PipelineError(f"{log} has {row['kept']} records to copy, but the target has {have}: run it again")
    return copied


def verified(
    records: DataFrame, client: dict[str, Any], sizes: Sizes, copied: dict[str, Copied], ends: dict[str, int]
) -> list[dict[str, Any]]:
    """The proof's entries of partitions, those without records included.

    The target is read and hashed. The source was hashed when it was copied, so its records are not sorted a second
    time: only those of a log whose hash differs, to name the first difference.
    """
    places = [(log, *_place(log)) for log in copied]
    context = records.sparkSession.sparkContext
    read = context.parallelize(places, max(1, len(places))).mapPartitions(reader(client)).collect() if places else []
    held = {each.log: each for each in read}
    doubtful = [log for log, each in held.items() if not each.is_dense or each.sha256 != copied[log].source_sha256]
    differences = _differences(records, client, doubtful)
    found = []
    for log, end in ends.items():
        row, seen = sizes.get(log, {}), held.get(log)
        count, there = row.get("kept", 0), seen.records if seen else end
        difference = differences.get(log)
        if difference is None and count != there:
            difference = f"{count} records were to be copied, and the target has {there}"
        if difference is None and log in doubtful:
            difference = "it differed when it was read, and no longer when it was compared: something else writes to it"
        found.append({
            **entry(log, row),
            "target_end_offset": end,
            "source_sha256": copied[log].source_sha256 if seen else None,
            "target_sha256": seen.sha256 if seen else None,
            "difference": difference,
            "equal": difference is None,
        })  # fmt: skip  # one argument, no indent of its own
    return sorted(found, key=lambda each: str(each["log"]))


def entry(log: str, row: dict[str, Any]) -> dict[str, Any]:
    """What the proof says of a partition of the source. row: of plan.counts; empty: it has no records."""
    return {
        "log": log,
        "source_first_offset": row.get("first_offset", 0),
        "source_end_offset": row.get("end_offset", 0),
        "records": row.get("kept", 0),
        "left_out": {"markers": row.get("markers", 0), "uncommitted": row.get("uncommitted", 0)},
    }


def _differences(records: DataFrame, client: dict[str, Any], logs: list[str]) -> dict[str, str | None]:
    """The first difference of each log, record by record."""
    if not logs:
        return {}
    wanted = plan.in_order(records.where(F.col("log").isin(logs)), len(logs))
    return {each.log: each.difference for each in wanted.mapPartitions(comparer(client)).collect()}


def _place(log: str) -> tuple[str, int]:
    topic, _, partition = log.rpartition("-")
    return topic, int(partition)
