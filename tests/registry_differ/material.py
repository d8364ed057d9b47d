"""What a random sequence of requests is about: its subjects, schemas and parameters, drawn from a seed.

Texts have marks, which a run replaces: `@U` by the sequence's own word. A sequence is about three subjects, of a
context of its own, or of the default one with the word in their names; so it finds nothing of those before it.
"""

from __future__ import annotations

import random
from typing import Any, Final
from urllib.parse import quote

from schemas import AVRO, JSON, PROTOBUF, Reference, schema

SUBJECTS: Final = ("a", "b-value", "c")
CONTEXT: Final = ".c@U"
METADATA: Final = (
    *({"properties": {"owner": "me"}}, {"properties": {"owner": "you", "x": "1"}}, {"tags": {"a": ["PII"]}}, {}),
    *({"properties": {"owner": "me"}, "sensitive": ["owner"]}, {"properties": {"confluent:version": "1"}}),
    *({"properties": {"group": "g1"}}, {"properties": {"group": "g2"}}, {"properties": {"confluent:reserved": "a"}}),
)
RULES: Final = (
    {"domainRules": [{"name": "r1", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]},
    {"domainRules": [{"name": "r2", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "X", "tags": ["b", "a"]}]},
    {"migrationRules": [{"name": "m1", "kind": "TRANSFORM", "mode": "UPGRADE", "type": "JSONATA", "expr": "$"}]},
    {"migrationRules": [{"name": "m1", "kind": "TRANSFORM", "mode": "WRITE", "type": "JSONATA"}]},
    *({"domainRules": [{"name": "1x", "kind": "CONDITION", "mode": "READ", "type": "CEL"}]}, {"domainRules": []}, {}),
    {"domainRules": [{"name": "r1", "mode": "READ", "type": "CEL", "params": {"z": "1", "a": "2"}, "disabled": True}]},
)


class Material:
    """That of one sequence.

    referred   what schemas may refer to, each the only version of its subject.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.has_context = rng.random() < 0.7
        self.referred: list[Reference] = []
        self.types = rng.choices((AVRO, JSON, PROTOBUF), weights=(5, 3, 3), k=rng.choice((1, 1, 1, 2)))
        self.seen: list[dict[str, Any]] = []  # bodies of schemas, of which some are sent again

    # -- names

    def name(self, subject: str) -> str:
        """A subject as it is named where no path names its context."""
        return f":{CONTEXT}:{subject}" if self.has_context else f"{subject}-@U"

    def path(self, first: str, subject: str, *rest: str) -> str:
        """A path about a subject, in one of the ways to name it."""
        words = "".join(f"/{each}" for each in rest)
        if self.has_context and self.rng.random() < 0.4:
            return f"/contexts/{CONTEXT}/{first}/{subject}{words}"
        name = self.name(subject)
        if not self.has_context and self.rng.random() < 0.1:
            name = f":.:{name}"
        return f"/{first}/{quote(name, safe=':@')}{words}"

    def subject(self) -> str:
        """One of the sequence; rarely one that is not there, or that others refer to."""
        names = [each.subject for each in self.referred]
        return self.rng.choice((*SUBJECTS, *SUBJECTS, *names, "none"))

    def query(self, *flags: str, **values: tuple[str, ...]) -> str:
        """Some of the parameters; flags are true or false."""
        found = [f"{each}={self.rng.choice(('true', 'true', 'false'))}" for each in flags if self.rng.random() < 0.3]
        found += [
            f"{each}={quote(self.rng.choice(of), safe=':@')}" for each, of in values.items() if self.rng.random() < 0.25
        ]
        return f"?{'&'.join(found)}" if found else ""

    # -- bodies

    def schema_body(self) -> dict[str, Any]:
        """A schema, a new one or one that was sent before."""
        rng = self.rng
        if self.seen and rng.random() < 0.4:
            body = dict(rng.choice(self.seen))
        else:
            schema_type = rng.choice(self.types)
            fitting = [each for each in self.referred if each.schema_type == schema_type]
            used = rng.sample(fitting, rng.randint(0, len(fitting)))
            body = {"schema": schema(rng, schema_type, used)}
            if schema_type != AVRO or rng.random() < 0.3:
                body["schemaType"] = schema_type
            if used:
                body["references"] = [self.reference(each) for each in used]
            self.seen.append(dict(body))
        return body

    def reference(self, given: Reference) -> dict[str, Any]:
        subject = given.subject if self.has_context and self.rng.random() < 0.5 else self.name(given.subject)
        version = self.rng.choice((1, 1, 1, 1, -1, 2))
        return {"name": given.name, "subject": subject, "version": version}

    def more(self, body: dict[str, Any]) -> dict[str, Any]:
        """What a registration may name beside its schema."""
        rng = self.rng
        if rng.random() < 0.2:
            body["metadata"] = rng.choice(METADATA)
        if rng.random() < 0.03:
            body["ruleSet"] = rng.choice(RULES)
        if rng.random() < 0.1:
            body["version"] = rng.choice((-1, 0, 1, 2, 3, 9))
        if rng.random() < 0.08:
            body["id"] = rng.choice((-1, 0, 1, 5, 100))
        if rng.random() < 0.05:
            body["schemaTagsToAdd"] = [
                {"schemaEntity": {"entityPath": "R@U", "entityType": "sr_record"}, "tags": ["T1"]}
            ]
        if rng.random() < 0.03:
            body["propagateSchemaTags"] = True
        if rng.random() < 0.02:
            body["unknown"] = 1
        if rng.random() < 0.02:
            body["schema"] = rng.choice((None, "", " ", 3))
        if rng.random() < 0.01:
            body["schemaType"] = rng.choice(("XML", "avro", None, 3))
        return body
