"""The level that a topic sets is the one the broker compresses with (KIP-390)."""

from __future__ import annotations

import random

import pytest
from unit.partitions.data_path import DataPath, batch, values_of


def stored(codec: str, **settings: str) -> bytes:
    """What is stored of a plain batch by a topic with this codec."""
    path = DataPath()
    path.topic(**{"compression.type": codec}, **settings)
    rng = random.Random(1)
    words = [bytes(rng.choices(b"abcdefgh", k=rng.randrange(2, 9))) for _ in range(300)]
    values = [b" ".join(rng.choices(words, k=3000)) for _ in range(3)]
    assert path.produce(batch(*values)).error_code == 0
    data: bytes = path.fetch().records.read()
    assert values_of(data) == values
    return data


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", "1", "9"), ("lz4", "1", "17"), ("zstd", "-50", "19")])
def test_higher_level_stores_fewer_bytes(codec, low, high):
    key = f"compression.{codec}.level"
    sizes = [len(stored(codec, **{key: level})) for level in (low, high)]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize(("codec", "default"), [("gzip", "6"), ("gzip", "-1"), ("lz4", "9"), ("zstd", "3")])
def test_default_level_is_kafkas(codec, default):
    assert stored(codec) == stored(codec, **{f"compression.{codec}.level": default})
