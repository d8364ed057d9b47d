"""The JSON of Avro's and JSON Schema's schemas, and how a complaint names the reference that it is about."""

from __future__ import annotations

import json
from typing import Any

from broker.registry.jobs import SchemaFaultError


def tree_of(text: str, name: str) -> Any:
    """The JSON of a schema, or of the reference of this name. Errors: SchemaFaultError, with line and column."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaFaultError(f"{in_reference(name)}it is no JSON: {error}") from None


def in_reference(name: str) -> str:
    """How a complaint about a reference begins; one about the schema itself begins at once."""
    return f"the reference {name}: " if name else ""
