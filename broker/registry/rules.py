"""Rule sets: what clients do with a message beside its schema. The registry keeps them, and looks at their form.

    {"domainRules": [{"name": "checkLen", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "..."}]}

Source: Confluent's RuleSet and Rule.
"""

from __future__ import annotations

from typing import Any, Final

from broker.registry.errors import RegistryError, invalid_rules

Json = dict[str, Any]
PARTS: Final = ("migrationRules", "domainRules", "encodingRules")
FIELDS: Final = (
    *("name", "doc", "kind", "mode", "type", "tags", "params"),
    *("expr", "onSuccess", "onFailure", "disabled"),
)
KINDS: Final = ("TRANSFORM", "CONDITION")
OF_MIGRATION: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
MODES: Final = (*OF_MIGRATION, "WRITE", "READ", "WRITEREAD")
MANY_ACTIONS: Final = ("WRITEREAD", "UPDOWN")
LONGEST_NAME: Final = 256
TYPES: Final[dict[str, Any]] = {"tags": list, "params": dict, "disabled": bool}


def rules_of(given: object) -> Json | None:
    """A rule set as it is stored, without what is empty; None: there is none. Errors: RegistryError."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise _malformed("a rule set is an object")
    found: Json = {}
    names: set[str] = set()
    for part in PARTS:
        rows = given.get(part) or []
        if not isinstance(rows, list):
            raise _malformed(f'"{part}" takes a list')
        rules = [_rule(each, part) for each in rows]
        for rule in rules:
            if rule["name"] in names:
                raise invalid_rules(f"Found rule with duplicate name '{rule['name']}'")
            names.add(rule["name"])
        if rules:
            found[part] = rules
    if given.get("enableAt") is not None:
        found["enableAt"] = given["enableAt"]
    return found


def merged_rules(below: Json | None, above: Json | None) -> Json | None:
    """Rules of which the second win, name by name."""
    if below is None or above is None:
        return above if below is None else below
    found: Json = {}
    for part in PARTS:
        mine, his = below.get(part, []), above.get(part, [])
        names = {each["name"] for each in his}
        rules = [*(each for each in mine if each["name"] not in names), *his]
        if rules:
            found[part] = rules
    enabled = above.get("enableAt") or below.get("enableAt")
    return {**found, **({"enableAt": enabled} if enabled else {})}


def has_rule(rules: Json | None, kind: str) -> bool:
    """Whether there is a rule of this type."""
    return any(each["type"] == kind for part in PARTS for each in (rules or {}).get(part, []))


def without_rules(rules: Json | None, names: list[str]) -> Json | None:
    """Rules but those that are named."""
    if rules is None:
        return None
    kept = {part: [each for each in rules.get(part, []) if each["name"] not in names] for part in PARTS}
    rest = {key: value for key, value in rules.items() if key not in PARTS}
    return {**{part: rows for part, rows in kept.items() if rows}, **rest}


def _malformed(what: str) -> RegistryError:
    return RegistryError(422, 422, what)


def _rule(given: Any, part: str) -> Json:
    """Errors: RegistryError."""
    if not isinstance(given, dict):
        raise _malformed(f'"{part}" takes rules, which are objects')
    found: Json = {}
    for name in FIELDS:
        value: Any = given.get(name)
        if value is None:
            continue
        if not isinstance(value, TYPES.get(name, str)):
            raise _malformed(f'"{name}" of a rule takes {TYPES.get(name, str).__name__}')
        found[name] = (
            sorted(set(value)) if name == "tags" else dict(sorted(value.items())) if name == "params" else value
        )
    for name, known in (("kind", KINDS), ("mode", MODES)):
        if found.get(name, known[0]) not in known:
            raise _malformed(f'"{name}" of a rule is one of {", ".join(known)}')
    found["disabled"] = found.get("disabled", False)
    _check(found, part)
    return {key: value for key, value in found.items() if value not in ([], {})}


def _check(rule: Json, part: str) -> None:
    name, mode = rule.get("name"), rule.get("mode")
    if name is None:
        raise invalid_rules("Missing rule name")
    if not name:
        raise invalid_rules("Empty rule name")
    if len(name) > LONGEST_NAME:
        raise invalid_rules("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise invalid_rules(f"Illegal initial character in rule name: {name}")
    if not all(letter.isalnum() or letter in "_-" for letter in name):
        raise invalid_rules(f"Illegal character in rule name: {name}")
    if rule.get("type") is None:
        raise invalid_rules("Missing rule type")
    actions = [rule.get("onSuccess") or "", rule.get("onFailure") or ""]
    if mode not in (None, *MANY_ACTIONS) and any("," in each for each in actions):
        raise invalid_rules("Multiple actions only valid with WRITEREAD and UPDOWN")
    if part == "migrationRules" and mode not in OF_MIGRATION:
        raise invalid_rules("Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN")
    if part != "migrationRules" and mode in OF_MIGRATION:
        kind = "Domain" if part == "domainRules" else "Encoding"
        raise invalid_rules(f"{kind} rules can only be WRITE, READ, WRITEREAD")
