"""`momus pipeline JOB`: hands its words to pipeline.job, which reads them as spark-submit would."""

from __future__ import annotations

import click


# The job's own parser knows its options and its help.
@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="JOB ...")
def pipeline(words: tuple[str, ...]) -> None:
    """Read the logs with Spark: history, lag, audit, migration."""
    from momus import launch

    launch.use_packages()
    from pipeline.job import main

    raise SystemExit(main(words))
