"""Karapace's verdicts, run by the Python of its environment: lines of JSON in, lines of JSON out.

{"type": "AVRO", "old": "...", "new": "...", "level": "FULL"}  ->  {"fits": false, "why": [...]} or {"fault": "..."}
"""

from __future__ import annotations

import json
import sys

from karapace.core.compatibility import CompatibilityModes
from karapace.core.compatibility.schema_compatibility import SchemaCompatibility
from karapace.core.schema_models import ParsedTypedSchema, ValidatedTypedSchema
from karapace.core.schema_type import SchemaType


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        kind = SchemaType(asked["type"])
        try:
            old = ParsedTypedSchema.parse(kind, asked["old"])
            new = ValidatedTypedSchema.parse(kind, asked["new"])
            found = SchemaCompatibility.check_compatibility(old, new, CompatibilityModes(asked["level"]))
            told = {"fits": found.compatibility.name == "compatible", "why": sorted(map(str, found.messages))}
        except Exception as error:
            told = {"fault": f"{type(error).__name__}: {error}"[:200]}
        sys.stdout.write(json.dumps(told) + "\n")


main()
