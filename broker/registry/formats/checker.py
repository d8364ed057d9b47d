"""Does a Job: parses the schema by its format's library, writes the form asked for, compares it with earlier ones.

Shape: the messages are those of the first earlier schema that it does not fit, newest first; then the version and text
       of that schema. Compatible both ways is asked of the old one as reader first; where that is all that does not
       fit, version and text are left out, as Confluent Platform 7.5 does.
Source: Confluent's SchemaValidatorBuilder and CompatibilityChecker.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.registry.errors import DIFFERENT_TYPE
from broker.registry.jobs import TAGS_WITHIN, Checked, Difference, SchemaFaultError
from broker.registry.records import AVRO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.registry.formats.finding import Finding
    from broker.registry.jobs import Job, Source, Tag

SHOWN: Final = 10 * 1024  # letters of an earlier schema in the messages
# By type: where its format is, and what brings the library.
FORMATS: Final = {"AVRO": "avro_format", "JSON": "json_format", "PROTOBUF": "protobuf.format"}


# Files by name, and which of them -> a FileDescriptorSet; it needs a disk, so whoever asks brings it.
Protoc = Callable[[dict[str, str], str], bytes]


class Format(Protocol):
    """What a module of a format has; what `parse` returns is its own."""

    def parse(self, source: Source, protoc: Protoc, job: Job | None) -> Any:
        """`job`: the one whose schema it is, with what it is held to. Errors: SchemaFaultError."""

    def text(self, parsed: Any, form: str, normalize: bool) -> str:
        """The canonical form, or the one that is named. Errors: SchemaFaultError."""

    def fields(self, parsed: Any) -> list[str]:
        """The names of the fields of what is outermost."""

    def tagged(self, schema: str, tags: Sequence[Tag]) -> str:
        """A schema with other tags. Errors: SchemaFaultError: what is to be tagged is not there."""

    def tags_within(self, schema: str) -> list[Tag]:
        """The tags of a schema's records and fields, as those that are added."""

    def compare(self, reader: Any, writer: Any, *, is_lenient: bool) -> list[Finding]:
        """Why the first cannot read what was written by the second; none: it can."""


def check(job: Job, protoc: Protoc) -> Checked:
    """Errors: SchemaFaultError."""
    format_ = _format(job.schema.schema_type)
    if job.tags:
        job = job._replace(schema=job.schema._replace(schema=format_.tagged(job.schema.schema, job.tags)))
    try:
        parsed = _parsed(format_, job.schema, protoc, job)
    except SchemaFaultError as fault:
        fault.is_of_new = job.is_new and job.schema.schema_type == AVRO and _is_one(format_, job, protoc)
        raise
    if job.form == TAGS_WITHIN:
        rows = [(each.path, each.is_record, each.added) for each in format_.tags_within(job.schema.schema)]
        return Checked(json.dumps(rows), [], [])
    text = format_.text(parsed, job.form, job.normalize)
    messages, differences = _compared(format_, parsed, job, protoc)
    return Checked(text, messages, differences, tuple(format_.fields(parsed)) if job.validates else ())


def _is_one(format_: Format, job: Job, protoc: Protoc) -> bool:
    """Whether it is a schema where it need not be a new one."""
    try:
        _parsed(format_, job.schema, protoc, job._replace(is_new=False))
    except SchemaFaultError:
        return False
    return True


def _format(schema_type: str) -> Format:
    if schema_type not in FORMATS:
        raise SchemaFaultError(f"Invalid schema type {schema_type}")
    try:
        found: Any = import_module(f"{__package__}.{FORMATS[schema_type]}")
    except ImportError as error:
        raise SchemaFaultError(f"{schema_type} schemas need `pip install 'momus[registry]'` ({error})") from None
    return found  # type: ignore[no-any-return]  # each of these modules has the three functions


def _parsed(format_: Format, source: Source, protoc: Protoc, job: Job | None = None) -> Any:
    try:
        return format_.parse(source, protoc, job)
    except RecursionError:
        raise SchemaFaultError("it is nested too deeply") from None


def _compared(format_: Format, parsed: Any, job: Job, protoc: Protoc) -> tuple[list[str], list[Difference]]:
    """The messages, and the differences that they tell."""
    if job.level == "NONE" or not job.previous:
        return [], []
    newest_first = list(reversed(job.previous))
    for source in newest_first if job.level.endswith("_TRANSITIVE") else newest_first[:1]:
        if source.schema_type != job.schema.schema_type:
            return [DIFFERENT_TYPE], []
        before = _parsed(format_, source, protoc)
        forward, backward = _between(format_, parsed, before, job, source.version)
        found = forward + backward
        if found and job.level.startswith("FULL") and not backward:
            return [each.message for each in found], found
        if found:
            text = format_.text(before, "", False)
            shown = text if len(text) <= SHOWN else f"<truncated> '{text[:SHOWN]}..."
            shown = f"{{oldSchema: '{shown}'}}" if len(text) <= SHOWN else f"{{oldSchema: {shown}'}}"
            told = [each.message for each in found]
            return [*told, f"{{oldSchemaVersion: {source.version}}}", shown], found
    return [], []


def _between(format_: Format, new: Any, old: Any, job: Job, version: int) -> tuple[list[Difference], list[Difference]]:
    """What keeps the old schema from reading, and the new one, as far as a level asks."""
    forward: list[Difference] = []
    backward: list[Difference] = []
    try:
        if job.level.startswith(("FORWARD", "FULL")):
            forward = _told(format_.compare(old, new, is_lenient=job.is_lenient), "old", "new", version)
        if job.level.startswith(("BACKWARD", "FULL")):
            backward = _told(format_.compare(new, old, is_lenient=job.is_lenient), "new", "old", version)
    except RecursionError:
        raise SchemaFaultError("it is nested too deeply") from None
    return forward, backward


def _told(findings: Sequence[Finding], reader: str, writer: str, version: int) -> list[Difference]:
    rows = []
    for each in findings:
        text = each.text.replace("{reader}", reader).replace("{writer}", writer)
        rows.append(Difference(each.kind, each.path, text, version))
    return rows
