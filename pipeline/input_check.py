"""Checks --input before Spark starts: nothing seen must never look like a good result."""

from __future__ import annotations

import argparse
from typing import Final

from pyarrow import fs

from pipeline.broker_address import bootstrap_of
from pipeline.connection_options import given_settings
from pipeline.errors import PipelineError
from pipeline.files import is_directory, open_directory
from pipeline.live.cut import connected
from pipeline.source.segment_files import LOG_FOLDER, log_segments
from pipeline.tables import is_archive

# Options that a running broker as --input cannot have, and why.
_FILES_ALONE: Final = {
    "follow": "keeps a position in files",
    "skip_damaged": "passes over damage in files",
    "ends": "names a folder, and a broker tells its own log ends",
}


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


def check_broker_input(args: argparse.Namespace, *, reads_broker: bool) -> None:
    """Check that a job can read a running broker, with these options, and that it answers. Errors: PipelineError."""
    bootstrap = bootstrap_of(args.input)
    if not reads_broker:
        raise PipelineError(
            f"the job `{args.job}` reads files: --input kafka://... is for audit, lag, offsets and resets. Give it the "
            "data directory or an archive"
        )
    for option, why in _FILES_ALONE.items():
        if getattr(args, option, None):
            name = option.replace("_", "-")
            raise PipelineError(f"--{name} {why}: use it without --input kafka://..., or give the data directory")
    with connected(bootstrap, given_settings(args)) as client:
        client.places()
