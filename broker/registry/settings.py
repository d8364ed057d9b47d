"""Decides what a change of config or mode writes, and answers what they are.

Absent: In the schema registry: the compatibility policy LOGICAL. It answers 501 with a sentence.
Source: Confluent's ConfigResource, ModeResource and KafkaSchemaRegistry.setMode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.registry import errors
from broker.registry.contexts import DEFAULT, GLOBAL, context_of, given_prefix, is_whole, is_within, prefix_of
from broker.registry.deletion import check_writable, highest_kept
from broker.registry.errors import RegistryError
from broker.registry.jobs import Decision
from broker.registry.records import CLEAR_SUBJECT, CONFIG, CONTEXT, MODE, SCHEMA, Record
from broker.registry.requests import metadata_of, setting_subject
from broker.registry.rules import rules_of
from broker.registry.state import DEFAULT_LEVEL, FORWARD, IMPORT, MODES, READWRITE

if TYPE_CHECKING:
    from broker.registry.jobs import Ask
    from broker.registry.records import Json
    from broker.registry.state import RegistryState

LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
STRICT, LENIENT = "STRICT", "LENIENT"
POLICIES: Final = (STRICT, LENIENT)
FLAGS: Final = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
TEXTS: Final = ("alias", "aliasForDeks", "compatibilityGroup")
RULES: Final = ("defaultRuleSet", "overrideRuleSet")


def get_config(state: RegistryState, ask: Ask) -> Decision:
    """GET /config and /config/{subject}. Errors: RegistryError."""
    subject = setting_subject(ask)
    if ask.flag("defaultToGlobal"):
        return Decision(state.config(subject))
    if subject is not None and subject != GLOBAL and subject not in state.configs:
        raise errors.no_config(subject)
    return Decision({"compatibilityLevel": DEFAULT_LEVEL, **state.configs.get(subject, {})})


def put_config(state: RegistryState, ask: Ask) -> Decision:
    """PUT /config and /config/{subject}: what is named changes, the rest stays. Errors: RegistryError.

    A text that is set to nothing is answered, and no longer stored.
    """
    subject = setting_subject(ask)
    changed = _changes(ask.body)
    check_writable(state, subject)
    value = {**state.configs.get(subject, {}), **changed}
    value = {key: each for key, each in value.items() if each is not None}
    named = {} if subject is None else {"subject": subject}
    answer: Json = {"compatibility": value.get("compatibilityLevel")} if "compatibilityLevel" in value else {}
    answer |= {key: each for key, each in value.items() if key != "compatibilityLevel"}
    kept = {key: each for key, each in value.items() if each != ""}
    return Decision(answer, (Record(CONFIG, subject, 0, {**named, **kept}),))


def _changes(body: Json) -> Json:
    """The settings that a body names; None: to be taken away."""
    policy = body.get("compatibilityPolicy")
    if policy is not None and str(policy).upper() not in POLICIES:
        raise errors.unserved(f"the compatibility policy {policy!r:.40}, but {' and '.join(POLICIES)}")
    found: Json = {"compatibilityPolicy": policy} if "compatibilityPolicy" in body else {}
    if "compatibility" in body:
        level = body["compatibility"]
        if level is not None and (not isinstance(level, str) or level.upper() not in LEVELS):
            raise errors.invalid_level()
        found["compatibilityLevel"] = None if level is None else level.upper()
    for name in FLAGS:
        if name in body:
            if body[name] is not None and type(body[name]) is not bool:
                raise RegistryError(422, 422, f'"{name}" takes true or false')
            found[name] = body[name]
    for name in TEXTS:
        if name in body:
            if not isinstance(body[name], str | None):
                raise RegistryError(422, 422, f'"{name}" takes a text')
            found[name] = body[name]
    for name in RULES:
        if name in body:
            found[name] = rules_of(body[name])
    for name in ("defaultMetadata", "overrideMetadata"):
        if name in body:
            found[name] = metadata_of(body[name], name)
    return found


def delete_config(state: RegistryState, ask: Ask) -> Decision:
    """DELETE /config and /config/{subject}: the global one, or the default, is what counts. Errors: RegistryError."""
    subject = setting_subject(ask)
    if subject not in (None, GLOBAL) and subject not in state.configs:
        raise errors.subject_not_found(subject)
    check_writable(state, subject)
    answer = {"compatibilityLevel": DEFAULT_LEVEL, **state.configs.get(subject, {})}
    return Decision(answer, (Record(CONFIG, subject, 0, None),))


def get_mode(state: RegistryState, ask: Ask) -> Decision:
    """GET /mode and /mode/{subject}. Errors: RegistryError."""
    subject = setting_subject(ask)
    if ask.flag("defaultToGlobal"):
        return Decision({"mode": state.mode(subject)})
    if subject is not None and subject != GLOBAL and subject not in state.modes:
        raise errors.no_mode(subject)
    return Decision({"mode": state.modes.get(subject, READWRITE)})


def put_mode(state: RegistryState, ask: Ask) -> Decision:
    """PUT /mode and /mode/{subject}. Errors: RegistryError.

    IMPORT is for what has no schemas: it drops those that are softly deleted. `force` takes it as it is.
    """
    subject, given = setting_subject(ask), ask.body.get("mode", "")
    mode = given.upper() if isinstance(given, str) else None
    if (mode is None and given is not None) or (mode is not None and mode not in MODES):
        raise errors.invalid_mode()
    if mode == FORWARD and subject not in (None, GLOBAL):
        raise errors.invalid_mode("Forward mode only supported on global level")
    records: list[Record] = []
    if mode == IMPORT and state.mode(subject) != IMPORT and not ask.flag("force"):
        records += _cleared(state, subject)
    named: dict[str, Any] = {} if subject is None else {"subject": subject}
    records.append(Record(MODE, subject, 0, None if mode is None else {**named, "mode": mode}))
    return Decision({"mode": given}, tuple(records))


def _cleared(state: RegistryState, subject: str | None) -> list[Record]:
    """What drops the softly deleted versions of a subject, or of all. Errors: RegistryError: some are not deleted."""
    subjects = [each for each in state.subjects if is_within(each, subject)]
    if any(state.has(each) for each in subjects):
        raise errors.not_permitted("Cannot import since found existing subjects")
    records = highest_kept(state, subjects)
    for each in subjects:
        for row in state.versions(each, deleted=True):
            if state.referring(each, row.version, deleted=True):
                raise errors.referenced(each, row.version)
            records.append(Record(SCHEMA, each, row.version, None))
    records.append(Record(CLEAR_SUBJECT, subject, 0, {} if subject is None else {"subject": subject}))
    return records


def delete_mode(state: RegistryState, ask: Ask) -> Decision:
    """DELETE /mode and /mode/{subject}. Errors: RegistryError."""
    subject = setting_subject(ask)
    is_recursive = ask.flag("recursive")
    if subject not in (None, GLOBAL) and subject not in state.modes and not is_recursive:
        raise errors.subject_not_found(subject)
    records = [Record(MODE, subject, 0, None)]
    if is_recursive and is_whole(subject):
        records += [
            Record(MODE, each, 0, None)
            for each in state.modes
            if each is not None and not is_whole(each) and is_within(each, subject or prefix_of(DEFAULT))
        ]
    answer = state.modes.get(subject, READWRITE if subject in (None, GLOBAL) else None)
    return Decision({} if answer is None else {"mode": answer}, tuple(records))


def delete_context(state: RegistryState, ask: Ask) -> Decision:
    """DELETE /contexts/{context}: one without subjects. Errors: RegistryError."""
    try:
        whole = given_prefix(ask.words["context"])
    except ValueError as error:
        raise RegistryError(400, 400, str(error)) from None
    context = context_of(whole)
    if not whole or any(context_of(each) == context for each in state.subjects):
        raise errors.context_not_empty(whole or DEFAULT)
    return Decision(None, (Record(CONTEXT, context, 0, None),) if context in state.contexts else ())
