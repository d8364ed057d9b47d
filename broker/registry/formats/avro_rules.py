"""The rules by which an Avro schema reads what was written by another: Apache Avro's schema resolution, as findings.

The library has the rules as well (avro.compatibility), but tells what differs and where in two sets that cannot be put
together; a property test holds the verdicts of both against each other.

    both are                          the reader reads the writer if
    the same primitive type           always
    array, map                        it reads the items, the values
    fixed                             names and sizes are the same
    enum                              names are the same, and the reader has every symbol, or a default
    record                            names are the same, and each field of the reader is read, or has a default
    a union at the writer             it reads every branch
    a union at the reader             one of its branches reads the writer
    int, long, float, double          the writer's stands before the reader's
    string and bytes                  always

Names are compared without their namespace; an alias of the reader stands for the writer's full name.
Source: Apache Avro 1.11, "Schema Resolution", SchemaCompatibility; the sentences are Confluent's (avro/Difference).
"""

from __future__ import annotations

from typing import Any, Final

from broker.registry.formats.finding import Finding

WIDER: Final = {  # reader -> writers that it reads beside itself
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
SENTENCES: Final = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{path}' in the {{reader}} schema does not match with"
    " the {{writer}} schema",
    "TYPE_MISMATCH": "The type (path '{path}') of a field in the {{reader}} schema does not match with the {{writer}}"
    " schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "MISSING_ENUM_SYMBOLS": "The {{reader}} schema is missing enum symbols '{info}' at path '{path}' in the {{writer}}"
    " schema",
    "MISSING_UNION_BRANCH": "The {{reader}} schema is missing a type inside a union field at path '{path}' in the"
    " {{writer}} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{info}' at path '{path}' in the {{reader}} schema has no default"
    " value and is missing in the {{writer}} schema",
}
Path = tuple[str, ...]
MOST: Final = 1000  # findings: a name that is used twice, each time by two, would have many


def differences(reader: Any, writer: Any) -> list[Finding]:
    """Why the first of two schemas of `avro` cannot read what the second wrote; none: it can."""
    return _Comparison().compare(reader, writer, ())


class _Comparison:
    """One comparison. A pair that is met again within itself is taken for compatible: types may refer to themselves."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[Finding]] = {}

    def compare(self, reader: Any, writer: Any, path: Path) -> list[Finding]:
        """The findings of a pair at a place of the reader."""
        pair = (id(reader), id(writer))
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = self._compare(reader, writer, path)[:MOST]
        return self._known[pair]

    def _compare(self, reader: Any, writer: Any, path: Path) -> list[Finding]:
        mine, other = _kind(reader), _kind(writer)
        if mine == other:
            return self._same(mine, reader, writer, path)
        if other == "union":
            branches = enumerate(writer.schemas)
            return [each for number, branch in branches for each in self.compare(reader, branch, (*path, str(number)))]
        if mine == "union":
            if any(not self.compare(branch, writer, ()) for branch in reader.schemas):
                return []
            return [_finding("MISSING_UNION_BRANCH", path, f"reader union lacking writer type: {other.upper()}")]
        if other in WIDER.get(mine, ()):
            return []
        info = f"reader type: {mine.upper()} not compatible with writer type: {other.upper()}"
        return [_finding("TYPE_MISMATCH", path, info)]

    def _same(self, kind: str, reader: Any, writer: Any, path: Path) -> list[Finding]:
        if kind in PRIMITIVES:
            return []
        if kind == "array":
            return self.compare(reader.items, writer.items, (*path, "items"))
        if kind == "map":
            return self.compare(reader.values, writer.values, (*path, "values"))
        if kind == "union":
            return [
                _finding(
                    "MISSING_UNION_BRANCH",
                    (*path, str(number)),
                    f"reader union lacking writer type: {_kind(branch).upper()}",
                )
                for number, branch in enumerate(writer.schemas)
                if self.compare(reader, branch, ())
            ]
        found = _names(reader, writer, path)
        if kind == "fixed" and reader.size != writer.size:
            found.append(
                _finding("FIXED_SIZE_MISMATCH", (*path, "size"), f"expected: {writer.size}, found: {reader.size}")
            )
        elif kind == "enum":
            found += _symbols(reader, writer, path)
        elif kind == "record":
            found += self._fields(reader, writer, path)
        return found

    def _fields(self, reader: Any, writer: Any, path: Path) -> list[Finding]:
        found, named = [], writer.fields_dict  # `avro` makes it each time that it is asked for
        for number, field in enumerate(reader.fields):
            place = (*path, "fields", str(number))
            written = _written(field, named)
            if written is not None:
                found += self.compare(field.type, written.type, (*place, "type"))
            elif not field.has_default and _kind(field.type) == "enum" and "default" in field.type.props:
                found += self.compare(field.type, writer, (*place, "type"))  # as Java's library, which compares these
            elif not field.has_default:
                found.append(_finding("READER_FIELD_MISSING_DEFAULT_VALUE", place, field.name))
        return found


def _kind(schema: Any) -> str:
    kind = str(schema.type)
    return "record" if kind == "error" else "union" if kind == "error_union" else kind


def _names(reader: Any, writer: Any, path: Path) -> list[Finding]:
    if reader.name == writer.name or writer.fullname in _aliases(reader):
        return []
    return [_finding("NAME_MISMATCH", (*path, "name"), f"expected: {writer.fullname}")]


def _aliases(schema: Any) -> list[str]:
    """In full."""
    space = schema.fullname.rpartition(".")[0]
    return [each if "." in each or not space else f"{space}.{each}" for each in schema.props.get("aliases") or ()]


def _symbols(reader: Any, writer: Any, path: Path) -> list[Finding]:
    mine = set(reader.symbols)
    missing = [each for each in writer.symbols if each not in mine]
    if not missing or reader.props.get("default") in mine:
        return []
    return [_finding("MISSING_ENUM_SYMBOLS", (*path, "symbols"), f"[{', '.join(missing)}]")]


def _written(field: Any, named: Any) -> Any:
    """The one of the writer's fields that a field of the reader takes; None: there is none."""
    for name in (field.name, *(field.props.get("aliases") or ())):
        if name in named:
            return named[name]
    return None


def _finding(kind: str, path: Path, info: str) -> Finding:
    place = "/" + "/".join(path)
    sentence = SENTENCES[kind].format(path=place, info=info)
    return Finding(kind, place, f"{{errorType:'{kind}', description:'{sentence}', additionalInfo:'{info}'}}")
