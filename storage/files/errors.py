"""What can go wrong with a log, apart from the operating system's own OSError."""

from __future__ import annotations


class StorageError(Exception):
    """A log cannot be used: damaged, or broken by an earlier failure. The text says where, and what to do."""


class LockedError(StorageError):
    """Another process uses the data directory."""
