"""Copies what a cluster holds beside records and offsets: share groups, group settings, ACLs and quotas.

Each part is checked before anything is made in the target, is read back, and gives entries of the proof.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.migrate.settings import Settings
    from pipeline.migrate.target_settings import TargetSettings

SHARE_GROUPS, GROUP_SETTINGS, ACLS, QUOTAS = "share-groups", "group-settings", "acls", "quotas"
PARTS: Final = (SHARE_GROUPS, GROUP_SETTINGS, ACLS, QUOTAS)  # what --without leaves out

Entry = dict[str, Any]


def refusals(target: TargetSettings, settings: Settings, shares: list[Any]) -> list[str]:
    """Why the target would refuse a part; nothing is made there."""
    found: list[str] = []

    def check(part: str, tried: Callable[[], object]) -> None:
        try:
            tried()
        except (PipelineError, OSError) as error:
            found.append(f"{error}; --without {part} leaves them out")

    if shares and not target.offers_share_groups():
        found.append(f"the target has no share groups; --without {SHARE_GROUPS} leaves them out")
    if settings.groups:
        check(GROUP_SETTINGS, lambda: target.set_group_settings(settings.groups, only_check=True))
    if settings.acls:
        check(ACLS, lambda: _need_authorizer(target))
    if settings.quotas:
        check(QUOTAS, lambda: target.set_quotas(settings.quotas, only_check=True))
    return found


def _need_authorizer(target: TargetSettings) -> None:
    if not target.has_authorizer():
        raise PipelineError("the source has ACLs, and the target no authorizer (authorizer.class.name)")


def move_share_groups(target: TargetSettings, shares: list[Any]) -> list[Entry]:
    """Set the start offsets, and read them back. shares: rows of share_groups.share_positions."""
    entries = []
    for group, rows in groupby(shares, key=lambda row: str(row["group"])):
        of_group = list(rows)
        wanted = {(row["topic"], row["partition"]): row["target_offset"] for row in of_group}
        target.set_share_offsets(group, wanted)
        entries += share_entries(of_group, target.share_starts(group, wanted))
    return entries


def share_entries(rows: Iterable[Any], read_back: dict[tuple[str, int], int] | None = None) -> list[Entry]:
    """Entries of the proof. read_back: None: a dry run.

    delivered_again: records beyond the start offset that were done in the source, which no request can say.
    """
    return [
        {
            "group": row["group"],
            "log": row["log"],
            "source_start_offset": row["start_offset"],
            "target_start_offset": row["target_offset"],
            "delivered_again": row["done"],
            **_compared(row["target_offset"], read_back, (row["topic"], row["partition"])),
        }
        for row in rows
    ]


def move_group_settings(target: TargetSettings, settings: Settings) -> list[Entry]:
    """Set them, and read them back."""
    target.set_group_settings(settings.groups)
    return setting_entries(settings, target.group_settings(settings.groups))


def setting_entries(settings: Settings, read_back: dict[str, dict[str, str | None]] | None = None) -> list[Entry]:
    """Entries of the proof. read_back: None: a dry run."""
    return [
        {"group": group, "name": name, "value": text, **_compared(text, read_back and read_back.get(group, {}), name)}
        for group, values in settings.groups.items()
        for name, text in values.items()
    ]


def move_acls(target: TargetSettings, settings: Settings) -> list[Entry]:
    """Add them, and read them back."""
    target.add_acls(settings.acls)
    return acl_entries(settings, target.acls())


def acl_entries(settings: Settings, read_back: set[tuple[Any, ...]] | None = None) -> list[Entry]:
    """Entries of the proof. read_back: None: a dry run."""
    return [
        {**each._asdict(), **({} if read_back is None else {"equal": tuple(each) in read_back})}
        for each in settings.acls
    ]


def move_quotas(target: TargetSettings, settings: Settings) -> list[Entry]:
    """Set them, and read them back."""
    target.set_quotas(settings.quotas)
    return quota_entries(settings, target.quotas())


def quota_entries(settings: Settings, read_back: dict[tuple[Any, str], float] | None = None) -> list[Entry]:
    """Entries of the proof. read_back: None: a dry run."""
    return [
        {
            "entity": dict(each.entity),
            "key": each.key,
            "value": each.value,
            **_compared(each.value, read_back, (each.entity, each.key)),
        }
        for each in settings.quotas
    ]


def _compared(wanted: Any, read_back: dict[Any, Any] | None, key: Any) -> Entry:
    if read_back is None:
        return {}
    return {"read_back": read_back.get(key), "equal": read_back.get(key) == wanted}


def entries_of(target: TargetSettings | None, settings: Settings, shares: list[Any]) -> dict[str, list[Entry]]:
    """The proof's entries of all parts, each of which is set in the target; None: a dry run, which sets nothing."""
    if target is None:
        return {
            "share_groups": share_entries(shares),
            "group_settings": setting_entries(settings),
            "acls": acl_entries(settings),
            "quotas": quota_entries(settings),
        }
    return {
        "share_groups": move_share_groups(target, shares),
        "group_settings": move_group_settings(target, settings) if settings.groups else [],
        "acls": move_acls(target, settings) if settings.acls else [],
        "quotas": move_quotas(target, settings) if settings.quotas else [],
    }
