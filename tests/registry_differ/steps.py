"""Random sequences of requests to a registry, drawn from a seed.

Beside the marks of material.py, `@ID1` stands for the second id that a registry has answered in the sequence, and
`@GUID1` for the second guid.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from associating import ASSOCIATING
from material import CONTEXT, METADATA, RULES, Material
from schemas import Reference, referable
from step import Step

LEVELS: Final = ("NONE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "full_transitive", "backward")
MODES: Final = ("READWRITE", "READONLY", "IMPORT", "READONLY_OVERRIDE", "FORWARD", "import")
VERSIONS: Final = ("1", "2", "latest", "1", "2", "3", "-1", "0", "x", "99999999999")
FORMATS: Final = ("resolved", "ignore_extensions", "serialized", "bad", "")


def sequence(rng: random.Random) -> list[Step]:
    """The steps of one sequence."""
    material, found = Material(rng), []
    for number in range(rng.choice((0, 0, 1, 2))):
        schema_type = rng.choice(material.types)
        name, text = referable(rng, schema_type, number)
        material.referred.append(Reference(schema_type, name, f"s{number}"))
        path = material.path("subjects", f"s{number}", "versions")
        found.append(Step("POST", path, {"schema": text, "schemaType": schema_type}))
    weighted = (*KINDS, *(ASSOCIATING if rng.random() < 0.4 else ()))
    kinds = [kind for kind, weight in weighted for _ in range(weight)]
    return found + [rng.choice(kinds)(material) for _ in range(rng.randint(2, 12))]


def register(of: Material) -> Step:
    """A registration."""
    query = of.query("normalize", "normalize")
    return Step("POST", of.path("subjects", of.subject(), "versions") + query, of.more(of.schema_body()))


def look_up(of: Material) -> Step:
    """A schema that is looked for."""
    body = of.schema_body()
    if of.rng.random() < 0.15:
        body["metadata"] = of.rng.choice(METADATA)
    if of.rng.random() < 0.02:
        body["ruleSet"] = of.rng.choice(RULES)
    return Step("POST", of.path("subjects", of.subject()) + of.query("normalize", "deleted", format=FORMATS), body)


def test(of: Material) -> Step:
    """A test of compatibility."""
    words = ("versions", of.rng.choice(VERSIONS)) if of.rng.random() < 0.6 else ("versions",)
    return Step(
        "POST",
        of.path("compatibility/subjects", of.subject(), *words) + of.query("verbose", "normalize"),
        of.schema_body(),
    )


def get_version(of: Material) -> Step:
    """A version, its text, or what refers to it."""
    words = of.rng.choice(((), (), ("schema",), ("referencedby",)))
    query = of.query("deleted", "findTags", format=FORMATS, referenceFormat=("qualified", "x"))
    return Step("GET", of.path("subjects", of.subject(), "versions", of.rng.choice(VERSIONS), *words) + query)


def list_versions(of: Material) -> Step:
    """The numbers of versions."""
    query = of.query("deleted", "deletedOnly", "deletedAsNegative", offset=("0", "1", "x"), limit=("1", "-1", "0"))
    return Step("GET", of.path("subjects", of.subject(), "versions") + query)


def lists(of: Material) -> Step:
    """Lists over subjects, of the sequence's own."""
    prefix = quote(of.rng.choice((f":{CONTEXT}:", f":{CONTEXT}:a")) if of.has_context else "a-@U", safe=":@")
    first = of.rng.choice(("subjects", "schemas", "schemas", "contexts"))
    if first == "contexts":
        return Step("GET", f"/contexts?contextPrefix={CONTEXT}")
    query = of.query(
        "deleted", "deletedOnly", "latestOnly", "aliases", limit=("1", "2"), offset=("1",), ruleType=("CEL", "X")
    )
    if of.has_context and of.rng.random() < 0.3:
        return Step("GET", f"/contexts/{CONTEXT}/{first}{query}")
    return Step("GET", f"/{first}{query or '?'}&subjectPrefix={prefix}")


def by_id(of: Material) -> Step:
    """A schema by its id or guid."""
    words = of.rng.choice(("", "", "/schema", "/subjects", "/versions"))
    subjects = (of.name(of.subject()), f":{CONTEXT}:") if of.has_context else (of.name(of.subject()), "none")
    query = of.query(
        "deleted", "fetchMaxId", "findTags", subject=subjects, format=FORMATS, referenceFormat=("qualified",)
    )
    number = f"@ID{of.rng.choice((0, 0, 0, 1, 2))}"
    if of.rng.random() < 0.15:
        return Step("GET", f"/schemas/guids/@GUID{of.rng.choice((0, 1))}{of.rng.choice(('', '/ids'))}{query}")
    if of.rng.random() < 0.06:
        number = of.rng.choice(("0", "-5", "x", "99999999999", "99999999"))
    if of.has_context and of.rng.random() < 0.6:
        return Step("GET", f"/contexts/{CONTEXT}/schemas/ids/{number}{words}{query}")
    if of.has_context:
        query = (
            f"{query or '?'}&subject={quote(of.rng.choice(subjects), safe=':@')}" if "subject=" not in query else query
        )
    return Step("GET", f"/schemas/ids/{number}{words}{query}")


def by_metadata(of: Material) -> Step:
    """The latest version with some properties."""
    query = of.rng.choice(
        ("", "?key=owner&value=me", "?key=owner&value=you&key=x&value=1", "?key=owner&value=me&deleted=true")
    )
    return Step("GET", of.path("subjects", of.subject(), "metadata") + query)


def delete(of: Material) -> Step:
    """A deletion of a version or a subject."""
    words = ("versions", of.rng.choice(VERSIONS)) if of.rng.random() < 0.5 else ()
    return Step("DELETE", of.path("subjects", of.subject(), *words) + of.query("permanent", "permanent"))


def tag(of: Material) -> Step:
    """Tags for a version."""
    entity = of.rng.choice(
        ({"entityPath": "R@U", "entityType": "sr_record"}, {"entityPath": "R@U.a", "entityType": "sr_field"})
    )
    body: dict[str, Any] = {of.rng.choice(("tagsToAdd", "tagsToRemove")): [{"schemaEntity": entity, "tags": ["T2"]}]}
    if of.rng.random() < 0.3:
        body["newVersion"] = of.rng.choice((1, 2, 3))
    if of.rng.random() < 0.2:
        body["metadata"] = of.rng.choice(METADATA)
    name = quote(of.name(of.subject()), safe=":@")
    return Step("POST", f"/subjects/{name}/versions/{of.rng.choice(VERSIONS)}/tags", body)


def settings(of: Material) -> Step:
    """A config, of a subject or of the sequence's context."""
    is_whole = of.has_context and of.rng.random() < 0.3
    path = f"/config/:{CONTEXT}:" if is_whole else of.path("config", of.subject())
    what = of.rng.random()
    if what < 0.35:
        return Step("GET", path + of.query("defaultToGlobal", "defaultToGlobal"))
    if what < 0.45:
        return Step("DELETE", path)
    choices: dict[str, Any] = {
        "compatibility": of.rng.choice((*LEVELS, *LEVELS, "bad", None)),
        "normalize": of.rng.choice((True, False, None)),
        "validateFields": of.rng.choice((True, False)),
        "validateNewSchemas": of.rng.choice((True, False)),
        "alias": of.rng.choice((of.name(of.subject()), of.subject() if of.has_context else "none-@U", "")),
        "compatibilityGroup": of.rng.choice(("group", "")),
        "defaultMetadata": of.rng.choice((*METADATA, None)),
        "overrideMetadata": of.rng.choice((*METADATA, None)),
        "defaultRuleSet": of.rng.choice((*RULES, None)),
        "overrideRuleSet": of.rng.choice((*RULES, None)),
        "compatibilityPolicy": of.rng.choice(("STRICT", "LENIENT")),
    }
    weights = (8, 3, 2, 2, 2, 1, 1, 1, 0.3, 0.3, 1)
    names = {of.rng.choices(list(choices), weights)[0] for _ in range(of.rng.choice((0, 1, 1, 2)))}
    if is_whole:
        names -= {"alias"}  # a context's would lead to the subjects of other sequences
    return Step("PUT", path + of.query("force"), {name: choices[name] for name in sorted(names)})


def mode(of: Material) -> Step:
    """A mode, of a subject or of the sequence's context."""
    path = f"/mode/:{CONTEXT}:" if of.has_context and of.rng.random() < 0.3 else of.path("mode", of.subject())
    what = of.rng.random()
    if what < 0.3:
        return Step("GET", path + of.query("defaultToGlobal", "defaultToGlobal"))
    if what < 0.5:
        return Step("DELETE", path + of.query("recursive"))
    return Step(
        "PUT", path + of.query("force", "force"), {"mode": of.rng.choice((*MODES, "READWRITE", "IMPORT", "bad"))}
    )


def delete_context(of: Material) -> Step:
    """A context that is deleted, if it has nothing."""
    return Step("DELETE", f"/contexts/{CONTEXT}")


KINDS: Final[tuple[tuple[Callable[[Material], Step], int], ...]] = (
    *((register, 16), (look_up, 7), (test, 6), (get_version, 7), (list_versions, 4), (lists, 5), (by_id, 7)),
    *((by_metadata, 2), (delete, 6), (tag, 2), (settings, 6), (mode, 4), (delete_context, 1)),
)
