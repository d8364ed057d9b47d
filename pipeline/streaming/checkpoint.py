"""How far a streaming query has got for good, read from its checkpoint: what was committed, not what is under way.

Spark writes `offsets/N` before it runs micro-batch N and `commits/N` once its rows are where they belong; so the end
of N counts when both are there, and a query that was killed knows it as well as one that runs.
"""

from __future__ import annotations

import json
from typing import Any

from pyarrow import fs

from pipeline.files import open_directory


def committed_position(path: str) -> tuple[int, list[Any]] | None:
    """(micro-batch, the offset of each source behind it) of the last one that is done; None: none yet."""
    files, root = open_directory(path)
    done, planned = _batches(files, f"{root}/commits"), _batches(files, f"{root}/offsets")
    both = done & planned
    if not both:
        return None
    batch = max(both)
    return batch, planned_position(path, batch)


def planned_position(path: str, batch: int) -> list[Any]:
    """The offset of each source behind a micro-batch that has begun; None: the source has nothing yet."""
    files, root = open_directory(path)
    with files.open_input_stream(f"{root}/offsets/{batch}") as stream:
        lines = bytes(stream.read()).decode().splitlines()
    # version, metadata, then one line a source: a dash for one that has nothing yet
    return [None if line == "-" else json.loads(line) for line in lines[2:]]


def _batches(files: fs.FileSystem, folder: str) -> set[int]:
    found = files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return {int(each.base_name) for each in found if each.base_name.isdigit()}
