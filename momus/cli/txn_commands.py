"""`momus txn list|describe`."""

from __future__ import annotations

import click

from momus.cli.commands import _bootstrap, _json, _names, _show, _table
from momus.cli.say import say, say_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.client.txn_client import TransactionClient


def _connect(bootstrap: str, timeout_s: float) -> TransactionClient:
    from momus.client.txn_client import TransactionClient

    return TransactionClient(bootstrap, timeout_s=timeout_s)


@click.group()
def txn() -> None:
    """List and describe transactions."""


@txn.command("list")
@_json
@_bootstrap
def txn_list(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List transactional ids."""
    with _connect(bootstrap, timeout_s) as client:
        rows = client.transactions()
    _show(as_json, rows, ("transactional_id", "state", "producer_id", "coordinator"))


@txn.command("describe")
@click.argument("names", nargs=-1, metavar="TRANSACTIONAL_ID...")
@_json
@_bootstrap
def txn_describe(names: tuple[str, ...], as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show producer, partitions and groups of transactions: whose zombie was this?"""
    wanted = _names(names, (), "transactional id")
    with _connect(bootstrap, timeout_s) as client:
        rows = [client.describe_transaction(name) for name in wanted]
    if as_json:
        say_json(rows)
    else:
        for row in rows:
            if row["error"] is not None:
                say(f"{row['transactional_id']}: {row['error']}", err=True)
                continue
            say(
                f"{row['transactional_id']}  {row['state']}  producer {row['producer_id']} epoch "
                f"{row['producer_epoch']}  timeout {row['timeout_ms']} ms  coordinator {row['coordinator']}"
            )
            for partition in row["partitions"]:
                say(f"  {partition}")
            _table(
                row["groups"],
                ("group", "generation", "member", "instance", "client", "producer_epoch", "partitions"),
            )
    if any(row["error"] is not None for row in rows):
        raise SystemExit(1)
