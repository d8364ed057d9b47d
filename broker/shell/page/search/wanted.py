"""What a search wants of a record, and of a batch before its records are decoded. Pure: it reads and writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypedDict

from broker.shell.page.search.conditions import Condition
from protocol.record import decode_values

if TYPE_CHECKING:
    from protocol.record import Record
    from protocol.record_batch import BatchHeader

Text = Literal["key", "value", "header", "anywhere"]
TEXTS: Final[tuple[Text, ...]] = ("key", "value", "header", "anywhere")
NO_TIME: Final = -1


class Texts(TypedDict, total=False):
    """What must fit: texts that are in key, value, a header or anywhere; a Condition's text; times."""

    key: str
    value: str
    header: str
    anywhere: str
    path: str
    from_ms: int
    to_ms: int


class Job(Texts):
    """A search, for the process that does it: at most so many hits, with aborted records or not, in a form."""

    form: str
    most: int
    aborted: bool


class Wanted:
    """All that is given must fit.

    Errors: ValueError: the path is none.
    """

    __slots__ = ("_is_path_alone", "anywhere", "from_ms", "header", "key", "literals", "path", "to_ms", "value")

    def __init__(self, given: Texts) -> None:
        self.key, self.value, self.header, self.anywhere = (
            given.get(name, "").encode(errors="surrogatepass") for name in TEXTS
        )
        self.path = Condition(given["path"]) if given.get("path") else None
        self.from_ms: int | None = given.get("from_ms")
        self.to_ms: int | None = given.get("to_ms")
        self.literals = [each for each in (self.key, self.value, self.header, self.anywhere) if each]
        self._is_path_alone = self.path is not None and not self.literals and self.from_ms is None is self.to_ms

    def may_be_in(self, header: BatchHeader) -> bool:
        """Whether the times of a batch leave room for a record that fits."""
        return self.from_ms is None or header.max_timestamp >= self.from_ms or header.max_timestamp == NO_TIME

    def may_hold(self, section: bytes) -> bool:
        """Whether the uncompressed records of a batch can hold what is wanted: most batches are done with that."""
        for each in self.literals:
            if each not in section:
                return False
        return self.path is None or self.path.may_be_in(section)

    def among(self, section: bytes, count: int) -> set[int] | None:
        """The places of those records of a batch that can fit, found with all its values at once; None: any can."""
        if self.path is None or self.literals:  # a text is looked for faster, record by record
            return None
        try:
            fitting = self.path.fitting(decode_values(section, count))
        except ValueError:
            return None  # those before the record that cannot be read may fit
        return None if fitting is None else set(fitting)

    def fits(self, record: Record) -> bool:
        """Whether a record is one of those wanted."""
        if self._is_path_alone and self.path is not None:
            return self.path.fits(record.value)
        if self.from_ms is not None and record.timestamp < self.from_ms:
            return False
        if self.to_ms is not None and record.timestamp > self.to_ms:
            return False
        if self.key and self.key not in (record.key or b""):
            return False
        if self.value and self.value not in (record.value or b""):
            return False
        if self.header and not _in_headers(self.header, record):
            return False
        if (
            self.anywhere
            and self.anywhere not in (record.value or b"")
            and self.anywhere not in (record.key or b"")
            and not _in_headers(self.anywhere, record)
        ):
            return False
        return self.path is None or self.path.fits(record.value)


def _in_headers(wanted: bytes, record: Record) -> bool:
    """In the name of one, or in its value."""
    return any(wanted in name.encode() or wanted in (value or b"") for name, value in record.headers)
