"""Makes the compiled build: a copy of the project in which the modules on the serving path are C extensions.

    python tools/compiled.py [FOLDER]       build/compiled unless told otherwise
    python tools/compiled.py --for-wheel FOLDER     the packages alone, for tools/compile_hook.py

Needs a C compiler, mypy (whose wheel brings mypyc) and setuptools. The sources are the same; whatever is run in the
folder runs the compiled modules: `cd build/compiled && python -m momus serve`, `python -m pytest tests/unit`.
"""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
COMPILED = ("protocol", "storage", "broker")
COPIED = (*COMPILED, "momus", "pipeline", "benchmarks", "examples", "docs", "docker", "tools", "tests")
# Beside the packages: what compiled them. `momus --version` reads it (momus/launch.py).
NOTE = "COMPILED"
MOST_AT_ONCE = 4  # C files, each of which takes up to 0.4 GB
# What a request passes through. Not storage.files.env: a subclass of random.Random cannot be compiled.
MODULES = (
    "broker/base/marker.py",
    "broker/base/placement.py",
    "broker/base/context.py",
    "broker/broker.py",
    "broker/cluster/metadata.py",
    "broker/cluster/nodes.py",
    "broker/cluster/topics.py",
    "broker/coordinator/deadlines.py",
    "broker/coordinator/group_shards.py",
    "broker/coordinator/groups/machine.py",
    "broker/coordinator/groups/simple.py",
    "broker/coordinator/groups/classic/commit_checks.py",
    "broker/coordinator/groups/common/assignment_epoch_checks.py",
    "broker/coordinator/offsets/columns.py",
    "broker/coordinator/offsets/commit_batch.py",
    "broker/coordinator/offsets/commit_run.py",
    "broker/coordinator/offsets/pending.py",
    "broker/coordinator/offsets/provenance.py",
    "broker/coordinator/offsets/replay_run.py",
    "broker/coordinator/offsets/rows.py",
    "broker/coordinator/offsets/table.py",
    "broker/coordinator/replay.py",
    "broker/coordinator/runtime.py",
    "broker/coordinator/written.py",
    "broker/coordinator/transactions/coordinator.py",
    "broker/coordinator/transactions/ending.py",
    "broker/coordinator/transactions/gate.py",
    "broker/coordinator/transactions/machine.py",
    "broker/coordinator/transactions/rules.py",
    "broker/coordinator/transactions/record_layout.py",
    "broker/coordinator/transactions/shards.py",
    "broker/coordinator/transactions/transaction.py",
    "broker/coordinator/transactions/written.py",
    "broker/partitions/aborted.py",
    "broker/partitions/fetch_read.py",
    "broker/partitions/fetch_session.py",
    "broker/partitions/incoming_batch.py",
    "broker/partitions/partition.py",
    "broker/partitions/producer_table.py",
    "broker/partitions/producer_undo.py",
    "broker/partitions/producers.py",
    "broker/partitions/record_rules.py",
    "broker/partitions/record_scan.py",
    "broker/partitions/table.py",
    "broker/partitions/waiters.py",
    "broker/proxy/addresses.py",
    "broker/proxy/connection.py",
    "broker/proxy/kinds.py",
    "broker/proxy/link.py",
    "broker/proxy/linked.py",
    "broker/proxy/router.py",
    "broker/proxy/varint.py",
    "broker/proxy/walk.py",
    "broker/requests/add_to_txn.py",
    "broker/requests/end_txn.py",
    "broker/requests/fetch.py",
    "broker/requests/fetch_reply.py",
    "broker/requests/fetch_wait.py",
    "broker/requests/kept.py",
    "broker/requests/message_sets.py",
    "broker/requests/offset_commit.py",
    "broker/requests/offset_fetch.py",
    "broker/requests/offset_rows.py",
    "broker/requests/produce.py",
    "broker/requests/produce_ask.py",
    "broker/requests/produce_late.py",
    "broker/requests/repeated.py",
    "broker/requests/share_fetch.py",
    "broker/requests/share_fetch_read.py",
    "broker/requests/share_fetch_reply.py",
    "broker/requests/share_fetch_wait.py",
    "broker/requests/txn_offset_commit.py",
    "broker/shell/loop/spin.py",
    "broker/shell/proxy/context.py",
    "broker/turn/decision.py",
    "broker/turn/durability.py",
    "broker/turn/executor.py",
    "broker/turn/flush_state.py",
    "broker/turn/jobs.py",
    "broker/turn/learned.py",
    "broker/turn/metrics.py",
    "broker/turn/timers.py",
    "broker/turn/turn.py",
    "broker/turn/write.py",
    "broker/wire/backlog.py",
    "broker/wire/clients.py",
    "broker/wire/connection.py",
    "broker/wire/parked.py",
    "broker/wire/reply_queue.py",
    "broker/wire/reply_stream.py",
    "broker/wire/route.py",
    "broker/wire/router.py",
    "protocol/record.py",
    "protocol/record_batch.py",
    "storage/cleaning/compaction.py",
    "storage/cleaning/compaction_filter.py",
    "storage/cleaning/compaction_plan.py",
    "storage/clock/clock.py",
    "storage/clock/movable_clock.py",
    "storage/files/disk.py",
    "storage/files/handle.py",
    "storage/log/log.py",
    "storage/segments/batches.py",
    "storage/segments/file_slice.py",
    "storage/segments/index.py",
    "storage/segments/leader_epochs.py",
    "storage/segments/log_writer.py",
    "storage/segments/rolling.py",
    "storage/segments/segment.py",
    "storage/segments/spans.py",
)


def copy(folder: Path, packages: tuple[str, ...]) -> None:
    """The project as it is, without anything built."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__", "target", "*.so")
    for name in packages:
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignored)
    for path in REPOSITORY.iterdir():
        if path.is_file():
            shutil.copy(path, folder)


def build(folder: Path) -> None:
    """Compile in the folder."""
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    os.chdir(folder)
    sys.path.insert(0, str(folder))
    # A wheel is built without the extras (jwt); modules that are not compiled import them, and `make lint` checks that.
    checked = ["--ignore-missing-imports", *MODULES]
    # A C file for each module: one for all takes 1.5 GB and three times the processor time. -O3 gains nothing measured.
    extensions = mypycify(checked, opt_level="2", debug_level="0", group_name="momus", multi_file=True)

    class SideBySide(build_ext):
        """As many C files at once as there are cores; setuptools alone compiles those of an extension in turn."""

        def build_extensions(self) -> None:
            whole = self.compiler.compile

            def compile_each(sources: list[str], **words: Any) -> list[str]:
                with ThreadPoolExecutor(min(MOST_AT_ONCE, os.cpu_count() or 1)) as pool:
                    made = pool.map(lambda source: whole([source], **words), sources)
                    return [each for objects in made for each in objects]

            self.compiler.compile = compile_each
            super().build_extensions()

    command = SideBySide(Distribution({"name": "momus", "ext_modules": extensions}))
    command.inplace = True
    command.ensure_finalized()
    command.run()
    shutil.rmtree(folder / "build", ignore_errors=True)
    Path(NOTE).write_text(f"mypyc {version('mypy')}\n")


def main() -> None:
    """Build into the folder named on the command line."""
    arguments = [each for each in sys.argv[1:] if each != "--for-wheel"]
    folder = Path(arguments[0] if arguments else REPOSITORY / "build" / "compiled").resolve()
    copy(folder, COMPILED if "--for-wheel" in sys.argv else COPIED)
    build(folder)


if __name__ == "__main__":
    main()
