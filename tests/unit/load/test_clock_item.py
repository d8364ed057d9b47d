"""The clock of a load: what it does not say, it does not do."""

from __future__ import annotations

import pytest

from broker.load.sources import read_value

MS = 1893456000000


@pytest.mark.parametrize(
    ("given", "does"),
    [
        ({"set": "2030-01-01T00:00:00Z"}, (MS, 0, False)),
        ({"advance": "2s"}, (None, 2000, False)),
        ({"freeze": True}, (None, 0, True)),
    ],
)
def test_clock_does_what_the_file_says_and_no_more(given, does):
    assert read_value("load", {"clock": given}).clock[1:] == does
