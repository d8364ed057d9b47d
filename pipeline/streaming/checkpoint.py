"""Reads the position of another process's streaming query from Spark's own checkpoint files, for `bridge`.

Spark has no public reader of them, and tells its listeners only within the process that runs the query. It writes
`offsets/N` before it runs micro-batch N and `commits/N` after its rows are written. So the position after N is
committed when both files exist.
"""

from __future__ import annotations

import json
from typing import Any

from pyarrow import fs

from pipeline.files import open_directory


def committed_position(path: str) -> tuple[int, list[Any]] | None:
    """(number, position of each source after it) of the last finished micro-batch; None: there is none yet."""
    files, root = open_directory(path)
    finished = _batches(files, f"{root}/commits") & _batches(files, f"{root}/offsets")
    if not finished:
        return None
    batch = max(finished)
    with files.open_input_stream(f"{root}/offsets/{batch}") as stream:
        lines = bytes(stream.read()).decode().splitlines()
    # version, metadata, then one line a source: a dash for a source without data
    return batch, [None if line == "-" else json.loads(line) for line in lines[2:]]


def _batches(files: fs.FileSystem, folder: str) -> set[int]:
    found = files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return {int(each.base_name) for each in found if each.base_name.isdigit()}
