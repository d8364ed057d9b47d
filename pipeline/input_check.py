"""Checks --input before Spark starts: nothing seen must never look like a good result."""

from __future__ import annotations

from pyarrow import fs

from pipeline.errors import PipelineError
from pipeline.files import is_directory, open_directory
from pipeline.source.segment_files import LOG_FOLDER, log_segments
from pipeline.tables import is_archive


def check_input(path: str) -> None:
    """Check that a path is an archive or has a log. Spark takes ten seconds to start, and reports it in many lines.

    Errors:  PipelineError: there is no such directory, or it holds no log.
    """
    files, root = open_directory(path)  # messages name `root`: an address may hold credentials
    if not is_directory(path):
        raise PipelineError(
            f"--input: there is no directory {root}: it must name a broker's data directory or an archive"
        )
    if is_archive(path):
        return
    for folder in files.get_file_info(fs.FileSelector(root)):
        is_log = folder.type == fs.FileType.Directory and LOG_FOLDER.fullmatch(folder.base_name)
        if is_log and log_segments(files, root, folder.base_name):
            return
    raise PipelineError(
        f"--input: {root} holds no log: neither a folder TOPIC-PARTITION with segments, nor the tables of an archive"
    )
