"""Committed offsets as a file that `momus offsets import` takes, and as the `startingOffsets` of a query in Spark."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_import_file(rows: DataFrame, path: str) -> int:
    """Write rows of commits.latest, one JSON line each, as `momus offsets export` does; returns their number.

    Errors:  PipelineError: the file is there already, or cannot be written.
    """
    count = 0
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            for row in _ordered(rows):
                kept = {name: row[name] for name in ("group", "topic", "partition")}
                rest = {"leader_epoch": row["leader_epoch"], "metadata": row["metadata"] or ""}
                file.write(json.dumps(kept | {"offset": row["commit_offset"]} | rest, ensure_ascii=False) + "\n")
                count += 1
    except OSError as error:
        raise PipelineError(f"--import-file {path}: {error.strerror}") from None
    return count


def starting_offsets(rows: DataFrame) -> str:
    """Rows of commits.latest as the JSON of Spark's option: {"topic": {"0": 23}}. Errors: PipelineError: two groups."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    groups = set()
    for row in _ordered(rows):
        groups.add(row["group"])
        found[row["topic"]][str(row["partition"])] = row["commit_offset"]
    if len(groups) > 1:
        raise PipelineError(f"--starting-offsets is for one group, and there are {len(groups)}: name it by --group")
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _ordered(rows: DataFrame) -> Any:
    return rows.orderBy("group", "topic", "partition").toLocalIterator()
