"""Bugs that `make power-cuts` and `make histories` must find: each is planted into a copy of the checkout, one at a time.

    make planted-bugs ARGS="[NAME ...]"

Exit code 1: one was not found, or its line is not there any more. What the checkers say of the checkout itself is no
part of this: they must find nothing there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
CUTS = ("power_cuts.campaign", "--cuts", "200", "--cuts-a-run", "100", "--seconds", "2", "--seed", "5", "--first")
KILLS = ("histories.campaign", "--kills", "3", "--kills-a-history", "3", "--seed", "5")
LIMIT_S = 400
NO_CHECKER = ("ImportError", "ModuleNotFoundError", "SyntaxError", "NameError")  # it did not run


class Bug(NamedTuple):
    """Words in a file that become others, and the checker that must notice."""

    checker: tuple[str, ...]
    file: str
    right: str
    wrong: str


WRITER, DURABILITY = "storage/segments/log_writer.py", "broker/turn/durability.py"
SCAN, DISK = "storage/segments/scan.py", "storage/files/disk.py"
PENDING, ENDING = "broker/coordinator/offsets/pending.py", "broker/coordinator/transactions/ending.py"
FETCH, PRODUCERS = "broker/requests/fetch_reply.py", "broker/partitions/producers.py"
BUGS = {
    # what a loss of power takes
    "data is not synced": Bug(CUTS, WRITER, "segment.file.sync()", "pass"),
    "names are not synced": Bug(CUTS, WRITER, "self.env.files.sync_dir(self.directory)\n", "pass\n"),
    "new names are not noticed": Bug(
        CUTS, WRITER, "self._names_synced = False\n                file.append", "file.append"
    ),
    "small files are not synced": Bug(CUTS, DISK, "os.fsync(stream.fileno())", "pass"),
    "directories are not synced": Bug(CUTS, DISK, "            os.fsync(fd)\n", "            pass\n"),
    "a write is answered before its sync": Bug(CUTS, DURABILITY, "held[0].awaits_sync = True", "pass"),
    "no CRC is checked": Bug(CUTS, SCAN, "if crc32c(batch[ATTRIBUTES_POSITION:]) != header.crc:", "if False:"),
    "the mark says too much": Bug(CUTS, WRITER, "self.mark.note(target, cuts)", "self.mark.note(target + 3, cuts)"),
    "the mark is not read": Bug(
        CUTS, "storage/log/synced_ends.py", "return None if end_offset is None else max", "return None if True else max"
    ),
    "a copy is not synced": Bug(
        CUTS, "broker/cluster/data/copies.py", 'new.rpartition("/")[0]) if sync else ():', 'new) if False else ():'
    ),
    "what follows a snapshot is not synced": Bug(
        CUTS, DISK, "_copy(self.path, copied, sync=files.syncs)", "_copy(self.path, copied)"
    ),
    "offsets are not in the log": Bug(
        CUTS, "storage/files/disk.py", "self._files.platform.fdatasync(handle.fd)", "'__consumer' in self.path or self._files.platform.fdatasync(handle.fd)"
    ),
    # what kills, pauses and other clients bring out
    "nothing is written": Bug(KILLS, DURABILITY, "written.flush()\n            flushed", "flushed"),
    "open transactions are shown": Bug(
        KILLS, "broker/partitions/fetch_read.py", "partition.last_stable_offset if committed else", "partition.high_watermark if committed else"
    ),
    "aborted records are not named": Bug(KILLS, FETCH, "_aborted(wanted, partition, records) if committed", "[] if committed"),
    "the high watermark goes back": Bug(
        KILLS, FETCH, "answer.high_watermark, answer.log_start_offset = high_watermark,", "answer.high_watermark, answer.log_start_offset = high_watermark - bool(records),"
    ),
    "offsets of an aborted transaction": Bug(
        KILLS, PENDING, "if pending is not None and commit and", "if pending is not None and"
    ),
    "offsets of a committed one are lost": Bug(
        KILLS, PENDING, "if pending is not None and commit and", "if pending is not None and not commit and"
    ),
    "a commit ends as an abort": Bug(KILLS, ENDING, "commit=transaction.state is PREPARE_COMMIT", "commit=False"),
    "a partition gets no marker": Bug(KILLS, ENDING, "for index in indexes:", "for index in list(indexes)[:1]:"),
    "a repetition is appended": Bug(
        KILLS, PRODUCERS, "        if producer_epoch == known_epoch:\n            if base_sequence != last + 1", "        if producer_epoch == known_epoch:\n            if False and base_sequence != last + 1"
    ),
    "a fork shares what is written": Bug(KILLS, DISK, "if names > 1:", "if False:"),
    "a write leaves out its last batch": Bug(
        KILLS, WRITER, "file.append(segment.pending)", "file.append(segment.pending[:-1] or segment.pending)"
    ),
    "an offset is told wrong": Bug(
        KILLS, "broker/requests/produce.py", "values[0], values[1] = batch.base_offset,", "values[0], values[1] = batch.base_offset + 1,"
    ),
    "a commit is forgotten": Bug(
        KILLS,
        "broker/coordinator/offsets/columns.py",
        "            self._rows = put(self._rows, partitions[0], offsets[0], leader_epochs[0], commit_ts)",
        "            self._rows = put(self._rows, partitions[0], offsets[0] - offsets[0] % 7, leader_epochs[0], commit_ts)",
    ),
}  # fmt: skip  # the words of a line stay together


def copied(folder: Path) -> None:
    """The checkout without what git does not know."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, check=True, capture_output=True).stdout
    for name in names.decode().split("\0")[:-1]:
        if not name.startswith(("docs/", "tests/conformance/", "tests/differential/", "tests/ecosystem/", "clients/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, folder / name)


def run(name: str, bug: Bug, folder: Path) -> bool:
    """Whether the checker finds it, and how."""
    path = folder / bug.file
    text = path.read_text()
    if bug.right not in text:
        print(f"NOT PLANTED  {name}: {bug.file} has no {bug.right!r}", flush=True)
        return False
    path.write_text(text.replace(bug.right, bug.wrong))
    state = folder / "state"
    shutil.rmtree(state, ignore_errors=True)
    search = os.pathsep.join(str(folder / each) for each in (".", "tests", "tests/crash"))
    words = [sys.executable, "-m", *bug.checker, "--state", str(state)]
    begin = time.monotonic()
    try:
        ended = subprocess.run(
            words, cwd=folder, env={**os.environ, "PYTHONPATH": search}, capture_output=True, text=True, timeout=LIMIT_S
        )
        is_found = ended.returncode != 0
        lines = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
        wrong = [line for line in ended.stdout.splitlines() if line.startswith("  ")]
        said = (wrong or lines[-1:] or [""])[0].strip()
        is_found = is_found and not said.startswith(NO_CHECKER)
    except subprocess.TimeoutExpired:
        is_found, said = True, f"nothing came for {LIMIT_S} seconds"
    finally:
        path.write_text(text)
    print(
        f"{'found' if is_found else 'NOT FOUND':9}  {time.monotonic() - begin:4.0f} s  {name}: {said:.150}", flush=True
    )
    return is_found


def main() -> int:
    """The command line. Returns its exit code."""
    chosen = {name: BUGS[name] for name in sys.argv[1:] or BUGS}
    with tempfile.TemporaryDirectory(prefix="momus-planted-") as folder:
        copied(Path(folder))
        found = [run(name, bug, Path(folder)) for name, bug in chosen.items()]
    print(f"{sum(found)} of {len(found)} found")
    return not all(found)


if __name__ == "__main__":
    sys.exit(main())
