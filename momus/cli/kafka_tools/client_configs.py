"""What `kafka-configs` shows and changes of users and clients: SCRAM credentials and quotas."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from momus.cli.kafka_tools.options import Options, say
from momus.client.kafka_client import Client, RequestFailedError, quotas
from protocol.messages.quotas import ComponentData
from protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
NAMES = {number: name for name, (number, _) in MECHANISMS.items()}
QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
TYPES = {"users": "user", "clients": "client-id"}
TITLES = {"user": "user-principal", "client-id": "client-id"}
EXACT, DEFAULT, ANY = 0, 1, 2
ITERATIONS = 4096


class Entity(NamedTuple):
    """What settings are of: a kind in the plural, and a name; "" is the default of its kind, None all of them."""

    kind: str
    name: str | None


def describe(client: Client, entities: Sequence[Entity]) -> None:
    """Print quotas, and of users their credentials without secrets. Errors: RequestFailedError."""
    components = [
        ComponentData(
            entity_type=TYPES[each.kind],
            match_type=ANY if each.name is None else EXACT if each.name else DEFAULT,
            match=each.name or None,
        )
        for each in entities
    ]
    for entry in client.ask(quotas.describe(components, strict=True)):
        named = {each.entity_type: each.entity_name for each in entry.entity}
        words = [
            f"{title} '{named[key]}'" if named[key] else f"the default {title}"
            for key, title in TITLES.items()
            if key in named
        ]
        values = ", ".join(
            f"{each.key}={float(each.value)}" for each in sorted(entry.values, key=lambda each: str(each.key))
        )
        say(f"Quota configs for {', '.join(words)} are {values}")
    if len(entities) == 1 and entities[0].kind == "users" and entities[0].name != "":
        _describe_credentials(client, entities[0].name)


def _describe_credentials(client: Client, user: str | None) -> None:
    users = None if user is None else [UserName(name=user)]
    for result in client._call(None, DescribeUserScramCredentialsRequest(users=users)).results:
        kept = ", ".join(
            f"{NAMES.get(each.mechanism, each.mechanism)}=iterations={each.iterations}"
            for each in result.credential_infos
        )
        if not result.error_code and kept:
            say(f"SCRAM credential configs for user-principal '{result.user}' are {kept}")


def alter(
    options: Options, client: Client, entities: Sequence[Entity], additions: dict[str, str], removals: Sequence[str]
) -> None:
    """Change quotas or credentials, not both at once. Errors: RequestFailedError; ends the tool."""
    keys = {*additions, *removals}
    kinds = " and ".join(entity.kind for entity in entities)
    scram = keys & MECHANISMS.keys()
    unknown = sorted(keys - MECHANISMS.keys() - set(QUOTAS))
    if unknown or (scram and kinds != "users"):
        of = "quota and SCRAM credential" if kinds == "users" else "quota"
        names = ", ".join(unknown or sorted(scram))
        options.error(f"Only {of} configs can be changed for '{kinds}'. Unexpected config names: {names}")
    if scram and len(scram) < len(keys):
        options.error("Cannot alter both quota and SCRAM credential configs simultaneously for 'users'")
    if scram:
        _alter_credentials(options, client, entities[0].name or "", additions, removals)
        return
    rates: dict[str, float | None] = dict.fromkeys(removals)
    for key, text in additions.items():
        try:
            rates[key] = float(text)
        except ValueError:
            options.error(f"Cannot parse quota configuration value for {key}: {text}")
    entity = [(TYPES[each.kind], each.name or None) for each in entities]
    for each in client.ask(quotas.alter([(entity, rates)])):
        if each.error_code:
            raise RequestFailedError(f"quotas of {kinds}", each.error_code, each.error_message)


def _alter_credentials(
    options: Options, client: Client, user: str, additions: dict[str, str], removals: Sequence[str]
) -> None:
    upsertions = []
    for name, text in additions.items():
        asked = re.fullmatch(r"(?:iterations=(\d+),)?password=(.*)", text, re.DOTALL)
        if asked is None:
            options.error(f"{name} takes [password=...] or [iterations=N,password=...]")
        number, digest = MECHANISMS[name]
        salt, iterations = os.urandom(16), int(asked[1] or ITERATIONS)
        salted = hashlib.pbkdf2_hmac(digest, asked[2].encode(), salt, iterations)
        upsertions.append(
            ScramCredentialUpsertion(
                name=user, mechanism=number, iterations=iterations, salt=salt, salted_password=salted
            )
        )
    deletions = [ScramCredentialDeletion(name=user, mechanism=MECHANISMS[name][0]) for name in removals]
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    for result in client._call(client.controller(), request).results:
        if result.error_code:
            raise RequestFailedError(f"user {user}", result.error_code, result.error_message)
