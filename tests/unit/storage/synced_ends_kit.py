"""A log that is opened with a file of synced ends."""

from __future__ import annotations

from storage.segments.synced_ends import FILE_NAME

TOPIC, OTHER = b"t" * 16, b"u" * 16
PATH = f"/data/{FILE_NAME}"
