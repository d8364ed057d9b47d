"""Why tests of Confluent's registry fail against momus': the name of each, and the reason.

Where its class has to be told too, it stands before the name, with a dot between.
"""

from __future__ import annotations

from typing import Final

SETTING: Final = "wants a setting of Confluent's server, which has no counterpart"
LEVEL: Final = "the level is set by a request, where Confluent's has it as a setting: a config shows it"
EXPLAINED: Final[dict[str, str]] = {
    "testRegisterSchemaExceedsBodySizeLimit": SETTING,
    "testWildcardSubjectRejectedWhenFlagEnabled": SETTING,
    "testConflictingReferenceVersionsRejected": SETTING,
    "testHttpResponseHeaders": SETTING,
    "testGetSchemaRegistryServerVersion": "wants the version that a build writes into the sources",
    "testInvalidSchema()": "asks the server's own objects, not its REST API",
    "testRegisterDropsRuleSet": "rules are kept, as the tests of RestApiCompatibilityTest want them",
    "RestApiSerializerTest.testSchemaReferencesConfigMetadata": LEVEL,
}
