"""The requests that one connection has kept for their repeats: by API, by form, by the bytes that stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from broker.base.context import Context

MOST_KEPT: Final = 1024  # requests a connection and API
MOST_SIZES: Final = 16  # of the prefixes of requests with a field of any length; each is tried for every request
MOST_ALIKE: Final = 4  # of them with the same prefix: fetches of one session that name different partitions
KEPT_BYTES: Final = 1 << 20  # of the requests and replies of a connection and API
PATIENCE: Final = 8  # requests without a repeat between them after which fewer are kept


class Kept:
    """One request that was served, ready for its repeats."""

    __slots__ = (
        "after",
        "ask",
        "ctx",
        "is_compact",
        "other",
        "pack",
        "reply",
        "size",
        "statics",
        "tail",
        "unpack",
        "values",
        "whole",
        "width",
    )

    def __init__(self, ask: Any, ctx: Context) -> None:
        self.ask = ask
        self.ctx = ctx
        self.unpack: Any = None
        self.statics: tuple[bytes, ...] = ()
        self.width = 0
        self.after = slice(0, None, 1)  # where the bytes are that must be the same
        self.is_compact = False  # the length before a field of any length is a varint
        self.tail = b""  # what follows the field of any length, where there is one
        self.reply = b""  # the reply after its correlation id, up to the first field that differs
        self.size = b""  # of it, as it begins
        self.pack: Any = None  # packs the rest of the reply
        self.values: list[Any] = []  # what it packs; empty: nothing differs
        self.whole = b""  # the last reply after its correlation id
        self.other: Kept | None = None  # another one with the same prefix and other bytes after it


class Misses:
    """How many requests for one API came without a repeat since the last one; of a Table and of its Forms."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Form:
    """The requests kept of one version and size: how long their prefix is, and each by its prefix.

    Where a field is of any length, it is all of one version. The prefix ends before the length of the field, so what
    begins with the same bytes has its length there too.

    frame_bytes   of each request, its size field included; 0: any.
    prefix_sizes  those of all prefixes.
    """

    __slots__ = ("api_key", "frame_bytes", "kept", "misses", "prefix_bytes", "prefix_sizes")

    def __init__(self, api_key: int, misses: Misses, frame_bytes: int, prefix_bytes: int) -> None:
        self.api_key = api_key
        self.misses = misses
        self.frame_bytes = frame_bytes
        self.prefix_bytes = prefix_bytes
        self.prefix_sizes = [prefix_bytes]
        self.kept: dict[bytes, Kept] = {}


class Table:
    """The requests kept on one connection for one API."""

    __slots__ = ("api_key", "count", "forms", "held_bytes", "misses", "of_connection")

    def __init__(self, api_key: int, of_connection: dict[bytes, Form]) -> None:
        self.api_key = api_key
        self.forms: dict[bytes, Form] = {}  # by size, API and version as the frame has them, or by API and version
        self.of_connection = of_connection  # the same ones, with those of other APIs
        self.count = 0
        self.held_bytes = 0
        self.misses = Misses()

    def is_worth_keeping(self) -> bool:
        """Whether another request is kept: where no repeats come, only the 8th, 16th, 32nd ... is."""
        self.misses.count = misses = self.misses.count + 1
        return misses <= PATIENCE or not misses & (misses - 1)

    def keep(self, key: bytes, prefix: bytes, kept: Kept, size: int, frame_bytes: int) -> None:
        """Add a request. A full table is emptied first. `size`: of it with its reply; frame_bytes: as in Form."""
        form = self.forms.get(key)
        has_sizes = form is not None and len(form.prefix_sizes) >= MOST_SIZES and len(prefix) not in form.prefix_sizes
        if self.count >= MOST_KEPT or self.held_bytes + size > KEPT_BYTES or has_sizes:
            for each in self.forms:
                del self.of_connection[each]
            self.forms.clear()
            self.count = self.held_bytes = 0
            form = None
        if form is None or (frame_bytes and form.prefix_bytes != len(prefix)):
            form = Form(self.api_key, self.misses, frame_bytes, len(prefix))
            self.forms[key] = self.of_connection[key] = form
        if len(prefix) not in form.prefix_sizes:
            form.prefix_sizes.append(len(prefix))
        alike, other, is_new = [kept], form.kept.get(prefix), True
        while other is not None:
            if other.statics == kept.statics and other.tail == kept.tail:
                is_new = False
            elif len(alike) < MOST_ALIKE:
                alike.append(other)
            other = other.other
        for at, one in enumerate(alike):
            one.other = alike[at + 1] if at + 1 < len(alike) else None
        form.kept[prefix] = kept
        if is_new:
            self.count += 1
            self.held_bytes += size
