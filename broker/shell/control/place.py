"""The file of a data directory that says where its process is controlled, for `momus tail -d DIR` and its like.

JSON: `address`, `token` (null: none), `pid`. Only its owner may read it: who owns the directory may do all that the
token allows. It is there while the process is; a kill leaves it, and the next process of the directory removes it.
"""

from __future__ import annotations

import os
from contextlib import suppress

from broker.cluster.data.copies import CONTROL


def write_place(data_dir: str, address: str, token: str | None) -> None:
    """Say where the process is controlled. Readers find all of it or nothing. Errors: OSError."""
    import json  # 1 ms: an endpoint needs it, most starts do not

    path = f"{data_dir}/{CONTROL}"
    aside = f"{path}.tmp"
    with suppress(FileNotFoundError):
        os.remove(aside)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump({"address": address, "token": token, "pid": os.getpid()}, file)
    os.replace(aside, path)


def remove_place(data_dir: str) -> None:
    """The process ends, or a new one begins, which finds what a killed one has left. Errors: OSError."""
    for name in (CONTROL, f"{CONTROL}.tmp"):
        with suppress(FileNotFoundError):
            os.remove(f"{data_dir}/{name}")
