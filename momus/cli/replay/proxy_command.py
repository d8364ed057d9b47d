"""`momus proxy`: faults, journal and page in front of a Kafka cluster that runs already."""

from __future__ import annotations

import os

import click

from momus.cli.connect_options import client_options
from momus.cli.serve_variables import Users, check_addresses, endpoint_of, read_token, read_users
from momus.client.connect_settings import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO, Any

# Beginnings of the settings that listeners have: a proxy has no others.
OBEYED = (
    "advertised.",
    "broker.rack",
    "connection",
    "controller.listener",
    "listener",
    "max.connection",
    "queued.max.",
    "sasl.",
    "socket.",
    "ssl.",
)


@click.command()
@click.option(
    "--to",
    metavar="HOST:PORT[,...]",
    required=True,
    help="Some brokers of the cluster; the proxy finds the others. -X and --command-config say how it connects.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:9092",
    show_default=True,
    help="Where clients reach the first broker; the next ones are on the next ports. With port 0 the system chooses.",
)
@click.option("--advertise", metavar="HOST", help="What clients are told as the host.  [default: the one they used]")
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A broker setting of the listeners; repeatable."
)
@click.option(
    "-l",
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="warning",
    show_default=True,
)
@click.option("--statsd", metavar="HOST:PORT", help="Send DogStatsD metrics there over UDP.")
@click.option("--otel", metavar="URL", help="Send traces there, by OTLP over HTTP: http://127.0.0.1:4318.")
@click.option(
    "--control", metavar="HOST:PORT", help="Where `momus fault`, `tail` and others reach it; port 0 is allowed."
)
@click.option("--control-anyone", is_flag=True, help="Allow --control on an address that is not loopback.")
@click.option(
    "--control-token-file", type=click.File(encoding="utf-8"), help="A file with the token that --control asks for."
)
@click.option("--ui", is_flag=True, help="Print a link to its page; without --control on a free port.")
@click.option(
    "--faults",
    "faults_file",
    type=click.File(encoding="utf-8"),
    help="A JSON file with a list of faults that act from the start (docs/faults.md).",
)
@click.option(
    "--journal-mb",
    "--journal",
    type=click.IntRange(0, 4096),
    default=0,
    metavar="MB",
    help="Keep the last requests and replies, so many MB.  [default: none]",
)
@click.option(
    "--security",
    type=click.Choice(["sasl_ssl", "sasl_plaintext", "ssl", "mtls"]),
    help="Of the listeners, as `momus serve` has it. Without it, what clients say by SASL goes to the cluster.",
)
@click.option(
    "--user", "user_texts", multiple=True, type=Users(), metavar="NAME:PASSWORD", help="One of the proxy's own."
)
@click.option("--user-file", type=click.File(encoding="utf-8"), help="A file of more users, NAME:PASSWORD a line.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, resolve_path=True),
    help="Keep all that passes in this file, written at the end, for `momus replay`.",
)
@client_options
def proxy(
    to: str,
    listen: str,
    advertise: str | None,
    assignments: tuple[str, ...],
    log_level: str,
    statsd: str | None,
    otel: str | None,
    control: str | None,
    control_anyone: bool,
    control_token_file: IO[str] | None,
    ui: bool,
    faults_file: IO[str] | None,
    journal_mb: int,
    security: str | None,
    user_texts: tuple[str, ...],
    user_file: IO[str] | None,
    record: str | None,
) -> None:
    """Stand before a Kafka cluster, with faults, journal and page, until SIGTERM or SIGINT (docs/proxy.md).

    The output begins with `momus ready HOST:PORT[,...]`: clients connect there. With --control a line `momus control
    HOST:PORT` follows, then with --ui `momus ui URL`.
    """
    check_addresses({"--to": to, "--listen": listen, "--control": control, "--statsd": statsd})
    token = read_token(os.environ.get("MOMUS_CONTROL_TOKEN"), control_token_file)
    words: dict[str, Any] = endpoint_of(control, control_anyone, token, ui)
    from broker.shell.proxy.serve import serve_proxy
    from momus.cli.fault_commands import read_faults
    from momus.client.properties import parse_assignments
    from momus.client.upstream import connecting

    try:
        properties = parse_assignments(assignments)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from None
    _check_settings(properties)
    raise SystemExit(
        serve_proxy(
            to=to,
            listen=listen,
            advertise=advertise,
            properties=properties,
            log_level=log_level,
            statsd=statsd,
            otel=otel,
            **words,
            faults=read_faults(faults_file) if faults_file else [],
            journal_bytes=journal_mb << 20,
            record=record or "",
            security=security,
            users=read_users(user_texts, user_file, security, listen) or None,
            **connecting(),
        )
    )


def _check_settings(properties: Mapping[str, str]) -> None:
    """Refuse what says how to connect to the cluster, and name what a proxy leaves to it; unknown keys are refused when
    it starts. Errors: BadParameter."""
    from broker.config.settings import BROKER_KEYS

    for key in sorted(properties.keys() & (READ - BROKER_KEYS.keys())):
        raise click.BadParameter(f"{key} says how to connect to the cluster: give it by -X", param_hint="--set")
    for key in sorted(key for key in properties.keys() & BROKER_KEYS.keys() if not key.startswith(OBEYED)):
        click.echo(f"momus: --set {key}: no effect: a proxy has listeners, and the rest is the cluster's", err=True)
