"""The command `momus doctor`."""

from __future__ import annotations

import click

from momus.cli.commands import _json
from momus.cli.say import say_json
from momus.kit.visible import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.cli.doctor.findings import Finding

COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command()
@click.argument("addresses", nargs=-1, required=True, metavar="HOST:PORT...")
@click.option("--timeout", "timeout_s", default=3.0, show_default=True, help="Seconds to wait for each answer.")
@click.option("--write", is_flag=True, help="Also make a topic, write and read a record, compare clocks, delete it.")
@click.option(
    "--cafile", type=click.Path(exists=True, dir_okay=False), help="Certificates to trust, for TLS listeners."
)
@_json
def doctor(addresses: tuple[str, ...], timeout_s: float, write: bool, cafile: str | None, as_json: bool) -> None:
    """Say why clients cannot use a broker.

    Looks at who answers, the addresses that it sends clients to, API versions, TLS, coordinators and partitions; with
    --write at its clock too. It changes nothing without --write. Exit code 1: there is a problem.
    """
    import ssl

    for address in addresses:
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise click.BadParameter(f"{address!r} is not HOST:PORT", param_hint="HOST:PORT")
    if cafile is not None:
        try:
            ssl.create_default_context(cafile=cafile)
        except OSError as error:
            raise click.BadParameter(f"{cafile} holds no certificate in PEM: {error}", param_hint="--cafile") from None
    from momus.cli.doctor.examination import examine

    findings: list[Finding] = []
    for address in addresses:
        for finding in examine(address, timeout_s, write=write, cafile=cafile):
            if finding not in findings:
                findings.append(finding)
                if not as_json:
                    mark = click.style(f"{finding.level:8}", fg=COLOURS[finding.level])
                    click.echo(f"{mark} {visible(f'{finding.about}: {finding.sentence}')}")
    if as_json:
        say_json([finding._asdict() for finding in findings])
    if any(finding.level == "problem" for finding in findings):
        raise SystemExit(1)
