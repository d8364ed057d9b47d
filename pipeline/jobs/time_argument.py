"""Times on the command line: ISO 8601, UTC unless a zone is given."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime


def time_argument(text: str) -> datetime:
    """A type for argparse. Errors: ArgumentTypeError: the text is not ISO 8601."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time in ISO 8601, as 2026-01-31T12:00:00 (UTC) or 2026-01-31T13:00:00+01:00"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
