"""`momus pipeline JOB`: passes its words on to pipeline.job, which parses them as under spark-submit."""

from __future__ import annotations

import click


# The job's own parser handles its options and --help.
@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="JOB ...")
def pipeline(words: tuple[str, ...]) -> None:
    """Read the logs with Spark: history, lag, audit, migration."""
    # In the wheel it is importable only now; 30 ms that other commands do not need.
    try:
        from pipeline.job import main
    except ModuleNotFoundError as error:
        if error.name != "pipeline":
            raise
        raise click.ClickException("this momus is a binary without the pipeline: pip install momus[spark]") from None

    raise SystemExit(main(words))
