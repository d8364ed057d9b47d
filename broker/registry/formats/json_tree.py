"""The JSON of Avro's and JSON Schema's schemas, and how a complaint names the reference that it is about."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any, Final

from broker.registry.jobs import SchemaFaultError

SHOWN: Final = 50  # letters of a number


def tree_of(text: str, name: str, *, is_new: bool = False) -> Any:
    """The JSON of a schema, or of the reference of this name. Errors: SchemaFaultError, with line and column.

    is_new   refuse numbers that would be given back as other ones; a schema that is stored already may have them.
    """
    try:
        if not is_new:
            return json.loads(text)
        return json.loads(text, parse_constant=_no_number, parse_float=_fraction)
    except json.JSONDecodeError as error:
        raise SchemaFaultError(f"{in_reference(name)}it is no JSON: {error}") from None
    except SchemaFaultError:
        raise
    except ValueError:  # the only one that is left
        raise SchemaFaultError(f"{in_reference(name)}it has a number of more than 4300 digits") from None


def _no_number(word: str) -> float:
    raise SchemaFaultError(f"it is no JSON: {word} is no number of JSON")


def _fraction(digits: str) -> float:
    """Errors: SchemaFaultError: a double, which schemas are kept in, is another number."""
    found = float(digits)
    try:
        is_same = not math.isinf(found) and Decimal(digits) == Decimal(repr(found))
    except ArithmeticError:  # an exponent beyond any
        is_same = False
    if not is_same:
        raise SchemaFaultError(f"the number {digits[:SHOWN]} has no double that is equal to it: write the one you mean")
    return found


def in_reference(name: str) -> str:
    """How a complaint about a reference begins; one about the schema itself begins at once."""
    return f"the reference {name}: " if name else ""
