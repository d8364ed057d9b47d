"""The rules for topic names: valid names, collisions, and internal topics."""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC))

_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_LONGEST = 249  # leaves room for "-" and the partition in a directory's name


def name_fault(name: str) -> str | None:
    """What is wrong with a topic's name, or None."""
    if not name:
        fault = "the empty string is not allowed"
    elif name in (".", ".."):
        fault = f"'{name}' is not allowed"
    elif len(name) > _LONGEST:
        fault = f"the length of '{name}' is longer than the max allowed length {_LONGEST}"
    elif not _LEGAL.issuperset(name):
        fault = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {fault}"


def collision_key(name: str) -> str | None:
    """Names with the same key collide: metrics do not distinguish '.' from '_'."""
    return name.replace(".", "_") if "." in name or "_" in name else None
