"""The commands `momus dump` and `momus load-schema`."""

from __future__ import annotations

import click

from momus.cli.commands import _bootstrap
from momus.cli.say import say


@click.command("load-schema")
def load_schema() -> None:
    """Print the JSON Schema of the files that `momus serve --load` takes, for editors and for checks in CI."""
    import json

    from broker.load.fields import json_schema

    click.echo(json.dumps(json_schema(), indent=1, ensure_ascii=False))


@click.command()
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to: .json or .yaml.  [default: JSON, printed]")
@click.option("-t", "--topic", "topics", multiple=True, metavar="PATTERN", help="Only these (* and ? fit); repeatable.")
@click.option("-g", "--group", "groups", multiple=True, metavar="PATTERN", help="Only these (* and ? fit); repeatable.")
@click.option("--since", metavar="TIME", help="Only records since then: 2030-01-01T00:00Z, Unix milliseconds, 1h ago.")
@click.option(
    "--max-records", "most_records", type=click.IntRange(0), metavar="N", help="Of each partition the newest N."
)
@click.option(
    "--mask-values",
    "masks_values",
    is_flag=True,
    help="Letters of values and header values become x, digits and numbers 0; keys and names of fields stay.",
)
@_bootstrap
def dump(
    output: str,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    since: str | None,
    most_records: int | None,
    masks_values: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Write what any Kafka holds as a file for `momus serve --load`: topics, records, offsets, users, ACLs, quotas.

    What cannot be read, as passwords, is listed on standard error and in the file.
    """
    from momus.cli.dump.dumping import Dumper, Wanted
    from momus.cli.dump.layout import check_name, text_of
    from momus.cli.records.client import RecordClient
    from momus.cli.records.places import PlaceError, moment_ms

    check_name(output)
    try:
        since_ms = None if since is None else moment_ms(since)
    except PlaceError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
    with RecordClient(bootstrap, timeout_s=timeout_s) as client:
        dumper = Dumper(client, Wanted(topics, groups, since_ms, most_records, masks_values))
        try:
            document = dumper.document()
        except ValueError as error:
            raise click.ClickException(str(error)) from None
    text = text_of(document, output)
    with click.open_file(output, "w", encoding="utf-8") as file:
        file.write(text)
    for note in dumper.notes:
        say(f"not dumped: {note}", err=True)
