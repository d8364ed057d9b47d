"""Bytes of records in JSON, and back."""

from __future__ import annotations

import pytest

from protocol.record_json import from_json, to_json


@pytest.mark.parametrize(
    ("data", "shown"), [(None, None), (b"", ""), ("ä".encode(), "ä"), (b"\xff\x00", {"base64": "/wA="})]
)
def test_bytes_are_shown_as_text_or_base64_and_read_back(data, shown):
    assert to_json(data) == shown
    assert from_json(shown) == data


@pytest.mark.parametrize("value", [1, [], {}, {"base64": 1}, {"base64": "?"}, {"base64": "ä"}, {"base64": "/wA"}])
def test_value_that_is_neither_text_nor_base64_is_refused(value):
    with pytest.raises(ValueError):  # noqa: PT011  # base64 raises its own, with its own words
        from_json(value)
