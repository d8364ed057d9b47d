"""How the commands of this process connect to a broker: what -X and --config said."""

from __future__ import annotations

SETTINGS: dict[str, str] = {}
