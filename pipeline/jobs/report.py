"""The job `report`: one self-contained HTML page of lag, commits, rebalances, transactions, the audit and bytes.

momus pipeline report --input ./data --output report.html
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from pipeline.errors import PipelineError
from pipeline.files import open_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDS_KAFKA: Final = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing but what all jobs have."""


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Write the page to --output, or print it."""
    if find_spec("matplotlib") is None:
        raise PipelineError("the report is drawn by Matplotlib: pip install 'momus[spark]'")
    from pipeline.report.figures import figures
    from pipeline.report.page import page

    text = page(figures(spark, args.input))
    if args.output is None:
        sys.stdout.write(text)
        return 0
    files, path = open_directory(args.output)
    with files.open_output_stream(path) as stream:
        stream.write(text.encode())
    return 0
