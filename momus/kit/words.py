"""Words that a call does not know: one sentence, with the words that there are and the one that may be meant; names as
words of a path."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

ARRANGED = ("topics", "load", "faults")  # words of the marker that act on a cluster that is there
MOST_BROKERS = range(1, 101)
MOST_JOURNAL_MB = 4096
OURS = ("log",)  # given by the fixtures alone


def unknown(what: str, given: Iterable[str], known: Collection[str]) -> str:
    """The sentence for the first word that is not known; "" if all are.

    what   such as "make_kafka_broker takes no word".
    """
    for word in given:
        if word not in known:
            from difflib import get_close_matches  # 5 ms: of a mistake alone

            near = get_close_matches(str(word), known, 1)
            return f"{what} {word!r}{f', did you mean {near[0]!r}?' if near else ''}; there are {', '.join(known)}"
    return ""


def quoted(name: str) -> str:
    """A name as one word of a path of the control plane: a group may be called "a/b", "a?b" or "a%62"."""
    from urllib.parse import quote  # 2 ms, and there already where a control endpoint is

    return quote(name, safe="")


def check_numbers(brokers: int, journal_mb: int) -> None:
    """Errors: ValueError: more or fewer virtual brokers, or a larger journal, than there may be."""
    if not 0 <= journal_mb <= MOST_JOURNAL_MB:
        raise ValueError(f"journal_mb={journal_mb!r}: a journal has 0 to {MOST_JOURNAL_MB} MB")
    if brokers not in MOST_BROKERS:
        raise ValueError(f"brokers={brokers!r}: a cluster has {MOST_BROKERS[0]} to {MOST_BROKERS[-1]} virtual brokers")


def check_users(users: object) -> None:
    """Errors: ValueError: names without passwords."""
    if users is not None and not isinstance(users, Mapping):
        raise ValueError(f'users={users!r}: names with their passwords, as users={{"alice": "secret"}}')


def wrong_word(what: str, given: Iterable[str], made: Any, more: Iterable[str] = ()) -> str:
    """The sentence for a word that is not known; "" if all are.

    what   such as "make_kafka_broker takes no word".
    made   the class, Cluster or Broker, whose words are known.
    more   further ones.
    """
    defaults: dict[str, object] = made.__init__.__kwdefaults__
    return unknown(what, given, sorted({*defaults, *more} - {*OURS}))
