"""`registry.as`: the releases of Confluent Platform that a registry answers as, and what differs between them.

What differs: the code of a schema that does not fit earlier ones; 7.9 names no guid, no time and no deletion in an
answer, and of a registration the id alone; from 8.0 on AVRO is named as a schema's type, and an answer to an id names a
subject and version that have it. Where no release is named, answers have the code of 7.9 and the new fields of 8.0,
which older clients pass over. Routes of 8.0 are there with each.
Source: Errors.java, SchemaString.java, RegisterSchemaResponse.java and SchemaTypeConverter.java of Confluent's releases
from 7.0 to 8.5. The code 40901 came with 8.0.4, 8.1.2 and 8.2.0.
"""

from __future__ import annotations

from typing import Final

DEFAULT_RELEASE, SEVEN, EIGHT = "", "7.9", "8.0"
INCOMPATIBLE: Final = 40901
OLDER_CODES: Final[dict[str, dict[int, int]]] = {
    DEFAULT_RELEASE: {INCOMPATIBLE: 409},
    SEVEN: {INCOMPATIBLE: 409},
    EIGHT: {},
}
SERVER_VERSIONS: Final = {DEFAULT_RELEASE: "7.9.0-momus", SEVEN: "7.9.0-momus", EIGHT: "8.0.4-momus"}
FIELDS_OF_8: Final = ("guid", "ts", "deleted")
