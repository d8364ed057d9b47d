"""The job `report`: one self-contained HTML page of lag, commits, rebalances, transactions, the audit and bytes.

momus pipeline report --input ./data --output report.html
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pipeline.errors import PipelineError
from pipeline.files import write_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This job has only the shared options."""


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Write the page to --output, or print it; returns 0. Errors: PipelineError: Matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise PipelineError("the report needs Matplotlib: pip install '.[spark]'")
    # 290 ms, most of it for Matplotlib, which may be absent where only other jobs run.
    from pipeline.report.figures import figures
    from pipeline.report.page import page

    text = page(figures(spark, args.input))
    if args.output is None:
        sys.stdout.write(text)
    else:
        write_bytes(args.output, text.encode())
    return 0
