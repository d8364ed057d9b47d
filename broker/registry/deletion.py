"""Decides what a deletion writes: of a version or a subject, softly first, then for good.

Source: Confluent's KafkaSchemaRegistry.deleteSchemaVersion and deleteSubject.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.registry import errors
from broker.registry.contexts import context_of, prefix_of
from broker.registry.jobs import Decision
from broker.registry.records import CONFIG, DELETE_SUBJECT, MODE, SCHEMA, Record
from broker.registry.requests import LATEST, subject_of, version_of_path
from broker.registry.state import HIGHEST_IDS, READONLY, READONLY_OVERRIDE

if TYPE_CHECKING:
    from broker.registry.jobs import Ask
    from broker.registry.state import RegistryState


def check_writable(state: RegistryState, subject: str | None) -> None:
    """Errors: RegistryError: the mode is read-only."""
    if state.mode(subject) in (READONLY, READONLY_OVERRIDE):
        place = f"Subject {'null' if subject is None else subject} in context {prefix_of(context_of(subject))}"
        raise errors.not_permitted(f"{place} is in read-only mode")


def delete_version(state: RegistryState, ask: Ask) -> Decision:
    """DELETE /subjects/{subject}/versions/{version}. Errors: RegistryError."""
    subject, version, is_final = subject_of(ask), version_of_path(ask), ask.flag("permanent")
    row = state.get(subject, version, deleted=is_final)
    if row is None and version != LATEST and state.get(subject, version, deleted=True) is not None:
        raise errors.version_deleted(subject, version)
    if row is None:
        raise (
            errors.version_not_found(version) if state.has(subject, deleted=True) else errors.subject_not_found(subject)
        )
    check_writable(state, subject)
    is_last = not is_final and all(each.version == row.version for each in state.versions(subject))
    if is_last and state.associations.of_subject(subject):
        raise errors.no_active_version(subject)
    if state.referring(subject, row.version, deleted=is_final):
        raise errors.referenced(subject, row.version)
    if not is_final:
        return Decision(row.version, (Record(SCHEMA, subject, row.version, row.deleted().to_value()),))
    if not row.is_deleted:
        raise errors.version_not_deleted(subject, row.version)
    records = [*highest_kept(state, [subject], row.version), Record(SCHEMA, subject, row.version, None)]
    if len(state.versions(subject, deleted=True)) == 1:
        records += _settings(state, subject)
    return Decision(row.version, tuple(records))


def delete_subject(state: RegistryState, ask: Ask) -> Decision:
    """DELETE /subjects/{subject}. Errors: RegistryError."""
    subject, is_final = subject_of(ask), ask.flag("permanent")
    if not state.has(subject, deleted=True):
        raise errors.subject_not_found(subject)
    if not is_final and not state.has(subject):
        raise errors.subject_deleted(subject)
    check_writable(state, subject)
    if state.associations.of_subject(subject):
        raise errors.subject_associated(subject)
    rows = state.versions(subject, deleted=is_final)
    for row in rows:
        if any(each.subject != subject for each in state.referring(subject, row.version, deleted=is_final)):
            raise errors.referenced(subject, row.version)
        if is_final and not row.is_deleted:
            raise errors.subject_not_deleted(subject)
    numbers = [row.version for row in rows]
    if not is_final:
        value = {"subject": subject, "version": numbers[-1]}
        return Decision(numbers, (Record(DELETE_SUBJECT, subject, 0, value),))
    return Decision(numbers, tuple(_purged(state, subject)))


def gone_with_its_association(state: RegistryState, subject: str) -> list[Record]:
    """What deletes a subject for good that an association owned. Errors: RegistryError: a schema refers to it."""
    rows = state.versions(subject, deleted=True)
    for row in rows:
        if any(each.subject != subject for each in state.referring(subject, row.version, deleted=True)):
            raise errors.referenced(subject, row.version)
    last = max((row.version for row in rows if not row.is_deleted), default=0)
    deletion = Record(DELETE_SUBJECT, subject, 0, {"subject": subject, "version": last})
    return [deletion, *_purged(state, subject)]


def _purged(state: RegistryState, subject: str) -> list[Record]:
    """What takes all versions of a subject away, the newest first, for one may refer to another."""
    numbers = sorted(state.subjects.get(subject, ()), reverse=True)
    gone = [Record(SCHEMA, subject, number, None) for number in numbers]
    return [*highest_kept(state, [subject]), *gone, *_settings(state, subject)]


def highest_kept(state: RegistryState, subjects: list[str], version: int = 0) -> list[Record]:
    """What keeps the highest ids of contexts when versions that have them are dropped: of subjects, or one of them.

    The log's cleaner drops such a version's records, and its id would be given again after a start.
    """
    for subject in subjects:
        highest = state.highest_ids.get(context_of(subject))
        if any(row.id == highest for row in state.versions(subject, deleted=True) if version in (0, row.version)):
            return [Record(CONFIG, HIGHEST_IDS, 0, {"subject": HIGHEST_IDS, "highestIds": dict(state.highest_ids)})]
    return []


def _settings(state: RegistryState, subject: str) -> list[Record]:
    """What takes mode and config of a subject away."""
    found = []
    if subject in state.modes:
        found.append(Record(MODE, subject, 0, None))
    if subject in state.configs:
        found.append(Record(CONFIG, subject, 0, None))
    return found
