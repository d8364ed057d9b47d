"""Keywords of JSON Schema count in the drafts that have them, as Confluent's registry judges two schemas of a draft."""

import json

import pytest

URLS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
ARRAY, OBJECT = {"type": "array"}, {"type": "object"}
STRING, INTEGER = {"type": "string"}, {"type": "integer"}
# before, after, and the drafts in which readers of the second cannot read what was written by the first
PAIRS = (
    ({"const": 1}, {"const": 2}, (6, 7, 2019, 2020)),
    ({}, {"contains": INTEGER}, (6, 7, 2019, 2020)),
    (ARRAY, {**ARRAY, "contains": STRING}, (2019, 2020)),
    ({**ARRAY, "contains": True}, {**ARRAY, "contains": True, "minContains": 2}, (4, 6, 7, 2019, 2020)),
    ({**ARRAY, "contains": True}, {**ARRAY, "contains": True, "minContains": 1}, (4, 6, 7)),
    (ARRAY, {**ARRAY, "minContains": 3}, (4, 6, 7)),
    ({}, {"propertyNames": {"maxLength": 3}}, (6, 7, 2019, 2020)),
    ({}, {"if": STRING, "then": {"maxLength": 3}}, (7, 2019, 2020)),
    ({}, {"then": STRING}, (7,)),
    (OBJECT, {**OBJECT, "dependencies": {"a": ["b"]}}, (4, 6, 7)),
    (OBJECT, {**OBJECT, "dependentRequired": {"a": ["b"]}}, (2019, 2020)),
    (OBJECT, {**OBJECT, "dependentSchemas": {"a": {"required": ["b"]}}}, (2019, 2020)),
    ({**ARRAY, "prefixItems": [STRING]}, {**ARRAY, "prefixItems": [INTEGER]}, (2019, 2020)),
    ({**OBJECT, "unevaluatedProperties": STRING}, {**OBJECT, "unevaluatedProperties": INTEGER}, (2019, 2020)),
)


@pytest.mark.parametrize("draft", [*URLS, None])
@pytest.mark.parametrize(("before", "after", "drafts"), PAIRS)
def test_keyword_counts_in_its_drafts(registry, before, after, drafts, draft):
    if draft == 4 and True in before.values():
        before, after = ({**each, "contains": {}} for each in (before, after))  # it has no true and false
    named = {} if draft is None else {"$schema": URLS[draft]}
    registry.register("s", {**named, **before}, schemaType="JSON")
    body = {"schema": json.dumps({**named, **after}), "schemaType": "JSON"}
    answer = registry.ask("POST", "/compatibility/subjects/s/versions/latest", body)
    assert answer == {"is_compatible": (draft or 7) not in drafts}
