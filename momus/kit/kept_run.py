"""Keeps the run of a failed test as one file: all requests and replies, the data they began with, log and report."""

from __future__ import annotations

import json
import os
import re
import zipfile
from io import BytesIO
from pathlib import Path
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.cluster import Cluster

NAME_LIMIT = 150


def file_name(test: str) -> str:
    """A name for the file of a test; no other test has it. At most 170 bytes of ASCII."""
    readable = re.sub(r"[^\w.-]+", "_", test, flags=re.ASCII).strip("_")[-NAME_LIMIT:]
    return f"{readable}-{crc32(test.encode()):08x}.momus"


def keep_run(folder: str, test: str, cluster: Cluster, report: str) -> Path:
    """Write the file into a folder, which is made. Returns its path.

    test     what pytest calls the test.
    report   why it failed.
    Errors:  ControlError: nothing was recorded. OSError.
    """
    from momus import __version__
    from momus.launch import build

    data = BytesIO(cluster.recording())
    with zipfile.ZipFile(data, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("test.json", json.dumps({"test": test, "momus": __version__, "build": build()}, indent=2))
        file.writestr("report.txt", report)
        file.writestr("log.txt", cluster.log)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    path = place / file_name(test)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as made:  # requests that make users
        made.write(data.getvalue())
    return path
