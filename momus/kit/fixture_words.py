"""Which words the fixtures take: those of the class that makes the cluster, and those that are arranged afterwards."""

from __future__ import annotations

from momus.kit.words import unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

ARRANGED = ("topics", "faults")  # words of the marker that act on a cluster that is there
OURS = ("log",)  # given by the fixtures alone


def wrong_word(what: str, given: Iterable[str], made: Any, more: Iterable[str] = ()) -> str:
    """The sentence for a word that is not known; "" if all are.

    what   such as "make_kafka_broker takes no word".
    made   the class, Cluster or Broker, whose words are known.
    more   further ones.
    """
    defaults: dict[str, object] = made.__init__.__kwdefaults__
    return unknown(what, given, sorted({*defaults, *more} - {*OURS}))
