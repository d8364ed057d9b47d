"""Which logs the cleaner has been at, by `cleaner-offset-checkpoint`: elsewhere no offset may be missing in the middle.

momus names a log there before it cleans it for the first time, Apache Kafka after it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyarrow import fs

from pipeline.files import open_directory
from pipeline.source.log_starts import read_checkpoint

CHECKPOINT: Final = "cleaner-offset-checkpoint"
OF_A_BROKER: Final = "meta.properties"  # a copy of some logs alone lacks it


def cleaned_logs(path: str) -> Collection[str] | None:
    """The logs of a data directory that were cleaned; None: it does not say.

    Errors:  PipelineError: the checkpoint cannot be read.
    """
    files, root = open_directory(path)
    found = read_checkpoint(files, f"{root}/{CHECKPOINT}", "what was cleaned would be taken for lost")
    if found is not None:
        return found.keys()
    is_whole = files.get_file_info(f"{root}/{OF_A_BROKER}").type == fs.FileType.File
    return () if is_whole else None
