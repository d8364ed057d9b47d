"""What `momus serve` is told: a MOMUS_... variable for each of its options, what variables of images say, and whether
words and variables can be meant."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import click

from momus.client.image_variables import words_about_images
from momus.client.properties import is_of_kubernetes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

PREFIX = "MOMUS_"
LOOPBACK = r"localhost|127\.\d+\.\d+\.\d+|\[?::1\]?"
# Read by other programs of momus: the pytest plugin, the commands that ask a broker, the kits of clients/, the tests.
OF_OTHERS = frozenset(
    PREFIX + name
    for name in (
        "ADDRESS",
        "ALONE",
        "BENCH_CACHE",
        "BOOTSTRAP_SERVERS",
        "CACHE",
        "COMMAND",
        "EXPLORE",
        "EXPLORE_REPORT",
        "EXPLORE_WHAT",
        "EXPLORE_WORKERS",
        "HYPOTHESIS",
        "KEEP_FAILED",
        "SCHEDULE",
        "SEED",
        "TEST_CHILD",
        "UPSTREAM",
        "UPSTREAM_CONFIG",
    )
)


class Lines(click.types.StringParamType):
    """The text of an option that may be repeated; in a variable, one a line."""

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        """Its lines."""
        return [line.strip() for line in rv.splitlines() if line.strip()]


class Users(Lines):
    """NAME:PASSWORD; in a variable one a line, and without spaces, which most likely stand between two users."""

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        """Its lines. Errors: BadParameter."""
        lines = super().split_envvar_value(rv)
        if any(len(line.split()) > 1 for line in lines):
            raise click.BadParameter(
                "a line has a space: write one NAME:PASSWORD a line; a password with a space needs --user",
                param_hint="MOMUS_USER",
            )
        return lines


class ServeCommand(click.Command):
    """A command each of whose options can be given as a variable: --data-dir as MOMUS_DATA_DIR.

    A word on the command line wins over the variable. An empty variable is one that is not set. A flag takes 1, true,
    yes, on, 0, false, no, off; an option that may be repeated takes one value a line.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for option in self.params:
            if isinstance(option, click.Option):
                option.envvar = variable_of(option)
                option.show_envvar = True
                if option.multiple and option.type is click.STRING:
                    option.type = Lines()

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, after a line for each word of the environment that is not obeyed."""
        for words in words_about(os.environ, self.variables):
            click.echo(f"momus: {words}", err=True)
        return super().invoke(ctx)

    @property
    def variables(self) -> list[str]:
        """The variables of all options."""
        return [variable_of(option) for option in self.params if isinstance(option, click.Option)]


def variable_of(option: click.Option) -> str:
    """MOMUS_DATA_DIR for -d, --data-dir."""
    return PREFIX + max(option.opts, key=len).lstrip("-").upper().replace("-", "_")


def words_about(environment: Mapping[str, str], variables: Sequence[str]) -> list[str]:
    """A sentence about what is not obeyed: Kubernetes' and images' variables, and MOMUS_... ones that nothing reads."""
    found = []
    of_kubernetes = [name for name, value in environment.items() if is_of_kubernetes(name, value)]
    if of_kubernetes:
        found.append(
            f"{', '.join(sorted(of_kubernetes))}: ignored, because Kubernetes sets it for a Service"
            " (enableServiceLinks: false in the Pod leaves it out)"
        )
    found += words_about_images(environment)
    known = {*variables, *OF_OTHERS, *of_kubernetes}
    for name in sorted(name for name in environment if name.startswith(PREFIX) and name not in known):
        import difflib  # 3 ms: most environments have no such name

        near = difflib.get_close_matches(name, variables, 1, 0.75)
        question = f" Did you mean {near[0]}?" if near else ""
        found.append(f"{name} is no variable of `momus serve`, and has no effect.{question}")
    return found


def read_users(
    texts: tuple[str, ...], file: IO[str] | None, security: str | None, listen: str | None
) -> dict[str, str]:
    """Users by name, with their passwords."""
    from momus.client.properties import environment_users  # there already

    try:
        users = environment_users(os.environ)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    lines = [line for line in file.read().splitlines() if line.strip()] if file is not None else []
    for text in (*lines, *texts):
        name, colon, password = text.partition(":")
        if not name or not ((colon and password) or security == "mtls"):
            raise click.BadParameter("it is NAME:PASSWORD", param_hint="--user")  # the text may hold a secret
        users[name] = password
    hosts = [address.rpartition("://")[2].rpartition(":")[0] for address in (listen or "").split(",")]
    if security is not None and security != "ssl" and not users and not all(re.fullmatch(LOOPBACK, h) for h in hosts):
        raise click.BadParameter(
            f"{listen!r} is not loopback, and the password of the user that would be made is known to everybody: name"
            " others by --user NAME:PASSWORD",
            param_hint="--security",
        )
    return users


def loads_of(paths: tuple[str, ...], if_present: str) -> dict[str, Any] | None:
    """What is to be loaded, by words and by the variables of wurstmeister's image; None: nothing."""
    topics = os.environ.get("KAFKA_CREATE_TOPICS", "")
    if not paths and not topics.strip():
        return None
    separator = os.environ.get("KAFKA_CREATE_TOPICS_SEPARATOR") or None
    return {"paths": list(paths), "if_present": if_present, "create_topics": topics, "separator": separator}


def read_token(token: str | None, file: IO[str] | None) -> str | None:
    """The token of the control endpoint. Errors: UsageError: two of them, or an empty file."""
    if file is None:
        return token
    if token:
        raise click.UsageError("give --control-token (or MOMUS_CONTROL_TOKEN) or --control-token-file, not both")
    found = file.read().strip()
    if not found:
        raise click.BadParameter(f"{file.name} is empty", param_hint="--control-token-file")
    return found


def registry_of(registry: str | None, settings: dict[str, str]) -> dict[str, Any]:
    """Where to serve a registry: what is typed, or what Confluent's image is told. Errors: UsageError."""
    listeners = os.environ.get("SCHEMA_REGISTRY_LISTENERS", "")
    if registry is None and listeners:
        registry = listeners.split(",")[0].strip().rpartition("://")[2]
    if registry is not None and settings.get("schema.registry.url"):
        raise click.UsageError("--registry serves a schema registry, --schema-registry asks another one: give one")
    check_addresses({"--registry": registry})
    return {"registry": registry}


def endpoint_of(control: str | None, anyone: bool, token: str | None, ui: bool) -> dict[str, Any]:
    """What the broker is told of its control endpoint; the page needs one."""
    if control is not None and not re.fullmatch(LOOPBACK, control.rpartition(":")[0]):
        _check_open(control, anyone, token)
    return {"control": control or ("127.0.0.1:0" if ui else None), "control_token": token or None, "ui": ui}


def _check_open(control: str, anyone: bool, token: str | None) -> None:
    """Refuse an address that others reach unless that is wanted, and guarded by a token."""
    missing = [] if anyone else ["--control-anyone"]
    if not token:
        missing.append("--control-token-file FILE (or MOMUS_CONTROL_TOKEN)")
    if missing:
        raise click.BadParameter(
            f"{control!r} is not loopback, and whoever reaches it may stop brokers: add {' and '.join(missing)}",
            param_hint="--control",
        )


def check_addresses(given: dict[str, str | None]) -> None:
    """Errors: BadParameter: an option, by name, whose text is not HOST:PORT."""
    for option, addresses in given.items():
        if addresses is not None:
            _check_address(option, addresses)


def _check_address(option: str, addresses: str) -> None:
    for address in addresses.split(","):
        name, found, place = address.rpartition("://")
        if found and option != "--listen":
            raise click.BadParameter(f"{address!r} is not HOST:PORT: leave {name}:// out", param_hint=option)
        host, colon, port = place.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise click.BadParameter(f"{address!r} is not HOST:PORT", param_hint=option)
