"""`-X KEY=VALUE` and `--config FILE` of jobs that ask a broker: how they connect, in Java's words or librdkafka's."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from momus.client.connect_settings import SETTINGS
from momus.client.properties import parse_assignments, parse_properties
from momus.client.wire_security import login_of, stores_as_pem
from pipeline.errors import PipelineError

_OF_STORES: Final = ("ssl.truststore.", "ssl.keystore.")
_JAVA_ALONE: Final = (*_OF_STORES, "sasl.jaas.config")


def add_client_arguments(parser: argparse.ArgumentParser) -> None:
    """Add both options."""
    parser.add_argument(
        "-X",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="client",
        help="a client's setting; may be repeated",
    )
    parser.add_argument("--config", metavar="FILE", help="a client.properties, of Java or librdkafka")


def given_settings(args: argparse.Namespace) -> dict[str, str]:
    """What both say; -X comes first. Errors: PipelineError, without the text: it may hold a secret."""
    found: dict[str, str] = {}
    if args.config:
        try:
            text = Path(args.config).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PipelineError(f"--config {args.config} cannot be read: {error}") from None
        found = {key.removeprefix("kafka."): value for key, value in parse_properties(text).items()}
    try:
        return found | parse_assignments(args.client)
    except ValueError:
        raise PipelineError("-X is KEY=VALUE") from None


def has_settings(args: argparse.Namespace) -> bool:
    """Whether either was given."""
    return bool(getattr(args, "client", None) or getattr(args, "config", None))


def connect_with(args: argparse.Namespace) -> None:
    """Have the command line's client connect so. Errors: PipelineError."""
    SETTINGS.clear()
    SETTINGS.update(given_settings(args))


def for_librdkafka(given: Mapping[str, str]) -> dict[str, Any]:
    """The settings in librdkafka's words. It has no key stores: what they hold is given as PEM.

    Errors: PipelineError.
    """
    found: dict[str, Any] = {key: value for key, value in given.items() if not key.startswith(_JAVA_ALONE)}
    if not any(key.startswith(_JAVA_ALONE) for key in given):
        return found
    stores = {key: value for key, value in given.items() if key.startswith((*_OF_STORES, "ssl.key.password"))}
    try:
        if text := given.get("sasl.jaas.config"):
            found["sasl.username"], found["sasl.password"] = login_of(text)
        material = stores_as_pem(stores)
    except OSError as error:
        raise PipelineError(str(error)) from None
    if "ssl.key.pem" in material:
        found.pop("ssl.key.password", None)
    return found | material
