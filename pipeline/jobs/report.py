"""The job `report`: one self-contained HTML page of lag, commits, rebalances, transactions, the audit and bytes.

momus pipeline report --input ./data --output report.html
momus pipeline report --input ./data --output report.html --time-zone Europe/Berlin
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pipeline.errors import PipelineError
from pipeline.files import write_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument(
        "--time-zone", default="UTC", type=_zone, metavar="NAME", help="of the page's times, as Europe/Berlin [UTC]"
    )


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise argparse.ArgumentTypeError(f"{name!r} is no time zone of this machine, as Europe/Berlin") from None
    return name


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Write the page to --output, or print it; returns 0. Errors: PipelineError: Matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise PipelineError("the report needs Matplotlib: pip install '.[spark]'")
    # 290 ms, most of it for Matplotlib, which may be absent where only other jobs run.
    from pipeline.report.figures import figures
    from pipeline.report.page import page

    text = page(figures(spark, args.input, args.time_zone))
    if args.output is None:
        sys.stdout.write(text)
    else:
        write_bytes(args.output, text.encode())
    return 0
