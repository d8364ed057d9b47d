"""Why another's verdict differs from ours: each reason with its source. Confluent's behaviour wins over Karapace's.

Where Confluent's own code has judged the same pair at the same level as momus does, word for word, that is the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from json_pairs import MODERN


def _said(schema_type: str, pattern: str) -> Callable[[Any, str], bool]:
    """Whether a difference is of a format and reads like that."""
    return lambda case, how: case.pair.schema_type == schema_type and re.search(pattern, how) is not None


DOCUMENTED: Final = "Confluent, Schema evolution and compatibility for JSON Schema"
BOTH: Final = re.compile(r'"maximum": \d+, "exclusiveMaximum"')
TYPED: Final = re.compile(r'"(any|one)Of": \[[^\]]*"type": "string", "enum"')
Reasons = dict[str, Callable[[Any, str], bool]]
OF_CLIENT: Final[Reasons] = {
    "the branch of a union is part of a path since Java's library of Avro is 1.12": _said(
        "AVRO", r"^paths in messages"
    ),
}
OF_PARSERS: Final[Reasons] = {
    "properties are compared in the order of Java's hash table": _said("JSON", r"^order of messages"),
    "messages and members of a oneof are compared in the order of Java's hash table": _said(
        "PROTOBUF", r"^order of messages"
    ),
    "an exclusiveMaximum that changes is compared by the maximum beside it, and fails without": lambda case, how: (
        re.search(r"refuses it: \S+NullPointerException.*getMaximum", how) is not None
        or (how.startswith("messages") and all(BOTH.search(each) for each in (case.pair.old, case.pair.new)))
    ),
    "a type beside an enum within a sum is dropped where 2020-12 is translated to draft 7": lambda case, how: (
        how.startswith("messages") and MODERN in case.pair.new and TYPED.search(case.pair.new) is not None
    ),
}
AGREED: Final = "Confluent's own parsers say what momus says"
OF_KARAPACE: Final[Reasons] = {
    "aliases of the reader are followed (Avro's specification, Aliases); Confluent's client agrees": _said(
        "AVRO", r"Karapace: \['expected: .*momus: \[\]"
    ),
    "fields are compared by their numbers, not by names (Protocol Buffers, Updating a message type)": _said(
        "PROTOBUF", r"FIELD_TAG_ALTER"
    ),
    "single and repeated go together but for numbers (Protocol Buffers, Updating a message type)": _said(
        "PROTOBUF", r"FIELD_LABEL_ALTER"
    ),
    "a map is a list of messages, no scalar; float and integers are encoded in other ways (Encoding)": _said(
        "PROTOBUF", r"fits; momus: \['(FIELD_KIND_CHANGED|FIELD_SCALAR_KIND_CHANGED)"
    ),
    f"a property that is required now was not written by all ({DOCUMENTED})": _said(
        "JSON", r"fits; momus: \[.*'REQUIRED_ATTRIBUTE_ADDED'"
    ),
    f"each schema of a oneOf or anyOf is looked for among the new ones, alike ones once ({DOCUMENTED})": _said(
        "JSON", r"(subschemas are incompatible|number of schemas reduced).*momus: \[\]"
    ),
    f"a schema of a oneOf, anyOf or allOf that accepts less ({DOCUMENTED})": _said(
        "JSON", r"fits; momus: \[.*'(COMBINED_TYPE_SUBSCHEMAS_CHANGED|PRODUCT_TYPE_EXTENDED|SUM_TYPE_NARROWED)'"
    ),
    "multipleOf is a limit too (JSON Schema Validation, 6.2.1)": _said("JSON", r"fits; momus: \['MULTIPLE_OF_"),
    "additionalProperties: true is what holds without it (JSON Schema, 10.3.2.3)": _said(
        "JSON", r"additionalProperties in.?troduced'\]; momus: \[\]"
    ),
}
