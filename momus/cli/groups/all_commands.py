"""The command `momus group` with all that it has: by a client of Kafka, and by the control endpoint."""

from __future__ import annotations

from momus.cli.groups import by_control, commands  # noqa: F401  # they add their commands to the group
from momus.cli.groups.commands import group

__all__ = ["group"]
