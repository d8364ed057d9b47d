"""A loss of power that takes a random part of what was not synced: of the names in each directory, and of the bytes.

Pages reach a disk in any order. So a file keeps a beginning of what was not synced, or all of it with holes: pages that
are zero, or whose later half is. Places that were written again have the old bytes or the new ones.
"""

from __future__ import annotations

from random import Random

from storage.files.inode import Inode
from storage.files.sim_env import MemoryFiles

_MISSING = object()
PAGE_BYTES = 4096
SECTOR_BYTES = 512


def power_cut(files: MemoryFiles, rng: Random) -> MemoryFiles:
    """The disk as the next process finds it. A rename is whole or not at all."""
    after = MemoryFiles()
    copies: dict[int, Inode] = {}
    share = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))  # of the changes that are kept

    def copied(inode: Inode | None) -> Inode | None:
        if inode is None:
            return None
        if id(inode) not in copies:
            size, synced = len(inode.data), inode.synced_bytes
            kept = rng.choice((synced, size, size, rng.randint(min(synced, size), size)))
            data = inode.data[:kept]
            for position, old in inode.replaced.items():
                if rng.random() < 0.5:
                    data[position : position + len(old)] = old
            if rng.random() < 0.5:
                make_holes(data, min(synced, size), rng)
            copies[id(inode)] = Inode(bytes(data[:kept]), kept)
        return copies[id(inode)]

    todo = [""]
    while todo:
        path = todo.pop()
        now, old = files._names[path], files._durable.get(path, {})
        entries = dict(old)
        for names in _changes(old, now):
            if rng.random() < share:
                for name in names:
                    entries.pop(name, None)
                    if name in now:
                        entries[name] = now[name]
        found = {}
        for name, inode in sorted(entries.items()):
            if inode is None:
                below = f"{path}/{name}" if path else name
                below = below if below in files._names else "/" + below
                if below not in files._names:
                    continue
                todo.append(below)
            found[name] = copied(inode)
        after._names[path], after._durable[path] = found, dict(found)
    return after


def make_holes(data: bytearray, start: int, rng: Random, page_bytes: int | None = None) -> None:
    """Lose some of the pages of a file after a position, all or the later half of each: they are zero."""
    page = page_bytes or rng.choice((SECTOR_BYTES, PAGE_BYTES))
    for position in range(start // page * page, len(data), page):
        if rng.random() < 0.3:
            first = max(start, position + rng.choice((0, 0, page // 2)))
            last = min(len(data), position + page)
            if first < last:
                data[first:last] = bytes(last - first)


def _changes(old: dict[str, Inode | None], now: dict[str, Inode | None]) -> list[list[str]]:
    """The names that are not as they were, those of one rename together."""
    changed = sorted(name for name in {*old, *now} if old.get(name, _MISSING) is not now.get(name, _MISSING))
    was = {id(inode): name for name, inode in old.items() if inode is not None}
    groups: list[list[str]] = []
    of: dict[str, list[str]] = {}
    for name in changed:
        inode = now.get(name)
        before = was.get(id(inode)) if inode is not None else None
        group = of.get(name) or of.get(before or "")
        if group is None:
            group = []
            groups.append(group)
        for each in (name, before):
            if each is not None and each not in of:
                group.append(each)
                of[each] = group
    return groups
