"""What a schema takes over before it is looked at: from the version before it, and from its subject's config.

Source: Confluent's AbstractSchemaRegistry.maybePopulateFromPrevious and maybeSetMetadataRuleSet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.registry.contexts import beside
from broker.registry.errors import invalid_schema
from broker.registry.requests import LATEST
from broker.registry.rules import merged_rules
from broker.registry.versions import Content

if TYPE_CHECKING:
    from broker.registry.records import Json, Reference
    from broker.registry.requests import Given
    from broker.registry.state import RegistryState
    from broker.registry.versions import Version

CONFLUENT_VERSION: Final = "confluent:version"


def completed(state: RegistryState, subject: str, given: Given) -> Content:
    """A schema with what the version before it and the config add: text, metadata, rules."""
    before = state.get(subject, LATEST)
    content = given.content
    if not content.schema.strip() and before is not None:
        old = before.content
        content = Content(old.schema_type, old.schema, old.references, content.metadata, content.rule_set)
    content = with_defaults(state, subject, content, before)
    metadata = content.metadata
    if given.version != 0 or version_named(metadata) is not None:
        metadata = merged_metadata(metadata, {"properties": {CONFLUENT_VERSION: str(next_version(state, subject))}})
    return Content(content.schema_type, content.schema, content.references, metadata, content.rule_set)


def next_version(state: RegistryState, subject: str) -> int:
    """The version that a new schema of a subject has."""
    return max(state.subjects.get(subject, {}), default=0) + 1


def with_defaults(state: RegistryState, subject: str, content: Content, before: Version | None) -> Content:
    """A schema with metadata and rules of the version before it, of which the config's defaults and overrides are."""
    config, old = state.config(subject), None if before is None else before.content
    metadata = old.metadata if content.metadata is None and old is not None else content.metadata
    rules = old.rule_set if content.rule_set is None and old is not None else content.rule_set
    metadata = merged_metadata(merged_metadata(config.get("defaultMetadata"), metadata), config.get("overrideMetadata"))
    rules = merged_rules(merged_rules(config.get("defaultRuleSet"), rules), config.get("overrideRuleSet"))
    return Content(content.schema_type, content.schema, content.references, metadata, rules)


def merged_metadata(below: Json | None, above: Json | None) -> Json | None:
    """Metadata of which the second wins, property by property."""
    if below is None or above is None:
        return above if below is None else below
    found: Json = {}
    for name in ("tags", "properties"):
        both = {**(below.get(name) or {}), **(above.get(name) or {})}
        if both:
            found[name] = both
    names = {*(below.get("sensitive") or ()), *(above.get("sensitive") or ())}
    if names:
        found["sensitive"] = sorted(names)
    return found


def version_named(metadata: Json | None) -> str | None:
    """The version of the subject that metadata names."""
    properties: dict[str, Any] = (metadata or {}).get("properties") or {}
    return properties.get(CONFLUENT_VERSION)


def without_version(metadata: Json | None) -> Json:
    """Metadata that names no version."""
    found = dict(metadata or {})
    properties = {
        key: value for key, value in (found.pop("properties", None) or {}).items() if key != CONFLUENT_VERSION
    }
    return {**found, **({"properties": properties} if properties else {})}


def pinned(state: RegistryState, subject: str, references: tuple[Reference, ...]) -> tuple[Reference, ...]:
    """References of which those to the latest version have its number. Errors: RegistryError: there is none."""
    return tuple(each if each.version != LATEST else _pinned(state, subject, each) for each in references)


def _pinned(state: RegistryState, subject: str, reference: Reference) -> Reference:
    referred = beside(subject, reference.subject)
    row = state.get(referred, LATEST)
    if row is None:
        raise invalid_schema(f'No schema reference found for subject "{referred}" and version -1')
    return reference._replace(version=row.version)
