"""The options `-X KEY=VALUE` and `--config FILE` of commands that ask a broker: how they connect."""

from __future__ import annotations

import click

from momus.client.connect_settings import READ, SETTINGS, nearest, of_security

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

SET_TOPICS = ("topic_create", "topic_alter")


def _begin(context: click.Context) -> None:
    """Forget what an earlier command of this process was told."""
    if not context.meta.get("momus.cli.connect_options"):
        context.meta["momus.cli.connect_options"] = True
        SETTINGS.clear()


def _read_file(context: click.Context, option: click.Parameter, file: IO[str] | None) -> None:
    _begin(context)
    if file is not None:
        from momus.client.properties import parse_properties  # 1 ms

        try:
            found = parse_properties(file.read())
        except ValueError as error:
            raise click.BadParameter(f"{file.name}: {error}", param_hint="--config") from None
        found = {key.removeprefix("kafka."): text for key, text in found.items()}
        if unread := sorted(key for key in found.keys() - READ if of_security(key)):  # a client has others, as acks
            click.echo(f"momus: {file.name}: {', '.join(unread)}: no effect here", err=True)
        SETTINGS.update({**found, **SETTINGS})


def _read_words(context: click.Context, option: click.Parameter, words: tuple[str, ...]) -> None:
    from momus.client.properties import parse_assignments  # 1 ms

    _begin(context)
    try:
        found = parse_assignments(words)
    except ValueError:
        raise click.BadParameter("it is KEY=VALUE", param_hint="-X") from None  # the text may hold a secret
    for key in sorted(found.keys() - READ):
        question = nearest(key)
        if question or of_security(key):
            raise click.BadParameter(f"{key} has no effect here.{question}", param_hint="-X")
        click.echo(f"momus: -X {key}: no effect here: it says nothing of how to connect", err=True)
    SETTINGS.update(found)


def client_options(command: Any) -> Any:
    """Adds both; what they say is in SETTINGS. -X is the topic's settings where a command sets those."""
    command = click.option(
        "--config",
        "--command-config",
        "client_file",
        type=click.File(encoding="utf-8"),
        callback=_read_file,
        expose_value=False,
        help="A client.properties, of Java or librdkafka: security.protocol and what goes with it.",
    )(command)
    words = ["--client-config"] + ([] if command.__name__ in SET_TOPICS else ["-X"])
    return click.option(
        *words,
        "client_words",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_read_words,
        expose_value=False,
        help="One such setting, as -X security.protocol=SASL_SSL; repeatable.",
    )(command)
