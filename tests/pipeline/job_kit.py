"""Jobs run in the Spark of the tests with the words of a command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.jobs.registry import job_parser


def parsed(job: ModuleType, source: Path, output: Path, *words: str) -> argparse.Namespace:
    """A job's arguments, as its command line has them."""
    name = job.__name__.rpartition(".")[2]
    return job_parser(name, job).parse_args(["--input", str(source), "--output", str(output), *words])


def run(job: ModuleType, spark: Any, source: Path, output: Path, *words: str) -> int:
    """A job with its words; its exit code."""
    return int(job.run(spark, parsed(job, source, output, *words)))
