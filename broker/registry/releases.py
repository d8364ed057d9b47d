"""`registry.as`: the releases of Confluent Platform that a registry answers as, and what differs between them.

What differs: the code of a schema that does not fit earlier ones; from 8.0 on, AVRO is named as a schema's type, and an
answer to an id names a subject and version that have it. Fields of 8.0 that older clients pass over (guid, ts, deleted)
and routes of 8.0 are there with either.
Source: Errors.java, SchemaString.java and SchemaTypeConverter.java of Confluent's releases from 7.0 to 8.5. The code
40901 came with 8.0.4, 8.1.2 and 8.2.0.
"""

from __future__ import annotations

from typing import Final

DEFAULT_RELEASE: Final = "7.9"
INCOMPATIBLE: Final = 40901
OLDER_CODES: Final[dict[str, dict[int, int]]] = {"7.9": {INCOMPATIBLE: 409}, "8.0": {}}
SERVER_VERSIONS: Final = {"7.9": "7.9.0-momus", "8.0": "8.0.4-momus"}
NAMING_MORE: Final = ("8.0",)
