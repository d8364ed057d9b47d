"""Runs a job in the local engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.decode.batches import CorruptSegmentError
from pipeline.engine import local_engine
from pipeline.errors import PipelineError
from pipeline.local.progress import Progress
from pipeline.local.session import LocalSession

if TYPE_CHECKING:
    import argparse
    from types import ModuleType


def run_locally(job: ModuleType, args: argparse.Namespace) -> int:
    """Run it; returns the exit code. Errors: PipelineError."""
    progress = Progress()
    session = LocalSession(progress)
    session.skip_damaged = args.skip_damaged
    try:
        with local_engine():
            return int(job.run(session, args))
    except CorruptSegmentError as error:
        raise PipelineError(f"{error}. --skip-damaged goes on after the damage, and lists it") from None
    finally:
        progress.close()
        session.stop()
