"""Request and response headers, and the one API whose answer breaks the rule."""

from __future__ import annotations

import pytest

from protocol.api import ApiKey
from protocol.errors import MalformedError
from protocol.header import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    response_header_version,
)


@pytest.mark.parametrize(("version", "size"), [(7, 15), (8, 16)])
def test_request_header_of_a_flexible_version_has_tags(version: int, size: int) -> None:
    data = encode_request_header(ApiKey.OFFSET_COMMIT, version, 77, "abcde")
    header, position = decode_request_header(data + b"body")
    assert position == len(data) == size
    assert (header.api_key, header.api_version, header.correlation_id) == (8, version, 77)
    assert (header.client_id, header.unknown_tags) == ("abcde", None)


def test_request_header_keeps_unknown_tags_and_null_client_id() -> None:
    data = encode_request_header(ApiKey.OFFSET_COMMIT, 9, 1, None, {5: b"five", 300: b""})
    header, position = decode_request_header(memoryview(data))
    assert position == len(data)
    assert (header.client_id, header.unknown_tags) == (None, {5: b"five", 300: b""})


def test_request_header_of_an_unknown_key_is_read_without_tags() -> None:
    header, position = decode_request_header(encode_request_header(999, 5, 3, "c"))
    assert (header.api_key, header.correlation_id, position) == (999, 3, 11)


def test_request_header_of_api_versions_from_the_future_is_flexible() -> None:
    header, position = decode_request_header(bytes.fromhex("0012 0063 00000001 0001 61 00") + b"?")
    assert (header.api_version, position) == (99, 12)


@pytest.mark.parametrize("cut", range(16))
def test_request_header_cut_anywhere_is_malformed(cut: int) -> None:
    data = encode_request_header(ApiKey.OFFSET_COMMIT, 8, 77, "abcde")
    with pytest.raises(MalformedError):
        decode_request_header(data[:cut])


def test_request_header_with_a_lying_tag_is_malformed() -> None:
    data = encode_request_header(ApiKey.OFFSET_COMMIT, 8, 77, "abcde")[:-1] + b"\x01\x00\x7f"
    with pytest.raises(MalformedError, match="tag 0 claims 127 bytes"):
        decode_request_header(data)


@pytest.mark.parametrize(
    ("api_key", "version", "expected"),
    [
        (ApiKey.OFFSET_COMMIT, 7, 0),
        (ApiKey.OFFSET_COMMIT, 8, 1),
        (ApiKey.OFFSET_DELETE, 0, 0),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1),
        (ApiKey.API_VERSIONS, 0, 0),
        (ApiKey.API_VERSIONS, 4, 0),
    ],
)
def test_response_header_version_by_api(api_key: ApiKey, version: int, expected: int) -> None:
    assert response_header_version(api_key, version) == expected
    data = encode_response_header(api_key, version, 2**31 - 1)
    assert data == b"\x7f\xff\xff\xff" + bytes(expected)
    assert decode_response_header(data, api_key, version) == (2**31 - 1, len(data))


def test_response_header_cut_is_malformed() -> None:
    with pytest.raises(MalformedError):
        decode_response_header(b"\0\0\0\1", ApiKey.OFFSET_COMMIT, 8)
