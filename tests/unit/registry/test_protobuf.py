"""Protobuf: canonical text, which change is compatible by kind and path, imports, faults."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from registry_kit import check

from broker.registry.jobs import Job, SchemaFaultError, Source

MONEY = ("money.proto", 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }')


def proto(body, *references, syntax="proto3", version=1):
    return Source("PROTOBUF", f'syntax = "{syntax}";\n{body}', references, version)


def found(old, new, *references, syntax="proto3"):
    job = Job(
        proto(new, *references, syntax=syntax), previous=(proto(old, *references, syntax=syntax),), level="BACKWARD"
    )
    return [(each.kind, each.path) for each in check(job).differences]


CASES = [
    # old, new, what does not fit
    ("message A { string a = 1; }", "message A { string b = 1; }", []),
    ("message A { string a = 1; }", "message A { string a = 1; int32 b = 2; }", []),
    ("message A { string a = 1; }", "message A { }", []),
    ("message A { string a = 1; }", "message A { bytes a = 1; }", []),
    ("message A { int32 a = 1; }", "message A { uint64 a = 1; }", []),
    ("message A { int32 a = 1; }", "message A { sint32 a = 1; }", [("FIELD_SCALAR_KIND_CHANGED", "#/A/1")]),
    ("message A { int32 a = 1; }", "message A { E a = 1; } enum E { Z = 0; }", []),
    ("message A { int32 a = 1; }", "message A { B a = 1; } message B {}", [("FIELD_KIND_CHANGED", "#/A/1")]),
    (
        "message A { map<string, int32> a = 1; }",
        "message A { map<string, string> a = 1; }",
        [("FIELD_SCALAR_KIND_CHANGED", "#/A/1")],
    ),
    (
        "message A { repeated int32 a = 1; }",
        "message A { optional int32 a = 1; }",
        [("FIELD_NUMERIC_LABEL_CHANGED", "#/A/1")],
    ),
    ("message A { repeated string a = 1; }", "message A { optional string a = 1; }", []),
    ("message A {} message B {}", "message A {}", [("MESSAGE_REMOVED", "#/B")]),
    ("message A { message C {} }", "message A { }", [("MESSAGE_REMOVED", "#/A/C")]),
    (
        "message A { message C { int32 a = 1; } }",
        "message A { message C { string a = 1; } }",
        [("FIELD_SCALAR_KIND_CHANGED", "#/A/C/1")],
    ),
    (
        "message A { B a = 1; } message B {} message C {}",
        "message A { C a = 1; } message B {} message C {}",
        [("FIELD_NAMED_TYPE_CHANGED", "#/A/1")],
    ),
    ("package a; message A {}", "package b; message A {}", [("PACKAGE_CHANGED", "#/")]),
    (
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        "message A { oneof o { int32 a = 1; } }",
        [("ONEOF_FIELD_REMOVED", "#/A/o/2")],
    ),
    ("message A { oneof o { int32 a = 1; int32 b = 2; } }", "message A { }", []),
    ("message A { int32 a = 1; }", "message A { oneof o { int32 a = 1; } }", []),
    (
        "message A { int32 a = 1; int32 b = 2; }",
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        [("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/A/o")],
    ),
    (
        "message A { int32 a = 1; oneof o { int32 b = 2; } }",
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        [("FIELD_MOVED_TO_EXISTING_ONEOF", "#/A/o")],
    ),
    ("enum E { Z = 0; A = 1; }", "enum E { Z = 0; }", []),
]  # fmt: skip - a row a case


@pytest.mark.parametrize(("old", "new", "kinds"), CASES)
def test_reader_reads_what_the_writer_wrote_by_the_table(old, new, kinds):
    assert found(old, new) == kinds


def test_required_field_may_neither_come_nor_go():
    with_it, without = "message A { required int32 a = 1; }", "message A { }"
    assert found(without, with_it, syntax="proto2") == [("REQUIRED_FIELD_ADDED", "#/A/1")]
    assert found(with_it, without, syntax="proto2") == [("REQUIRED_FIELD_REMOVED", "#/A/1")]


def test_imported_message_that_differs_is_found_in_its_own_file():
    order = 'import "money.proto"; message Order { shop.Money price = 1; }'
    other = ("money.proto", MONEY[1].replace("int64", "string"))
    job = Job(proto(order, other), previous=(proto(order, MONEY),), level="BACKWARD")
    assert [(each.kind, each.path) for each in check(job).differences] == [
        ("FIELD_SCALAR_KIND_CHANGED", "#/Money/1"),
        ("FIELD_NAMED_TYPE_CHANGED", "#/Order/1"),
    ]


def test_message_has_confluents_form():
    job = Job(proto("message A { string a = 1; }"), previous=(proto("message A { int32 a = 1; }"),), level="BACKWARD")
    assert check(job).messages[0] == (
        '{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path \'#/A/1\' in the new'
        ' schema does not match its kind in the old schema"}'
    )


WHOLE = """package com.shop;
import "google/protobuf/descriptor.proto";
import "money.proto";
option java_package = "com.x";
extend google.protobuf.FieldOptions { optional Note note = 50000; repeated string tag = 50001; }
message Note { optional int32 a = 1; }
message Order {  // a comment
  reserved 5, 9 to 11; reserved "foo";
  required string id = 1 [default = "a\\"b", (note) = {a: 3}, (tag) = "x", (tag) = "y"];
  map<string, Line> lines = 3;
  optional group G = 12 { optional int32 q = 1; }
  optional bytes raw = 13 [default = "\\001z", json_name = "RAW"];
  oneof pay { string card = 6; .shop.Money cash = 7 [deprecated = true]; }
  extensions 100 to max;
  message Line { optional Kind kind = 1; enum Kind { A = 0; B = 1; } }
}
service Shop { rpc Get (Order) returns (stream Order) { option deprecated = true; } }
"""


@pytest.mark.parametrize("normalize", [False, True])
def test_text_of_a_text_is_the_same_and_fits_it(normalize):
    source = proto(WHOLE, MONEY, syntax="proto2")
    once = check(Job(source, normalize=normalize)).text
    again = Job(source._replace(schema=once), normalize=normalize, previous=(source,), level="FULL")
    assert (check(again).text, check(again).messages) == (once, [])


def test_text_has_the_same_descriptor():
    source = proto(WHOLE, MONEY, syntax="proto2")
    text = check(Job(source)).text
    forms = [check(Job(each, form="serialized")).text for each in (source, source._replace(schema=text))]
    files = [FileDescriptorProto.FromString(base64.b64decode(each)) for each in forms]
    for message in (each for file in files for each in file.message_type):  # groups are written after fields
        message.field.sort(key=lambda field: field.number)
        message.nested_type.sort(key=lambda nested: nested.name)
    assert files[0] == files[1]
    assert "raw" in str(files[0])


def test_text_does_not_depend_on_spaces_and_comments():
    one = check(Job(proto("message A { string a = 1; }"))).text
    assert one == 'syntax = "proto3";\n\nmessage A {\n  string a = 1;\n}\n'
    assert check(Job(proto("/* x */\n message A{string a=1 ;}"))).text == one


def test_googles_own_types_may_be_imported():
    body = """import "google/protobuf/timestamp.proto"; import "google/type/money.proto";
        message Order { google.protobuf.Timestamp at = 1; google.type.Money price = 2; }"""
    assert "  google.type.Money price = 2;\n" in check(Job(proto(body))).text


def test_optional_field_of_a_descriptor_needs_no_oneof():
    main = FileDescriptorProto(name="a.proto", syntax="proto3")
    for message in (main.message_type.add(name="A"), main.message_type[0].nested_type.add(name="B")):
        message.oneof_decl.add(name="_g")
        for number, name in enumerate(("f", "g"), 1):
            message.field.add(name=name, number=number, type="TYPE_INT32", label="LABEL_OPTIONAL", proto3_optional=True)
    text = check(Job(proto("")._replace(schema=base64.b64encode(main.SerializeToString()).decode()))).text
    assert text.count("optional int32 f = 1;") == text.count("optional int32 g = 2;") == 2
    assert "oneof" not in text


def test_descriptor_in_base64_is_a_schema():
    source = proto('import "money.proto"; message Order { shop.Money price = 1; }', MONEY)
    text = check(Job(source)).text
    assert check(Job(source._replace(schema=check(Job(source, form="serialized")).text))).text == text


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("message A { string a = 1 }", "line 2:26"),
        ("message A { B b = 1; }", '"B" is not defined'),
        ('import "/etc/passwd";', "not found"),
        ('import "../../x.proto";', "not allowed"),
        ('import "google/type/../../x.proto";', "not allowed"),
        ('import "http://127.0.0.1/x.proto";', "."),
    ],
)
def test_what_is_no_schema_is_a_fault_with_its_place(schema, why):
    with pytest.raises(SchemaFaultError, match=why):
        check(Job(proto(schema)))


@pytest.mark.parametrize("name", ["/etc/x.proto", "../x.proto", "a\\b.proto", "", "c:x.proto"])
def test_reference_outside_of_the_registry_is_refused(name):
    with pytest.raises(SchemaFaultError, match="no name of a file"):
        check(Job(proto("", (name, 'syntax = "proto3";'))))


def test_empty_line_within_a_nested_message_is_indented_as_confluents_is():
    text = check(Job(proto("message A { message B { int32 x = 1; oneof o { int32 y = 2; } } }"))).text
    assert "  message B {\n    int32 x = 1;\n  \n    oneof o {\n" in text


ENTRY = "message A { repeated A.LinesEntry lines = 1; message LinesEntry { option map_entry = true;"
ENTRY += " string key = 1; int32 value = 2; } }"


def test_map_as_generated_classes_send_it_is_kept_and_is_a_map_in_the_normalized_form():
    map_ = proto("message A { map<string, int32> lines = 1; }")
    text = check(Job(proto(ENTRY))).text
    assert "repeated A.LinesEntry lines = 1;" in text
    assert "option map_entry = true;" in text
    assert check(Job(proto(ENTRY), normalize=True)).text == check(Job(map_, normalize=True)).text
    assert check(Job(proto(ENTRY), previous=(map_,), level="FULL")).messages == []


def test_map_of_another_value_does_not_fit_an_entry():
    job = Job(proto("message A { map<string, string> lines = 1; }"), previous=(proto(ENTRY),), level="BACKWARD")
    assert check(job).messages


@pytest.mark.parametrize("name", ["meta", "type/decimal", "type/variant"])
def test_files_of_confluent_are_built_in(name):
    assert check(Job(proto(f'import "confluent/{name}.proto"; message A {{ string a = 1; }}'))).text


def test_decimal_and_options_of_confluent_are_known():
    text = check(
        Job(
            proto(
                'import "confluent/meta.proto"; import "confluent/type/decimal.proto"; message A {'
                ' confluent.type.Decimal d = 1 [(confluent.field_meta).tags = "x", (confluent.field_meta).doc = "y"]; }'
            ),
            normalize=True,
        )
    ).text
    assert text.endswith(
        """message A {
  .confluent.type.Decimal d = 1 [(confluent.field_meta) = {
    doc: "y",
    tags: "x"
  }];
}
"""
    )


def test_options_keep_their_order_and_need_not_be_defined():
    text = check(
        Job(
            proto(
                'option java_package = "z"; option cc_enable_arenas = true; option java_multiple_files = true;'
                " message A {"
                " option (some.ref) = {a: [1, {b: X}]}; string a = 1 [deprecated = true, (z) = 1, ctype = CORD]; }"
            )
        )
    ).text
    assert (
        text
        == """syntax = "proto3";

option java_package = "z";
option cc_enable_arenas = true;
option java_multiple_files = true;

message A {
  option (some.ref) = {
    a: [
      1,
      {
        b: X
      }
    ]
  };

  string a = 1 [
    deprecated = true,
    (z) = 1,
    ctype = CORD
  ];
}
"""
    )


def test_message_may_have_a_name_of_googles():
    text = check(Job(proto("package google.protobuf; message FileOptions { FileOptions o = 1; }"))).text
    assert "  FileOptions o = 1;" in text


@pytest.mark.parametrize(
    "bad", ["message A { string a = ; }", "message A { string a = 1 [(x) = {]; }", 'option (a) = "']
)
def test_text_that_cannot_be_read_is_a_fault_with_its_line(bad):
    with pytest.raises(SchemaFaultError, match=r"line \d"):
        check(Job(proto(bad)))


def test_reference_that_is_not_imported_is_taken_unless_fields_are_validated():
    job = Job(proto("message A { shop.Money m = 1; }", MONEY))
    assert check(job).text
    with pytest.raises(SchemaFaultError, match="not defined"):
        check(job._replace(validates=True))


def test_serialized_form_has_the_options_of_confluent_in_a_package_of_its_own():
    text = 'package io.confluent.x; import "confluent/meta.proto";'
    text += ' message A { string a_b = 1 [(confluent.field_meta).doc = "why"]; }'
    data = base64.b64decode(check(Job(proto(text), form="serialized")).text)
    assert b"why" in data
    assert b"aB" not in data  # a name in JSON that nobody gave
