"""The Protobuf files that Confluent's registry has built in, beside Google's: options, decimals, variants.

Their names and numbers are those that Confluent's clients and connectors have compiled in.
"""

from __future__ import annotations

from typing import Final

_HEAD: Final = 'syntax = "proto3"; package {}; option java_package = "io.confluent.protobuf{}";'
_TARGETS: Final = ("file", "message", "field", "enum", "enum_value")
_META: Final = """
import "google/protobuf/descriptor.proto";
option java_outer_classname = "MetaProto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4; }
message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
"""
_DECIMAL: Final = "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
_VARIANT: Final = "message Variant { bytes metadata = 1; bytes value = 2; }"


def _extended(target: str) -> str:
    name = target.title().replace("_", "") + "Options"
    return f"extend google.protobuf.{name} {{ Meta {target}_meta = 1088; }}\n"


def _type(name: str, message: str) -> str:
    options = f'option java_multiple_files = true; option java_outer_classname = "{name}Proto";'
    return f"{_HEAD.format('confluent.type', '.type')} {options} {message}\n"


KNOWN: Final = {
    "confluent/meta.proto": _HEAD.format("confluent", "") + _META + "".join(map(_extended, _TARGETS)),
    "confluent/type/decimal.proto": _type("Decimal", _DECIMAL),
    "confluent/type/variant.proto": _type("Variant", _VARIANT),
}
