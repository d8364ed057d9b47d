"""The kinds of changes between two JSON Schemas: which are compatible, and what is said of the others."""

from __future__ import annotations

from typing import Final

from broker.registry.formats.finding import Finding

# fmt: off - a name a line would be seventy lines
COMPATIBLE: Final = frozenset(
    (
        "ID_CHANGED",
        "DESCRIPTION_CHANGED",
        "TITLE_CHANGED",
        "DEFAULT_CHANGED",
        "SCHEMA_REMOVED",
        "TYPE_EXTENDED",
        "MAX_LENGTH_INCREASED",
        "MAX_LENGTH_REMOVED",
        "MIN_LENGTH_DECREASED",
        "MIN_LENGTH_REMOVED",
        "PATTERN_REMOVED",
        "MAXIMUM_INCREASED",
        "MAXIMUM_REMOVED",
        "MINIMUM_DECREASED",
        "MINIMUM_REMOVED",
        "EXCLUSIVE_MAXIMUM_INCREASED",
        "EXCLUSIVE_MAXIMUM_REMOVED",
        "EXCLUSIVE_MINIMUM_DECREASED",
        "EXCLUSIVE_MINIMUM_REMOVED",
        "MULTIPLE_OF_REDUCED",
        "MULTIPLE_OF_REMOVED",
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
        "REQUIRED_ATTRIBUTE_REMOVED",
        "DEPENDENCY_ARRAY_NARROWED",
        "DEPENDENCY_ARRAY_REMOVED",
        "DEPENDENCY_SCHEMA_REMOVED",
        "MAX_PROPERTIES_INCREASED",
        "MAX_PROPERTIES_REMOVED",
        "MIN_PROPERTIES_DECREASED",
        "MIN_PROPERTIES_REMOVED",
        "ADDITIONAL_PROPERTIES_ADDED",
        "ADDITIONAL_PROPERTIES_EXTENDED",
        "UNEVALUATED_PROPERTIES_ADDED",
        "UNEVALUATED_PROPERTIES_EXTENDED",
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "MAX_ITEMS_INCREASED",
        "MAX_ITEMS_REMOVED",
        "MIN_ITEMS_DECREASED",
        "MIN_ITEMS_REMOVED",
        "MAX_CONTAINS_INCREASED",
        "MAX_CONTAINS_REMOVED",
        "MIN_CONTAINS_DECREASED",
        "MIN_CONTAINS_REMOVED",
        "UNIQUE_ITEMS_REMOVED",
        "ADDITIONAL_ITEMS_ADDED",
        "ADDITIONAL_ITEMS_EXTENDED",
        "UNEVALUATED_ITEMS_ADDED",
        "UNEVALUATED_ITEMS_EXTENDED",
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ENUM_ARRAY_EXTENDED",
        "COMBINED_TYPE_EXTENDED",
        "PRODUCT_TYPE_NARROWED",
        "SUM_TYPE_EXTENDED",
        "NOT_TYPE_NARROWED",
    )
)
COMPATIBLE_LENIENT: Final = COMPATIBLE | {
    "ADDITIONAL_PROPERTIES_NARROWED",
    "ADDITIONAL_PROPERTIES_REMOVED",
    "UNEVALUATED_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_REMOVED",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}
# fmt: on
# A kind, or its end where it begins with "_" -> what is said of it.
SENTENCES: Final = (
    (
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "The {{reader}} schema has an unopen content model and has a required property at path"
        " '{path}' which is missing in the {{writer}} schema",
    ),
    (
        "_TO_OPEN_CONTENT_MODEL",
        "The {{reader}} schema has an open content model and has a property or item at path"
        " '{path}' which is missing in the {{writer}} schema",
    ),
    (
        "_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "The {{reader}} has a closed content model and is missing a property or item present at"
        " path '{path}' in the {{writer}} schema",
    ),
    (
        "_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "A property or item is missing in the {{reader}} schema but present at path '{path}' in"
        " the {{writer}} schema and is not covered by its partially open content model",
    ),
    (
        "_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "The {{reader}} schema has a property or item at path '{path}' which is missing in the"
        " {{writer}} schema and is not covered by its partially open content model",
    ),
    (
        "PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED",
        "The value at path '{path}' is different between the {{reader}} and {{writer}} schema",
    ),
    (
        "TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED ENUM_ARRAY_CHANGED",
        "A type at path '{path}' is different between the {{reader}} schema and the {{writer}} schema",
    ),
    (
        "_NARROWED",
        "An array or combined type at path '{path}' has fewer elements in the {{reader}} schema"
        " than the {{writer}} schema",
    ),
    (
        "_EXTENDED",
        "An array or combined type at path '{path}' has more elements in the {{reader}} schema"
        " than the {{writer}} schema",
    ),
    (
        "SCHEMA_ADDED",
        "",
    ),
    (
        "_ADDED ADDITIONAL_ITEMS_REMOVED ADDITIONAL_PROPERTIES_REMOVED"
        " UNEVALUATED_PROPERTIES_REMOVED UNEVALUATED_ITEMS_REMOVED",
        "The keyword at path '{path}' in the {{reader}} schema is not present in the {{writer}} schema",
    ),
    (
        "_INCREASED _EXPANDED",
        "The value at path '{path}' in the {{reader}} schema is more than its value in the {{writer}} schema",
    ),
    (
        "_DECREASED",
        "The value at path '{path}' in the {{reader}} schema is less than its value in the {{writer}} schema",
    ),
)


def finding(kind: str, path: tuple[str, ...]) -> Finding:
    """A change that is not compatible, with what is said of it."""
    place = "#/" + "/".join(path)
    sentence = next((text for names, text in SENTENCES if any(_is(kind, each) for each in names.split())), "")
    description = sentence.format(path=place.replace("{", "{{").replace("}", "}}"))
    return Finding(kind, place, f'{{errorType:"{kind}", description:"{description}\'}}')


def _is(kind: str, name: str) -> bool:
    return kind.endswith(name) if name[0] == "_" else kind == name
