"""The requests that ask for associations. Errors: RegistryError, in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.registry.associations.given import wanted_of
from broker.registry.associations.table import ANY
from broker.registry.jobs import Decision
from broker.registry.requests import part_of, subject_of

if TYPE_CHECKING:
    from broker.registry.associations.association import Association
    from broker.registry.jobs import Ask
    from broker.registry.state import RegistryState


def list_of_subject(state: RegistryState, ask: Ask) -> Decision:
    """GET /associations/subjects/{subject}."""
    return _listed(ask, state.associations.of_subject(subject_of(ask), wanted_of(ask)))


def list_of_resource(state: RegistryState, ask: Ask) -> Decision:
    """GET /associations/resources/{resourceId}."""
    return _listed(ask, state.associations.of_resource(ask.words["resourceId"], wanted_of(ask)))


def list_of_name(state: RegistryState, ask: Ask) -> Decision:
    """GET /associations/resources/{resourceNamespace}/{resourceName}, of which - stands for all."""
    namespace, name, wanted = ask.words["resourceNamespace"], ask.words["resourceName"], wanted_of(ask)
    if name == ANY:
        return _listed(ask, state.associations.of_namespace(namespace, wanted))
    return _listed(ask, state.associations.of_name(name, namespace, wanted))


def _listed(ask: Ask, rows: list[Association]) -> Decision:
    return Decision([row.to_json() for row in rows][part_of(ask)])
