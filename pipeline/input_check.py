"""Checks --input before Spark starts: nothing seen must never look like a good result."""

from __future__ import annotations

import re
from typing import Final

from pyarrow import fs

from pipeline.errors import PipelineError
from pipeline.files import is_directory, join_path, open_directory
from pipeline.schema import VIEWS

LOG_FOLDER: Final = re.compile(r".+-\d+")
SEGMENT: Final = re.compile(r"\d{20}\.log")


def check_input(path: str) -> None:
    """Check that a path is an archive or has a log. Spark takes ten seconds to start, and reports it in many lines.

    Errors:  PipelineError: there is no such directory, or it holds no log.
    """
    files, root = open_directory(path)  # messages name `root`: an address may hold credentials
    if not is_directory(path):
        raise PipelineError(
            f"--input: there is no directory {root}: it must name a broker's data directory or an archive"
        )
    if any(is_directory(join_path(path, view)) for view in VIEWS):
        return
    for folder in files.get_file_info(fs.FileSelector(root)):
        if folder.type != fs.FileType.Directory or not LOG_FOLDER.fullmatch(folder.base_name):
            continue
        if any(SEGMENT.fullmatch(each.base_name) for each in files.get_file_info(fs.FileSelector(folder.path))):
            return
    raise PipelineError(
        f"--input: {root} holds no log: neither a folder TOPIC-PARTITION with segments, nor the tables of an archive"
    )
