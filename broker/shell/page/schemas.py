"""The schemas view: subjects of the cluster's registry, one with its versions, and two of these side by side."""

from __future__ import annotations

import contextlib
import json
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, TypedDict

from broker.asks.rows import Window
from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.texts import cut
from broker.shell.page.windows import number, window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.registry.jobs import Difference
    from broker.registry.state import RegistryState
    from broker.registry.versions import Version
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.registry.opened import OpenRegistry

MOST_VERSIONS: Final = 200  # the newest ones
MOST_CHARACTERS: Final = 40_000  # of a schema that is laid out and compared
MOST_LINES: Final = 600
LINE: Final = 200  # characters of a line
MOST_FINDINGS: Final = 50


class SubjectRow(TypedDict):
    """A subject with the version that is its latest."""

    subject: str
    type: str
    versions: int
    version: int
    id: int
    level: str
    mode: str


class SubjectRows(Window):
    """A window on the subjects."""

    subjects: list[SubjectRow]


class VersionRow(TypedDict):
    """A version of a subject; `referred_to`: by so many others."""

    version: int
    id: int
    type: str
    deleted: bool
    references: list[str]
    referred_to: int


class Subject(TypedDict):
    """A subject with its versions, the newest first."""

    subject: str
    level: str
    mode: str
    total: int
    versions: list[VersionRow]


class LineRow(TypedDict):
    """A line of two versions side by side; its number is 0 where one has none."""

    is_changed: bool
    old_line: int
    old: str
    new_line: int
    new: str


class Finding(TypedDict):
    """Why a reader cannot read what a writer wrote, and where in the schema."""

    kind: str
    path: str
    text: str


_Versions = TypedDict("_Versions", {"from": int, "to": int})  # "from" is a word of Python


class Changes(_Versions):
    """Two versions side by side, and why readers of one cannot read what the other has written."""

    subject: str
    is_cut: bool
    lines: list[LineRow]
    backward: list[Finding]
    forward: list[Finding]


def registry_of(cluster: ClusterServer) -> OpenRegistry:
    """The cluster's own registry. Errors: RefusedError: it is not served."""
    if cluster.registry is not None:
        return cluster.registry
    other = cluster.config.schema_registry_url
    raise RefusedError(409, f"the schemas are those of {other}" if other else "no registry of this cluster is served")


async def list_subjects(cluster: ClusterServer, call: Call) -> SubjectRows:
    """A window on the subjects. Errors: RefusedError."""
    state = await state_of(cluster)
    names, offset, total = await window(cluster, call, [name for name in state.subjects if state.has(name)])
    rows: list[SubjectRow] = []
    for name in names:
        versions = state.versions(name)
        if versions:  # they may have been deleted meanwhile
            rows.append(
                {
                    "subject": name,
                    "type": versions[-1].content.schema_type,
                    "versions": len(versions),
                    "version": versions[-1].version,
                    "id": versions[-1].id,
                    "level": state.config(name)["compatibilityLevel"],
                    "mode": state.mode(name),
                }
            )
    return {"offset": offset, "total": total, "subjects": rows}


async def show_subject(cluster: ClusterServer, call: Call) -> Subject:
    """A subject with its versions, the newest first, those that are softly deleted among them. Errors: RefusedError."""
    state = await state_of(cluster)
    subject = call.words["subject"]
    rows = _versions(state, subject)
    return {
        "subject": subject,
        "level": state.config(subject)["compatibilityLevel"],
        "mode": state.mode(subject),
        "total": len(rows),
        "versions": [
            {
                "version": row.version,
                "id": row.id,
                "type": row.content.schema_type,
                "deleted": row.is_deleted,
                "references": [f"{each.name}: {each.subject} {each.version}" for each in row.content.references],
                "referred_to": len(state.referring(subject, row.version, deleted=False)),
            }
            for row in rows[:MOST_VERSIONS]
        ],
    }


async def show_changes(cluster: ClusterServer, call: Call) -> Changes:
    """Two versions side by side, and why readers of one cannot read the other's records. Errors: RefusedError."""
    state, subject = await state_of(cluster), call.words["subject"]
    rows = _versions(state, subject)
    new = _version(rows, number(call, "to", rows[0].version))
    before = [row.version for row in rows if row.version < new.version]
    old = _version(rows, number(call, "from", before[0] if before else new.version))
    sides, is_cut = zip(*(_lines(row) for row in (old, new)), strict=True)
    return {
        "subject": subject,
        "from": old.version,
        "to": new.version,
        "is_cut": any(is_cut),
        "lines": list(_side_by_side(*sides)),
        "backward": await _unreadable(cluster, state, new, old),
        "forward": await _unreadable(cluster, state, old, new),
    }


async def state_of(cluster: ClusterServer) -> RegistryState:
    """What the cluster's own registry has. Errors: RefusedError: there is none, or its topic cannot be read."""
    from broker.shell.registry.store import StoreError  # 0 ms: the registry is served

    try:
        return await registry_of(cluster).state()
    except StoreError as error:
        raise RefusedError(409, str(error)) from None


def _versions(state: RegistryState, subject: str) -> list[Version]:
    """The newest first. Errors: RefusedError."""
    rows = state.versions(subject, deleted=True)
    if not rows:
        raise RefusedError(404, f"no such subject: {subject:.100}")
    return rows[::-1]


def _version(rows: list[Version], version: int) -> Version:
    """Errors: RefusedError."""
    for row in rows:
        if row.version == version:
            return row
    raise RefusedError(404, f"{rows[0].subject:.100} has no version {version}")


async def _unreadable(cluster: ClusterServer, state: RegistryState, reader: Version, writer: Version) -> list[Finding]:
    """Why what one version has written cannot be read by another; nothing: it can."""
    # 0 ms: the registry is served
    from broker.registry.errors import RegistryError
    from broker.registry.jobs import Job, SchemaFaultError, source_of_version

    try:
        job = Job(source_of_version(state, reader), previous=(source_of_version(state, writer),), level="BACKWARD")
        found = await registry_of(cluster).check(job)
    except RegistryError as error:  # a reference is gone
        return [_finding("", "", str(error))]
    if isinstance(found, SchemaFaultError):
        return [_finding("", "", f"it cannot be examined: {found}")]
    if found.messages and not found.differences:
        return [_finding("", "", found.messages[0])]
    return [_told(each) for each in found.differences[:MOST_FINDINGS]]


def _told(found: Difference) -> Finding:
    return _finding(found.kind, found.path, found.message)


def _finding(kind: str, path: str, text: str) -> Finding:
    return {"kind": kind, "path": cut(path), "text": cut(text)}


def _lines(row: Version) -> tuple[list[str], bool]:
    """A schema in lines, and whether some of it is left out."""
    text, is_cut = row.content.schema, len(row.content.schema) > MOST_CHARACTERS
    if is_cut:
        text = text[:MOST_CHARACTERS]
    elif row.content.schema_type != "PROTOBUF":
        with contextlib.suppress(ValueError, RecursionError):  # another registry may have written anything
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    lines = text.splitlines()
    is_cut = is_cut or len(lines) > MOST_LINES or any(len(line) > LINE for line in lines[:MOST_LINES])
    return [line[:LINE] for line in lines[:MOST_LINES]], is_cut


def _side_by_side(old: list[str], new: list[str]) -> Iterator[LineRow]:
    """Rows of both; the number of a line is 0 where there is none."""
    from difflib import SequenceMatcher  # 3 ms: few look at two versions

    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for before, after in zip_longest(range(a, b), range(c, d)):
            yield {
                "is_changed": kind != "equal",
                "old_line": 0 if before is None else before + 1,
                "old": "" if before is None else old[before],
                "new_line": 0 if after is None else after + 1,
                "new": "" if after is None else new[after],
            }
