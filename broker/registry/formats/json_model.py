"""A JSON Schema as the rules of compatibility see it: a graph of nodes, each of one kind.

A schema whose keywords are of several kinds ("type" beside "enum", say) is their product: combined by "allOf". A list
of types is a sum: "anyOf". Without "type" the keywords say which types are meant. Names of `$ref` are resolved by
`referencing`, among the schema and its references alone: nothing is fetched from a file or a host.
Source: JSON Schema drafts 4 to 2020-12; the kinds are those that Confluent's registry compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from referencing import Registry, Resource
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import DRAFT7

from broker.registry.jobs import SchemaFaultError

if TYPE_CHECKING:
    from collections.abc import Iterable

EMPTY, FALSE, REFERENCE, COMBINED, NOT, CONDITIONAL = "empty", "false", "reference", "combined", "not", "conditional"
STRING, NUMBER, OBJECT, ARRAY, BOOLEAN, NULL = "string", "number", "object", "array", "boolean", "null"
ENUM, CONST = "enum", "const"
ALL, ANY, ONE = "allOf", "anyOf", "oneOf"
SNIFFED: Final = {
    STRING: frozenset(("maxLength", "minLength", "pattern", "format")),
    ARRAY: frozenset(
        (
            *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
            *("minContains", "maxContains", "unevaluatedItems"),
        )
    ),
    OBJECT: frozenset(
        (
            *("properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties"),
            *("additionalProperties", "propertyNames", "dependentRequired", "dependentSchemas"),
            "unevaluatedProperties",
        )
    ),
    NUMBER: frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
}
REFERRING: Final = ("$ref", "$dynamicRef", "$recursiveRef")
MODERN: Final = 2019  # the draft since which a "$ref" has neighbours that count
# By draft: the keywords of other drafts, which mean nothing in it.
FOREIGN: Final[dict[int, frozenset[str]]] = {
    MODERN: frozenset(("dependencies",)),
    7: frozenset(
        (
            *("dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "prefixItems"),
            *("$dynamicRef", "$recursiveRef"),
        )
    ),
}
FOREIGN[6] = FOREIGN[7] | {"if", "then", "else"}
FOREIGN[4] = FOREIGN[6] | {"const", "contains", "propertyNames"}
CONDITIONS: Final = ("if", "then", "else")


class Node:
    """A schema, or the part of one that is of a kind.

    raw    its JSON.
    parts  named nodes below it, by keyword: lists, dicts by name, or one.
    """

    __slots__ = ("criterion", "is_integer", "kind", "parts", "raw", "target")

    def __init__(self, kind: str, raw: Any) -> None:
        self.kind = kind
        self.raw = raw
        self.criterion = ""  # of COMBINED
        self.is_integer = False  # of NUMBER
        self.parts: dict[str, Any] = {}
        self.target: Node | None = None  # of REFERENCE

    def keyword(self, name: str) -> Any:
        """The value of a keyword; None: it has none."""
        return self.raw.get(name) if isinstance(self.raw, dict) else None

    @property
    def has_default(self) -> bool:
        """Whether a value is named for what is missing."""
        return isinstance(self.raw, dict) and "default" in self.raw

    def resolved(self) -> Node:
        """What a reference leads to; any other node itself."""
        node, seen = self, {id(self)}
        while node.kind == REFERENCE and node.target is not None:
            node = node.target
            if id(node) in seen:
                raise SchemaFaultError(f"{node.keyword('$ref')!r} refers to itself")
            seen.add(id(node))
        return node


def model(tree: Any, references: Iterable[tuple[str, Any]], specifications: Registry[Any]) -> Node:
    """The graph of a schema. Errors: SchemaFaultError: a `$ref` leads nowhere, or to itself."""
    resource = Resource.from_contents(tree, default_specification=DRAFT7)
    base = resource.id() or ""
    registry = specifications
    for name, each in references:
        other = Resource.from_contents(each, default_specification=DRAFT7)
        registry = registry.with_resource(name, other)
        if base:
            from urllib.parse import urljoin  # 2 ms: most schemas refer to no other

            registry = registry.with_resource(urljoin(base, name), other)
        if other.id():
            registry = registry.with_resource(str(other.id()), other)
    registry = registry.with_resource(base, resource).crawl()
    builder = _Builder(_draft(tree))
    found = builder.build(tree, registry.resolver_with_root(resource))
    builder.check()
    return found


def _draft(tree: Any) -> int:
    """The draft that a schema names, MODERN for 2019-09 and later; 7 where it names none."""
    named = str(tree.get("$schema", "")) if isinstance(tree, dict) else ""
    words = {"draft/20": MODERN, "draft-06": 6, "draft-04": 4}
    return next((draft for word, draft in words.items() if word in named), 7)


class _Builder:
    """Makes each node once, so that what refers to itself is a circle of nodes."""

    def __init__(self, draft: int) -> None:
        self._is_modern = draft == MODERN
        self._foreign = FOREIGN[draft]
        self._made: dict[int, Node] = {}
        self._kept: list[Any] = []  # whose ids are in use

    def check(self) -> None:
        """Refuse references that lead to themselves. Errors: SchemaFaultError."""
        for node in self._made.values():
            node.resolved()

    def build(self, raw: Any, resolver: Any) -> Node:
        """The node of a schema. Errors: SchemaFaultError."""
        if isinstance(raw, bool):
            return Node(EMPTY if raw else FALSE, raw)
        if not isinstance(raw, dict):
            raise SchemaFaultError(f"{raw!r:.100} is no schema, but neither an object nor true or false")
        if id(raw) in self._made:
            return self._made[id(raw)]
        known = self._known(raw)
        node = Node(EMPTY, known)
        self._made[id(raw)] = node
        self._kept.append(raw)
        inner = (
            resolver.in_subresource(Resource.from_contents(raw, default_specification=DRAFT7))
            if "$id" in raw
            else resolver
        )
        self._fill(node, known, inner)
        return node

    def _known(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The keywords that mean something in the draft, with how many items `contains` asks for, where that counts."""
        if not self._is_modern:
            return {name: value for name, value in raw.items() if name not in self._foreign}
        counted = {"minContains": 1} if "contains" in raw else {}
        left_out = self._foreign if "contains" in raw else self._foreign | {"minContains", "maxContains"}
        return {**counted, **{name: value for name, value in raw.items() if name not in left_out}}

    def _fill(self, node: Node, raw: dict[str, Any], resolver: Any) -> None:
        """Make a node what its keywords say it is."""
        referring = next((each for each in REFERRING if isinstance(raw.get(each), str)), None)
        parts: list[Node] = []
        if referring is not None:
            reference = Node(REFERENCE, raw)
            reference.target = self._target(raw[referring], resolver)
            parts.append(reference)
        if referring is None or self._is_modern:
            parts += self._parts(raw, resolver)
        if len(parts) == 1:
            (only,) = parts
            node.kind, node.criterion, node.is_integer = only.kind, only.criterion, only.is_integer
            node.parts, node.target = only.parts, only.target
        elif parts:
            node.kind, node.criterion, node.parts = COMBINED, ALL, {"subschemas": parts}
        for name in ("$defs", "definitions"):  # what is not used may still be wrong
            below = raw.get(name)
            for each in below.values() if isinstance(below, dict) else ():
                self.build(each, resolver)

    def _target(self, name: str, resolver: Any) -> Node:
        try:
            found = resolver.lookup(name)
        except (Unresolvable, NoSuchResource, ValueError):
            raise SchemaFaultError(
                f"the reference {name!r:.200} leads nowhere: it is neither in the schema nor one of its references"
            ) from None
        return self.build(found.contents, found.resolver)

    def _parts(self, raw: dict[str, Any], resolver: Any) -> list[Node]:
        """A node for each kind of keywords."""
        found = []
        if "enum" in raw:
            found.append(Node(ENUM, raw))
        if "const" in raw:
            found.append(Node(CONST, raw))
        for criterion in (ALL, ANY, ONE):
            if isinstance(raw.get(criterion), list):
                rows = [self.build(each, resolver) for each in raw[criterion]]
                found.append(_combined(criterion, raw, rows))
        if "not" in raw:
            node = Node(NOT, raw)
            node.parts["not"] = self.build(raw["not"], resolver)
            found.append(node)
        if "if" in raw or (not self._is_modern and not raw.keys().isdisjoint(CONDITIONS)):
            node = Node(CONDITIONAL, raw)
            node.parts = {each: self.build(raw[each], resolver) for each in CONDITIONS if each in raw}
            found.append(node)
        return [*found, *self._types(raw, resolver)]

    def _types(self, raw: dict[str, Any], resolver: Any) -> list[Node]:
        """The nodes of the types that are named, or meant."""
        given = raw.get("type")
        if isinstance(given, str):
            return [self._typed(given, raw, resolver)]
        if isinstance(given, list):
            return [_combined(ANY, raw, [self._typed(each, raw, resolver) for each in given])]
        return [self._typed(kind, raw, resolver) for kind, words in SNIFFED.items() if not words.isdisjoint(raw)]

    def _typed(self, kind: Any, raw: dict[str, Any], resolver: Any) -> Node:
        node = Node(NUMBER if kind == "integer" else kind, raw)
        node.is_integer = kind == "integer"
        if kind == OBJECT:
            self._object(node, raw, resolver)
        elif kind == ARRAY:
            self._array(node, raw, resolver)
        return node

    def _object(self, node: Node, raw: dict[str, Any], resolver: Any) -> None:
        for name in ("properties", "patternProperties", "dependentSchemas"):
            below = raw.get(name) or {}
            node.parts[name] = {key: self.build(each, resolver) for key, each in below.items()}
        node.parts["dependentRequired"] = {key: set(each) for key, each in (raw.get("dependentRequired") or {}).items()}
        for key, each in (raw.get("dependencies") or {}).items():
            if isinstance(each, list):
                node.parts["dependentRequired"][key] = set(each)
            else:
                node.parts["dependentSchemas"][key] = self.build(each, resolver)
        self._optional(node, raw, resolver, "additionalProperties", "unevaluatedProperties", "propertyNames")

    def _array(self, node: Node, raw: dict[str, Any], resolver: Any) -> None:
        first = raw.get("prefixItems", raw.get("items") if isinstance(raw.get("items"), list) else None)
        node.parts["first"] = [self.build(each, resolver) for each in first or ()]
        items = raw.get("items")
        if isinstance(items, bool) and self._is_modern:
            node.parts["rest"] = self.build(items, resolver)
        elif items is not None and not isinstance(items, list):
            node.parts["rest" if "prefixItems" in raw else "items"] = self.build(items, resolver)
        if "additionalItems" in raw and "prefixItems" not in raw:
            node.parts["rest"] = self.build(raw["additionalItems"], resolver)
        self._optional(node, raw, resolver, "unevaluatedItems", "contains")

    def _optional(self, node: Node, raw: dict[str, Any], resolver: Any, *names: str) -> None:
        for name in names:
            if name in raw:
                node.parts[name] = self.build(raw[name], resolver)


def _combined(criterion: str, raw: Any, rows: list[Node]) -> Node:
    node = Node(COMBINED, raw)
    node.criterion, node.parts = criterion, {"subschemas": rows}
    return node
