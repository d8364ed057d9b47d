"""A disk as a loss of power may leave it: made from the changes of a process up to a moment. Pure.

What was synced when its sync began is there. Of the rest any part may be: bytes by pages, which are the new ones, those
of the last sync, zeros, or half of each; and names, by the changes of a directory that were not synced, in order or
not. A rename is whole or not at all. The name of a new file is not synced with the file, but with its directory.
"""

from __future__ import annotations

from random import Random

from power_cuts.recording import Event

PAGE_BYTES = 4096
SECTOR_BYTES = 512


class File:
    """The bytes of a file: as the process has them, and as the last sync has left them."""

    __slots__ = ("durable", "now")

    def __init__(self) -> None:
        self.now = bytearray()
        self.durable = b""

    def write(self, data: bytes, position: int) -> None:
        """Bytes between the end and a later position are zero."""
        if position > len(self.now):
            self.now += bytes(position - len(self.now))
        self.now[position : position + len(data)] = data


class Folder:
    """The names in a directory: now, and as the last sync has left them."""

    __slots__ = ("durable", "now")

    def __init__(self) -> None:
        self.now: dict[str, File | Folder] = {}
        self.durable: dict[str, File | Folder] = {}


Entry = File | Folder
Change = tuple[Folder, str, Entry | None]  # in this folder the name has become this, or is gone


class Disk:
    """One directory and all below it."""

    def __init__(self, root: str) -> None:
        self.root_path = root.rstrip("/")
        self.root = Folder()
        self.files: dict[int, File] = {}  # by inode
        self.folders: dict[int, Folder] = {}
        self.changes: list[list[Change]] = []  # of names, not synced, in order; those of one rename together
        self.syncs: dict[tuple[int, int], bytes | int] = {}  # what a sync that runs will have made durable

    def apply(self, event: Event) -> None:
        """One change that the process has made."""
        what, inode = event.what, event.inode
        if what == "w":
            self._file(inode).write(event.more, event.place)
        elif what == "t":
            del self._file(inode).now[event.place :]
            if len(self._file(inode).now) < event.place:
                self._file(inode).write(b"", event.place)
        elif what == "b":
            if inode in self.files:
                self.syncs[inode, event.place] = bytes(self.files[inode].now)
            else:
                self.syncs[inode, event.place] = len(self.changes)
        elif what == "s":
            content = self.syncs.pop((inode, event.place), None)
            if isinstance(content, bytes):
                self.files[inode].durable = content
        elif what == "d":
            self._sync_names(inode, self.syncs.pop((inode, event.place), 0))
        else:
            self._apply_name(event)

    def _file(self, inode: int) -> File:
        return self.files.setdefault(inode, File())  # it was there before the recording

    def _place(self, path: bytes) -> tuple[Folder, str] | None:
        text = path.decode()
        if not text.startswith(self.root_path + "/"):
            return None
        *parents, name = [part for part in text[len(self.root_path) :].split("/") if part not in ("", ".")]
        folder = self.root
        for parent in parents:
            below = folder.now.get(parent)
            assert isinstance(below, Folder), text
            folder = below
        return folder, name

    def _apply_name(self, event: Event) -> None:
        place = self._place(event.first)
        other = self._place(event.more) if event.more else None
        if event.what == "c" and place is not None:
            file = self.files[event.inode] = File()
            self.folders.pop(event.inode, None)  # the number of one that was removed comes again
            self._change((*place, file))
        elif event.what == "m" and place is not None:
            folder = self.folders[event.inode] = Folder()
            self.files.pop(event.inode, None)
            self._change((*place, folder))
        elif event.what == "u" and place is not None:
            self._change((*place, None))
        elif event.what == "l" and place is not None and other is not None:
            self._change((*other, place[0].now[place[1]]))
        elif event.what == "r":
            moved = place[0].now[place[1]] if place is not None else File()
            self._change(*((*at, entry) for at, entry in ((place, None), (other, moved)) if at is not None))

    def _change(self, *changes: Change) -> None:
        for folder, name, entry in changes:
            if entry is None:
                folder.now.pop(name, None)
            else:
                folder.now[name] = entry
        self.changes.append(list(changes))

    def _sync_names(self, inode: int, upto: bytes | int) -> None:
        folder = self.folders.get(inode, self.root)
        assert isinstance(upto, int)
        left = []
        for number, group in enumerate(self.changes):
            if number < upto and any(each[0] is folder for each in group):
                _keep(group)
            else:
                left.append(group)
        # the other running syncs of names count in the list as it was: they begin again at what is left of it
        shift = len(self.changes) - len(left)
        for key, value in self.syncs.items():
            if isinstance(value, int):
                self.syncs[key] = max(0, value - shift)
        self.changes = left

    def cut(self, rng: Random) -> dict[str, bytes]:
        """The files that the next process may find, by path from the root; folders end with a slash."""
        share = rng.choice((0.0, 0.3, 0.7, 0.95, 1.0))
        durable: dict[int, dict[str, Entry]] = {}

        def names_of(folder: Folder) -> dict[str, Entry]:
            return durable.setdefault(id(folder), dict(folder.durable))

        if rng.random() < 0.5:  # a journal keeps the order
            kept = self.changes[: rng.randint(0, len(self.changes))]
        else:
            kept = [group for group in self.changes if rng.random() < share]
        for group in kept:
            for folder, name, entry in group:
                if entry is None:
                    names_of(folder).pop(name, None)
                else:
                    names_of(folder)[name] = entry
        found: dict[str, bytes] = {}
        todo: list[tuple[str, Folder]] = [("", self.root)]
        while todo:
            path, folder = todo.pop()
            for name, entry in sorted(names_of(folder).items()):
                if isinstance(entry, Folder):
                    found[f"{path}{name}/"] = b""
                    todo.append((f"{path}{name}/", entry))
                else:
                    found[path + name] = torn(entry, rng)
        return found


def _keep(group: list[Change]) -> None:
    for folder, name, entry in group:
        if entry is None:
            folder.durable.pop(name, None)
        else:
            folder.durable[name] = entry


def torn(file: File, rng: Random) -> bytes:
    """What may be left of a file: its length is the new one, the synced one or between; its pages come in any order."""
    now, durable = bytes(file.now), file.durable
    if now == durable:
        return now
    fate = rng.random()
    if fate < 0.2:
        return durable
    if fate < 0.4:
        return now
    shorter, longer = sorted((len(now), len(durable)))
    size = rng.choice((len(now), len(now), len(durable), rng.randint(shorter, longer)))
    data = bytearray(size)
    page = rng.choice((SECTOR_BYTES, PAGE_BYTES))
    lost = rng.choice((0.1, 0.5, 0.9))
    for at in range(0, size, page):
        new, old = now[at : at + page], durable[at : at + page]
        kept = new
        if new != old and rng.random() < lost:
            middle = rng.choice((0, 0, page // 2, rng.randint(0, page)))
            kept = rng.choice(
                (new[:middle] + old[middle:], old[:middle].ljust(min(middle, len(new)), b"\0") + new[middle:])
            )
        part = kept[: size - at]
        data[at : at + len(part)] = part
    return bytes(data)
