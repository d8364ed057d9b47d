"""Names that clients choose, in sentences for people: in the log, in the journal, in the text of errors."""

from __future__ import annotations

import re
from typing import Final

# One word, that cannot be taken for more than a name: topics, and all ids that clients make up by themselves.
PLAIN: Final = re.compile(r"[\w.:@/+*-]+", re.ASCII)


def shown(name: str) -> str:
    """A name as it is if it is one plain word, otherwise in quotes with escapes: it ends where the quotes end."""
    return name if PLAIN.fullmatch(name) else repr(name)
