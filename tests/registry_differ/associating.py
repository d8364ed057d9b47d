"""The steps of a sequence that are about associations of subjects and resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from material import CONTEXT, Material
from step import Step

NAMES: Final = ("t", "u")
NAMESPACE: Final = CONTEXT[1:]  # of which a STRONG association has its subjects in the sequence's context
LIFECYCLES: Final = ("STRONG", "WEAK", "WEAK", None, None, None)


def resource(of: Material) -> tuple[str, str]:
    """The name and the id of a resource: the id of "t" is most often r-t."""
    name = of.rng.choice((*NAMES, NAMES[0]))
    return name, f"r-{name if of.rng.random() < 0.9 else of.rng.choice(NAMES)}-@U"


def item(of: Material, *, may_be_wrong: bool = True) -> dict[str, Any]:
    """One association of a body."""
    rng, kind = of.rng, of.rng.choice(("key", "value", "value", None))
    own = [f":{CONTEXT}:{name}-{each}" for name in NAMES for each in ("key", "value")]
    subject = rng.choice(
        (None, None, *(of.name(each) for each in ("a", "a", "b-value", of.subject())), rng.choice(own))
    )
    found: dict[str, Any] = {"subject": subject, "associationType": kind, "lifecycle": rng.choice(LIFECYCLES)}
    if rng.random() < 0.35:
        found["schema"] = of.schema_body()
        found["lifecycle"] = rng.choice((None, None, "STRONG", found["lifecycle"]))
        found["subject"] = rng.choice((None, None, subject))
    if rng.random() < 0.2:
        found["frozen"] = rng.choice((True, False))
    if rng.random() < 0.1:
        found["normalize"] = True
    if may_be_wrong and rng.random() < 0.04:
        name, value = rng.choice(
            (("associationType", "other"), ("lifecycle", "Strong"), ("subject", ""), ("frozen", "x"))
        )
        found[name] = value
    return {key: value for key, value in found.items() if value is not None or rng.random() < 0.2}


def body(of: Material) -> dict[str, Any]:
    """A resource with one or two associations."""
    name, number = resource(of)
    found: dict[str, Any] = {"resourceName": name, "resourceNamespace": NAMESPACE, "resourceId": number}
    found["associations"] = [item(of) for _ in range(of.rng.choice((1, 1, 2)))]
    if of.rng.random() < 0.3:
        found["resourceType"] = of.rng.choice(("topic", "topic", "topic", "cluster"))
    if of.rng.random() < 0.05:
        found[of.rng.choice(("resourceName", "resourceNamespace", "associations", "resourceId"))] = of.rng.choice(
            (None, "", "a.b")
        )
        if not isinstance(found.get("associations"), list):
            found["associations"] = []
    return found


def path(of: Material, words: str) -> str:
    """A path, perhaps in the sequence's context."""
    return f"/contexts/{CONTEXT}{words}" if of.has_context and of.rng.random() < 0.4 else words


def create(of: Material) -> Step:
    """Associations that are made."""
    found = body(of)
    query = of.query("dryRun", context=(f":{CONTEXT}:",))
    if "dryRun=true" in query and of.rng.random() < 0.5:
        found.pop("resourceId", None)
    return Step("POST", path(of, "/associations") + query, found)


def put(of: Material) -> Step:
    """Associations that are made or changed."""
    found = body(of)
    number = found.pop("resourceId", None) if of.rng.random() < 0.5 else found.get("resourceId")
    return Step("PUT", path(of, f"/associations/resources/{number or 'r-t-@U'}") + of.query("dryRun"), found)


def look(of: Material) -> Step:
    """A list of associations."""
    name, number = resource(of)
    words = of.rng.choice(
        (
            *(
                f"resources/{number}",
                f"resources/{NAMESPACE}/{name}",
                f"resources/{NAMESPACE}/-",
                f"resources/-/{name}",
            ),
            f"subjects/{quote(of.name(of.subject()), safe=':@')}",
        )
    )
    if words == f"resources/-/{name}":  # in any namespace, so also in those of other sequences
        words = f"resources/{number}"
    kinds = {"associationType": ("key", "value"), "lifecycle": ("STRONG", "WEAK", "X"), "resourceType": ("topic", "x")}
    parts = {**kinds, "limit": ("1", "-1"), "offset": ("1", "0")}
    return Step("GET", path(of, f"/associations/{words}") + of.query(**parts))


def look_at_schemas(of: Material) -> Step:
    """A list of schemas, by the associations of their subjects."""
    prefix = quote(f":{CONTEXT}:" if of.has_context else "a-@U", safe=":@")
    query = of.query(
        lifecycle=("STRONG", "WEAK", "NONE", "X"), associationType=("key", "value"), resourceType=("topic",)
    )
    return Step("GET", f"/schemas{query or '?lifecycle=NONE&lifecycle=WEAK'}&subjectPrefix={prefix}")


def delete(of: Material) -> Step:
    """Associations that are deleted, perhaps with their subjects."""
    query = of.query("dryRun", "cascadeLifecycle", "cascadeLifecycle", associationType=("key", "value"))
    return Step("DELETE", path(of, f"/associations/resources/{resource(of)[1]}") + query)


def get_batch(of: Material) -> Step:
    """The associations of several resources."""
    rows = []
    for _ in range(of.rng.choice((0, 1, 2, 3))):
        name, number = resource(of)
        named = {"resourceName": name, "resourceNamespace": NAMESPACE, "resourceId": number}
        row: dict[str, Any] = {key: text for key, text in named.items() if of.rng.random() < 0.7}
        if of.rng.random() < 0.2:
            row["associationTypes"] = [of.rng.choice(("key", "value"))]
        if of.rng.random() < 0.2:
            row["lifecycle"] = of.rng.choice(("STRONG", "WEAK"))
        rows.append(row)
    return Step("POST", "/associations:batchGet" + of.query("includeSchemas", "includeSchemas"), {"requests": rows})


def change_batch(of: Material) -> Step:
    """Several resources that are changed at once."""
    rows = []
    for _ in range(of.rng.choice((1, 1, 2))):
        row = body(of)
        for each in row["associations"]:
            each["opType"] = of.rng.choice(("CREATE", "CREATE", "UPSERT", "DELETE"))
            if each["opType"] == "DELETE":
                each["cascadeLifecycle"] = of.rng.choice((True, False))
        rows.append(row)
    return Step("POST", path(of, "/associations:batchMutate") + of.query("dryRun"), {"requests": rows})


ASSOCIATING: Final[tuple[tuple[Callable[[Material], Step], int], ...]] = (
    *((create, 14), (put, 7), (look, 8), (delete, 5), (get_batch, 2), (change_batch, 5), (look_at_schemas, 2)),
)
