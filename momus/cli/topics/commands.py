"""The command `momus topic alter`, beside those of momus.cli.commands."""

from __future__ import annotations

import click

from momus.cli.commands import _bootstrap, _connect, _json, _names, _report, topic

__all__ = ["topic"]


@topic.command("alter")
@click.argument("names", nargs=-1)
@click.option("-t", "--topic", "more", multiple=True, metavar="NAME", help="Same as an argument.")
@click.option("-p", "--partitions", type=click.IntRange(1), help="The new number of partitions; it can only grow.")
@click.option("-c", "--topic-config", "-X", "assignments", multiple=True, metavar="KEY=VALUE", help="Set; repeatable.")
@click.option("--unset", multiple=True, metavar="KEY", help="Give a setting its default again; repeatable.")
@click.option("--dry-run", is_flag=True, help="Ask whether it could be done, and change nothing.")
@_json
@_bootstrap
def topic_alter(
    names: tuple[str, ...],
    more: tuple[str, ...],
    partitions: int | None,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Change settings of topics, and raise their number of partitions.

    Settings change first. Exit code 1: a change was refused; a topic whose settings were refused does not grow.
    """
    from momus.client.properties import parse_assignments

    try:
        configs = parse_assignments(assignments)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--topic-config") from None
    if not configs and not unset and partitions is None:
        raise click.UsageError("change what? --topic-config, --unset or --partitions")
    wanted = _names(names, more)
    with _connect(bootstrap, timeout_s) as client:
        done = {name: {"error": None, "message": None} for name in wanted}
        if configs or unset:
            done |= {row["name"]: row for row in client.alter_configs(wanted, configs, unset, dry_run=dry_run)}
        growing = [name for name in wanted if done[name]["error"] is None]
        if partitions is not None and growing:
            done |= {row["name"]: row for row in client.grow(growing, partitions, dry_run=dry_run)}
    results: list[dict[str, object]] = [{**row, "name": name} for name, row in done.items()]
    _report(as_json, results, "could alter" if dry_run else "altered")
