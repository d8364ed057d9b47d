"""Why the registry refuses, in Confluent's error codes and words: clients, and people who search, know them.

Source: Confluent's API reference for Schema Registry, "Errors"; the texts of what its server answers.
"""

from __future__ import annotations

from typing import Final

from broker.registry.releases import INCOMPATIBLE, OLDER_CODES

BAD_REQUEST: Final = 400
DIFFERENT_TYPE: Final = "Incompatible because of different schema type"


class RegistryError(Exception):
    """A request that is refused.

    status   of HTTP.
    code     Confluent's, of which the first three digits are the status.
    why      what only momus says: for the journal; "" where the text says it all.
    fault    the fault that refuses; "": none.
    """

    def __init__(self, status: int, code: int, text: str, why: str = "", fault: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.why = why
        self.fault = fault

    def as_of(self, release: str) -> RegistryError:
        """The same with the code that a release has for it; a fault's code is left as it was set."""
        code = self.code if self.fault else OLDER_CODES[release].get(self.code, self.code)
        return self if code == self.code else RegistryError(self.status, code, str(self), self.why)


def subject_not_found(subject: str) -> RegistryError:
    """No version of this subject."""
    return RegistryError(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    """The subject has no such version."""
    return RegistryError(404, 40402, f"Version {version} not found.")


def schema_not_found(name: object = None) -> RegistryError:
    """No schema of this id or guid; without one, none of this content."""
    return RegistryError(404, 40403, "Schema not found" if name is None else f"Schema {name} not found")


def subject_deleted(subject: str) -> RegistryError:
    """All its versions are deleted already, but not for good."""
    return RegistryError(404, 40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_deleted(subject: str) -> RegistryError:
    """Deletion for good needs the other one first."""
    return RegistryError(404, 40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_deleted(subject: str, version: int) -> RegistryError:
    """This version is deleted already, but not for good."""
    return RegistryError(
        404, 40406, f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    )


def version_not_deleted(subject: str, version: int) -> RegistryError:
    """Deletion for good needs the other one first."""
    return RegistryError(
        404, 40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_config(subject: str) -> RegistryError:
    """The subject goes by the global one."""
    return RegistryError(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode(subject: str) -> RegistryError:
    """The subject goes by the global one."""
    return RegistryError(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")


def association_not_found(resource_id: str) -> RegistryError:
    """The resource has no association."""
    return RegistryError(404, 40410, f"Association for '{resource_id}' not found.")


def association_exists(kind: str, name: str) -> RegistryError:
    """The resource has another one for its keys, or its values."""
    return RegistryError(409, 40903, f"An association of type '{kind}' already exists for resource '{name}'")


def subject_associated(subject: str) -> RegistryError:
    """An association names the subject."""
    return RegistryError(409, 40904, f"An association already exists for subject '{subject}'")


def subject_strongly_associated(subject: str) -> RegistryError:
    """An association owns the subject."""
    return RegistryError(409, 40905, f"A strong association already exists for subject '{subject}'")


def no_active_version(subject: str) -> RegistryError:
    """An association needs a subject with a schema."""
    return RegistryError(409, 40907, f"No active (non-deleted) version exists for subject '{subject}'")


def association_frozen(kind: str, subject: str) -> RegistryError:
    """It cannot be changed, nor deleted without its subject."""
    return RegistryError(409, 40908, f"The association of type  '{kind}' is frozen for subject '{subject}'")


def invalid_association(name: str, detail: str) -> RegistryError:
    """A property of an association does not do."""
    text = f"The association specified an invalid value for property: '{name}', detail: {detail}"
    return RegistryError(422, 42212, text)


def incompatible(subject: str, messages: list[str], why: str) -> RegistryError:
    """The schema does not fit earlier versions."""
    text = f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
    return RegistryError(409, INCOMPATIBLE, text + _listed(messages), why)


def incompatible_with(messages: list[str]) -> RegistryError:
    """The schema of an association does not fit earlier versions of its subject."""
    return RegistryError(409, INCOMPATIBLE, _listed(messages))


def invalid_schema(text: str) -> RegistryError:
    """It is no schema of its type, or refers to what is not there."""
    return RegistryError(422, 42201, text)


def invalid_version(given: object) -> RegistryError:
    """Neither a number from 1 nor "latest"."""
    text = f"The specified version '{given}' is not a valid version id. "
    return RegistryError(422, 42202, text + 'Allowed values are between [1, 2^31-1] and the string "latest"')


def invalid_level() -> RegistryError:
    """No compatibility level."""
    text = "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive,"
    return RegistryError(422, 42203, f"{text} forward_transitive, and full_transitive")


def invalid_mode(
    text: str = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.",
) -> RegistryError:
    """No mode, or not one of a subject."""
    return RegistryError(422, 42204, text)


def not_permitted(text: str) -> RegistryError:
    """The mode does not allow it."""
    return RegistryError(422, 42205, text)


def referenced(subject: str, version: int) -> RegistryError:
    """Another schema refers to it."""
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return RegistryError(422, 42206, f"One or more references exist to the schema {key}.")


def subject_referenced(subject: str) -> RegistryError:
    """A schema refers to a subject that an association would own."""
    return RegistryError(422, 42206, f"One or more references exist to the schema {subject}.")


def too_large() -> RegistryError:
    """Its record is larger than the topic's max.message.bytes."""
    return RegistryError(422, 42209, "Register operation failed because schema is too large")


def invalid_subject(subject: str) -> RegistryError:
    """No name of a subject."""
    return RegistryError(422, 42208, f"The specified subject '{subject}' is not a valid.")


def context_not_empty(context: str) -> RegistryError:
    """It has subjects."""
    return RegistryError(422, 42211, f"The specified context '{context}' is not empty.")


def invalid_rules(text: str) -> RegistryError:
    """A rule set whose rules are not in order."""
    return RegistryError(422, 42210, f"Invalid ruleset: {text}")


def unreadable(why: object) -> RegistryError:
    """What would be written could not be read again."""
    return RegistryError(422, 42201, f"It cannot be stored, as it could not be read again: {why}")


def store_failed(text: str, why: str = "") -> RegistryError:
    """The topic `_schemas` could not be read or written."""
    return RegistryError(500, 50001, text, why)


def unserved(what: str) -> RegistryError:
    """A part of Confluent's registry that momus leaves out."""
    return RegistryError(501, 501, f"momus' registry does not serve {what}")


def of_http(status: int, reason: str) -> RegistryError:
    """What Confluent's HTTP server says of a request that reaches no resource."""
    return RegistryError(status, status, f"HTTP {status} {reason}")


def _listed(messages: list[str]) -> str:
    """As Java writes a list."""
    return f"[{', '.join(messages)}]"
