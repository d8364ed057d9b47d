"""The command line: `momus serve`, and where the other commands are.

Exit codes: 0 good, 1 refused or failed, 2 bad usage. `serve` imports click and nothing else before the broker; the
commands that ask a broker import the codec when they run: `protocol`, `storage` and `broker` can be imported in each
command, because `cli` has called `launch.use_packages()`, and not where a module of commands is imported.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from momus import __version__, launch
from momus.cli.serve_variables import (
    ServeCommand,
    Users,
    check_addresses,
    endpoint_of,
    loads_of,
    read_token,
    read_users,
    registry_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

DEFAULT_LISTEN = "127.0.0.1:9092"
KEYED = {  # options that are a broker's setting
    "as_version": "as.version",
    "codec": "codec",
    "fetch_waits": "fetch.waits",
    "retain_for": "archive.retain.group",
    "registry_as": "registry.as",
    "schema_registry": "schema.registry.url",
}
DEFAULT_DATA_DIR = "./data"


# "module" or "module:function". Each is imported when it is asked for: `momus serve` starts 15 ms sooner than with
# all of them.
COMMANDS = {
    "broker": "momus.cli.control_commands",
    "clock": "momus.cli.control_commands",
    "cluster": "momus.cli.cluster_commands",
    "compare": "momus.cli.replay.compare_command",
    "consume": "momus.cli.records.commands",
    "decode": "momus.cli.decode_command",
    "doctor": "momus.cli.doctor.command",
    "dump": "momus.cli.dump.commands",
    "explore": "momus.cli.explore_command",
    "fault": "momus.cli.fault_commands",
    "group": "momus.cli.groups.by_control",
    "health": "momus.cli.commands",
    "kit": "momus.cli.kits.command",
    "load-schema": "momus.cli.dump.commands:load_schema",
    "offsets": "momus.cli.offset_commands",
    "open": "momus.cli.replay.open_command:open_",
    "pipeline": "momus.cli.pipeline_commands",
    "produce": "momus.cli.records.commands",
    "proxy": "momus.cli.replay.proxy_command:proxy",
    "repair": "momus.cli.repair_command",
    "replay": "momus.cli.replay.command",
    "step": "momus.cli.replay.open_command",
    "storage": "momus.cli.offset_commands",
    "tail": "momus.cli.journal_commands",
    "topic": "momus.cli.topics.commands",
    "txn": "momus.cli.txn_commands",
}


class Commands(click.Group):
    """The commands of this file, and those of COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name; None: there is none."""
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name].partition(":")
            found: click.Command = getattr(import_module(module), name or cmd_name)
            return found
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, which asks for a near name among all commands that it knows."""
        if args[0] not in self.list_commands(ctx):
            for name in COMMANDS:
                self.commands.setdefault(name, click.Command(name))
        return super().resolve_command(ctx, args)


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"momus {__version__} ({launch.build()})")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, and whether it is compiled.",
)
def cli() -> None:
    """A Kafka-protocol broker for tests, CI and laptops."""
    launch.use_packages()


@cli.command(cls=ServeCommand)
@click.option(
    "--listen",
    metavar="[NAME://]HOST:PORT",
    help="Where to listen; port 0 lets the system choose. Several listeners: --set listeners=..."
    f"  [default: {DEFAULT_LISTEN}]",
)
@click.option(
    "-d",
    "--data-dir",
    type=click.Path(file_okay=False),
    help=f"Where the data is; one broker at a time.  [default: {DEFAULT_DATA_DIR}]",
)
@click.option("--brokers", type=click.IntRange(1, 100), default=1, show_default=True, help="Virtual brokers.")
@click.option(
    "--flush",
    type=click.Choice(["memory", "os", "fsync"]),
    default="os",
    show_default=True,
    help="What a reply waits for: nothing, write(2) (survives kill -9), fdatasync(2) (survives power loss).",
)
@click.option(
    "--codec",
    type=click.Choice(["generated", "construct"]),
    help="What reads requests and writes responses: generated functions, or construct, which is slow but is what"
    " `momus decode` shows.  [default: generated]",
)
@click.option("--config", "config_file", type=click.File(encoding="utf-8"), help="Kafka's server.properties.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="One Kafka broker setting; repeatable.")
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
    "--control",
    metavar="HOST:PORT",
    help="Where `momus clock`, `tail` and others reach this one, also by -d DIR of its data; port 0 is allowed.",
)
@click.option("--control-anyone", is_flag=True, help="Allow --control on an address that is not loopback.")
@click.option(
    "--control-token",
    metavar="TOKEN",
    help="What requests to --control must carry (Authorization: Bearer TOKEN). Needed with --control-anyone.",
)
@click.option(
    "--control-token-file",
    type=click.File(encoding="utf-8"),
    help="A file that holds that token: `ps` shows words of the command line to every user of the machine.",
)
@click.option(
    "--ui", is_flag=True, help="Print a link to the page that shows the broker; without --control on a free port."
)
@click.option(
    "--faults",
    "faults_file",
    type=click.File(encoding="utf-8"),
    help="A JSON file with a list of faults that act from the start (docs/faults.md).",
)
@click.option(
    "--journal",
    "journal_mb",
    type=click.IntRange(0, 4096),
    default=0,
    metavar="MB",
    help="Keep the last requests and replies, so many MB, for `momus tail` and tests.  [default: none]",
)
@click.option(
    "--security",
    type=click.Choice(["sasl_ssl", "sasl_plaintext", "ssl", "mtls"]),
    help="Make a test authority, certificates and users; files for clients are where the line `momus clients` says.",
)
@click.option(
    "--user",
    "user_texts",
    multiple=True,
    type=Users(),
    metavar="NAME:PASSWORD",
    help="A user of a listener that authenticates, stored salted; repeatable.  [default with --security: client]",
)
@click.option(
    "--user-file",
    type=click.File(encoding="utf-8"),
    help="A file of more users, NAME:PASSWORD a line, out of sight of `ps`.",
)
@click.option(
    "--as-version",
    metavar="RELEASE",
    help="Answer as this Apache Kafka does, 2.1 to 4.4: no newer API versions and features.  [default: all there is]",
)
@click.option(
    "--fetch-waits",
    type=click.Choice(["real", "frozen"]),
    help="While the clock stands, a Fetch waits on in real time, or until the clock is moved on.  [default: real]",
)
@click.option(
    "--schema-registry",
    metavar="URL",
    help="Decode Avro and Protobuf messages on the page by this registry: http://127.0.0.1:8081.",
)
@click.option(
    "--registry",
    metavar="HOST:PORT",
    help="Serve a schema registry there, with Confluent's REST API (docs/registry.md); port 0 is allowed.",
)
@click.option(
    "--registry-as",
    type=click.Choice(["7.9", "8.0"]),
    help="Answer by the codes and fields of this Confluent Platform.  [default: codes of 7.9, fields of both]",
)
@click.option(
    "--load",
    "loads",
    multiple=True,
    metavar="FILE|DIR",
    help="Fill the broker with what this file says before it listens, or those of a folder (docs/load.md); repeatable.",
)
@click.option(
    "--load-if-present",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="Whether a topic, group or user of --load that is there already ends the start, or stays as it is.",
)
@click.option("--kafka-lines", is_flag=True, help="Also print the lines by which Testcontainers sees a start.")
@click.option(
    "--retain-for",
    metavar="GROUP",
    help="Retention and the cleaner wait until this group, the archive, has committed past what they would remove.",
)
def serve(
    listen: str | None,
    data_dir: str | None,
    brokers: int,
    flush: str,
    config_file: IO[str] | None,
    assignments: tuple[str, ...],
    log_level: str,
    statsd: str | None,
    otel: str | None,
    control: str | None,
    control_anyone: bool,
    control_token: str | None,
    control_token_file: IO[str] | None,
    faults_file: IO[str] | None,
    journal_mb: int,
    security: str | None,
    user_texts: tuple[str, ...],
    user_file: IO[str] | None,
    kafka_lines: bool,
    **keyed: Any,
) -> None:
    """Run a broker until SIGTERM or SIGINT.

    Settings come from --config, then KAFKA_... variables as in Kafka's Docker image, then --set; the later wins. Each
    option has a MOMUS_... variable; a word here wins over it. The output begins with `momus ready HOST:PORT[,...]`;
    with --control a line `momus control HOST:PORT` follows; so do `momus registry URL` and `momus ui URL`.
    """
    settings = _read_settings(config_file, assignments, {KEYED[name]: keyed[name] for name in KEYED})
    if listen is None and "listeners" not in settings:
        listen = DEFAULT_LISTEN
    check_addresses({"--listen": listen, "--statsd": statsd, "--control": control})
    token = read_token(control_token, control_token_file)
    endpoint = endpoint_of(control, control_anyone, token, keyed["ui"]) | registry_of(keyed["registry"], settings)
    data_dir = data_dir or settings.get("log.dirs", settings.get("log.dir", DEFAULT_DATA_DIR)).split(",")[0]
    from broker.shell.server import serve as serve_broker

    raise SystemExit(
        serve_broker(
            listen=listen,
            data_dir=os.path.abspath(data_dir),  # as clients see it in the broker's settings
            brokers=brokers,
            flush=flush,
            properties=settings,
            log_level=log_level,
            statsd=statsd,
            otel=otel,
            **endpoint,
            faults=_read_faults(faults_file) if faults_file else [],
            journal_bytes=journal_mb << 20,
            kafka_lines=kafka_lines,
            security=security,
            users=read_users(user_texts, user_file, security, listen) or None,
            load=loads_of(keyed["loads"], keyed["load_if_present"]),
            typed=tuple(text.partition("=")[0].strip() for text in assignments),
        )
    )


def _read_faults(file: IO[str]) -> list[dict[str, Any]]:
    from momus.cli.fault_commands import read_faults  # 5 ms

    return read_faults(file)


def _read_settings(
    config_file: IO[str] | None, assignments: tuple[str, ...], named: dict[str, str | None]
) -> dict[str, str]:
    """Kafka's settings from a file, the environment, --set and options of their own; the later wins."""
    from momus.client.properties import parse_assignments, parse_environment, parse_properties, secrets_of_images

    try:
        settings = parse_properties(config_file.read()) if config_file else {}
    except ValueError as error:
        raise click.BadParameter(f"{config_file.name if config_file else ''}: {error}", param_hint="--config") from None
    settings.update({**secrets_of_images(os.environ), **parse_environment(os.environ)})
    try:
        settings.update(parse_assignments(assignments))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from None
    settings.update({key: value for key, value in named.items() if value is not None})
    return settings


def main() -> None:
    """Entry point of the `momus` command."""
    try:
        cli(prog_name="momus")
    except OSError as error:
        click.echo(f"momus: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
