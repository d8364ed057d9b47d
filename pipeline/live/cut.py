"""The cut: which offsets of a running broker's logs a job reads.

The broker goes on writing meanwhile. So the ends are looked at twice, all of them before any is looked at again, and a
job reads up to the second. What a record below the first look rests on was written before it, and is below the
second one: nothing that is written during the looks can make such a record look wrong.
"""

from __future__ import annotations

import contextlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from momus.client.connect_settings import SETTINGS
from momus.client.log_client import NO_ID, LogClient, LogPlace
from pipeline.errors import PipelineError


class LogCut(NamedTuple):
    """What is read of one log."""

    place: LogPlace
    first: int  # the first offset that a consumer could read
    seen: int  # the end at the first look; 0: the log was not there yet
    end: int  # at the second look

    @property
    def log(self) -> str:
        """The name that its folder has."""
        return f"{self.place.topic}-{self.place.partition}"

    @property
    def topic_id(self) -> str | None:
        """In Kafka's text form; None: the broker has no ids."""
        return None if self.place.topic_id == NO_ID else urlsafe_b64encode(self.place.topic_id).decode().rstrip("=")


class Cut(NamedTuple):
    """What is read of a broker, and how to reach it. settings: of pipeline.connection_options.given_settings."""

    bootstrap: str
    settings: Mapping[str, str]
    logs: tuple[LogCut, ...]


def take_cut(bootstrap: str, settings: Mapping[str, str]) -> Cut:
    """Look at the ends of all logs, twice. Errors: PipelineError: the broker cannot be asked, or has no log."""
    with connected(bootstrap, settings) as client:
        seen = client.ends(client.places())
        places = client.places()
        ends = client.ends(places)
        firsts = client.first_offsets(places)
    if not places:
        raise PipelineError(f"--input: the broker at {bootstrap} shows no topic to this user: nothing can be read")
    logs = (LogCut(each, min(firsts[each], ends[each]), seen.get(each, 0), ends[each]) for each in places)
    return Cut(bootstrap, dict(settings), tuple(logs))


@contextlib.contextmanager
def connected(bootstrap: str, settings: Mapping[str, str]) -> Iterator[LogClient]:
    """A client of the broker. Errors: PipelineError: it cannot be reached, or refuses what is asked."""
    SETTINGS.clear()
    SETTINGS.update(settings)
    try:
        with LogClient(bootstrap) as client:
            yield client
    except OSError as error:
        raise PipelineError(f"the broker at {bootstrap}: {error}") from None
