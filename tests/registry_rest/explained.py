"""Why tests of Karapace fail against momus' registry: a part of each test's name, and the reason.

Where Karapace's answer is another than Confluent's, momus gives Confluent's.
"""

from __future__ import annotations

from typing import Final

TEXTS: Final = "a text or code of Karapace's own; momus has Confluent's (API reference, Errors)"
MESSAGES: Final = "without verbose=true an answer has no messages (API reference, Compatibility)"
GUID: Final = "an answer is compared as a whole, and has a guid since Confluent Platform 8"
ORDER: Final = "Avro is kept with its attributes in the order of Java's library, not sorted by name"
SUBJECTS: Final = "includeSubjects, a parameter of Karapace's own"
NEW_ID: Final = "the id of a schema that was deleted for good is not given again, as in Confluent's registry"
MODERN: Final = "true, false and {} among JSON Schemas: Confluent's parsers of 8.5 say what momus says"
PROTOC: Final = "protoc refuses what nothing defines or imports: an option, a file (docs/registry.md, Differences)"
OWN: Final = "a path of Karapace's own: /_health, /master_available; and / with an Accept that is no JSON"
SETUP: Final = "needs Karapace's users or the certificate of its build, or starts a Karapace of its own"
EXPLAINED: Final[dict[str, str]] = {
    "test_record_schema_subject_compatibility": ORDER,
    "test_compatibility_endpoint": "a body that is no JSON object is 400, as in Confluent's registry, not 422",
    "test_regression_compatibility_should_not_give_internal_server_error_on_invalid_schema_type": TEXTS,
    "test_regression_invalid_schema_type_should_not_give_internal_server_error": TEXTS,
    "test_union_comparing_to_other_types": SUBJECTS,
    "test_schema_versions_multiple_subjects_same_schema": "subjects of an id are listed by name; no order is promised",
    "test_get_schema_with_subjects": SUBJECTS,
    "test_schema_missing_body": TEXTS,
    "test_schema_subject_post_invalid": TEXTS,
    "test_schema_same_subject[": GUID,
    "test_schema_same_subject_unnamed": "a primitive type is kept without other attributes: its canonical form",
    "test_schema_json_subject_comparison": "keys of JSON Schemas keep their order unless normalized, as Confluent's do",
    "test_schema::test_config": "a config is answered as compatibilityLevel by GET and DELETE (API reference, Config)",
    "test_schema_body_validation": TEXTS,
    "test_invalid_namespace": TEXTS,
    "test_malformed_kafka_message": "a schema that another program has written is answered letter by letter",
    "test_schema_hard_delete_version": TEXTS,
    "test_schema_hard_delete_and_recreate": NEW_ID,
    "test_schema_recreate_after_odd_hard_delete": NEW_ID,
    "test_invalid_schema_should_provide_good_error_messages": TEXTS,
    "test_schema_non_compliant_name_in_existing": TEXTS,
    "test_case2": MESSAGES,
    "test_case3": MESSAGES,
    "test_case4": MESSAGES,
    "test_case5": MESSAGES,
    "test_case6": "the test of compatibility with the latest version of a subject that has none is fulfilled",
    "test_case7": "the test of compatibility with the latest version of a subject that has none is fulfilled",
    "test_basic_avro_references": GUID,
    "test_avro_references_compatibility": MESSAGES,
    "test_avro_incompatible_name_references": TEXTS,
    "test_protobuf_schema_references[": PROTOC,
    "test_protobuf_schema_verifier": PROTOC,
    "ref schema does not exist]": TEXTS,
    "references not given]": TEXTS,
    "nonexisting schema]": TEXTS,
    "missing closing brace]": TEXTS,
    "With reference to nested message]": PROTOC,
    "test_registering_normalized_schema": SETUP,
    "extra_field_with_closed_model_is_incompatible": MODERN,
    "boolean_schemas_are_backward_compatible": MODERN,
    "true_schema_is_compatible_with_object": MODERN,
    "true_and_false_schemas": MODERN,
    "test_schemaregistry_object_properties": MODERN,
    "test_schemaregistry_property_names": MODERN,
    "test_protobuf_schema_references_rejected_values": TEXTS,
    "test_subject_mode": "a subject without a mode of its own is 40409 without defaultToGlobal (API reference, Mode)",
    "test_client::test_remote_client[": "a record's name is kept without its namespace, as Java's library writes it",
    "test_remote_client_tls": SETUP,
    "test_health_check": OWN,
    "test_schema_registry_auth::": SETUP,
}
