"""Reads what clients send: names of subjects, numbers of versions, schemas. Errors: RegistryError, in all of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.registry.contexts import GLOBAL, context_of, is_whole, name_of, normalized
from broker.registry.errors import RegistryError, invalid_schema, invalid_subject, invalid_version, of_http
from broker.registry.records import AVRO, MAX_INT, TYPES, references_of
from broker.registry.rules import rules_of
from broker.registry.versions import Content

if TYPE_CHECKING:
    from broker.registry.jobs import Ask, Tag
    from broker.registry.records import Json

LATEST: Final = -1
UNPROCESSABLE: Final = 422
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")


class Given(NamedTuple):
    """A schema as a client gives it; `version` 0 and `number` -1: it names none."""

    content: Content
    version: int
    number: int
    tags: tuple[Tag, ...] = ()


def subject_of(ask: Ask, *, is_new: bool = False, is_setting: bool = False) -> str:
    """The subject in the path; `is_new`: it may be made by this request; `is_setting`: so may a setting of it."""
    subject = normalized(ask.words["subject"])
    name = name_of(subject)
    if is_new and (
        not name
        or name in ("__GLOBAL", "__EMPTY")
        or (context_of(subject) == context_of(GLOBAL) and not is_setting)
        or has_control(subject)
    ):
        raise invalid_subject(subject)
    return subject


def has_control(text: str) -> bool:
    """Whether it has a letter that is none to be seen."""
    return any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text)


def setting_subject(ask: Ask) -> str | None:
    """The subject or context of a config or mode; None: the default context."""
    subject = normalized(ask.words.get("subject", "")) or None
    if subject is not None and not is_whole(subject):
        return subject_of(ask, is_new=True, is_setting=True)
    return subject


def version_of_path(ask: Ask) -> int:
    """The version in the path, or LATEST."""
    text = ask.words["version"].strip()
    if text.lower() == "latest":
        return LATEST
    try:
        number = int(text) if text.isascii() else 0
    except ValueError:
        raise invalid_version(ask.words["version"]) from None
    if number == LATEST:
        return LATEST
    if not 0 < number <= MAX_INT:
        raise invalid_version(number if abs(number) <= MAX_INT else ask.words["version"])
    return number


def number_of_path(ask: Ask) -> int:
    """The id in the path; one below 0 is that of no schema."""
    return _java_int(ask.words["id"])


def _java_int(text: str) -> int:
    if not NUMBER.fullmatch(text) or abs(int(text)) > MAX_INT:
        raise of_http(404, "Not Found")
    return int(text)


def part_of(ask: Ask) -> slice:
    """The part of a list that `offset` and `limit` ask for, read before what the list is of; a limit of 0 is none."""
    offset, limit = max(_java_int(ask.query.get("offset", "0")), 0), _java_int(ask.query.get("limit", "-1"))
    return slice(offset, None if limit <= 0 else offset + limit)


def given_schema(ask: Ask) -> Given:
    """The schema in the body."""
    body = ask.body
    schema, schema_type = body.get("schema"), body.get("schemaType") or AVRO
    if schema is not None and not isinstance(schema, str):
        raise RegistryError(UNPROCESSABLE, UNPROCESSABLE, '"schema" takes a text: JSON goes in as an escaped string')
    if not isinstance(schema_type, str) or schema_type not in TYPES:
        raise invalid_schema(f"Invalid schema type {schema_type}")
    try:
        references = references_of(body)
    except ValueError as error:
        raise RegistryError(UNPROCESSABLE, UNPROCESSABLE, str(error)) from None
    metadata, rule_set = metadata_of(body.get("metadata"), "metadata"), rules_of(body.get("ruleSet"))
    content = Content(schema_type, schema or "", references, metadata, rule_set)
    return Given(content, _number(body, "version", 0), _number(body, "id", -1))


def metadata_of(given: object, where: str) -> Json | None:
    """Tags, properties and names of sensitive properties; None: there are none."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise RegistryError(UNPROCESSABLE, UNPROCESSABLE, f'"{where}" takes an object')
    checks = {
        "properties": lambda each: isinstance(each, dict) and all(isinstance(text, str) for text in each.values()),
        "tags": lambda each: isinstance(each, dict) and all(_is_texts(texts) for texts in each.values()),
        "sensitive": _is_texts,
    }
    found: Json = {}
    for name in ("tags", "properties", "sensitive"):
        part = given.get(name)
        if part is None:
            continue
        if not checks[name](part):
            raise RegistryError(
                UNPROCESSABLE, UNPROCESSABLE, f'"{where}.{name}" is not as Confluent\'s registry takes it'
            )
        if part:
            found[name] = part
    return found


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _number(body: Json, name: str, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if type(value) is not int or not -1 <= value <= MAX_INT:
        raise RegistryError(UNPROCESSABLE, UNPROCESSABLE, f'"{name}" takes a whole number')
    return value
