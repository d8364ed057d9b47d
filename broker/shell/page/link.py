"""The link to the page, for a browser on this machine."""

from __future__ import annotations

from broker.shell.page import PAGE

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "::": "[::1]"}  # a browser cannot go to these


def link(address: str) -> str:
    """The link for an endpoint HOST:PORT."""
    host, _, port = address.rpartition(":")
    host = EVERYWHERE.get(host, host)
    return f"http://{f'[{host}]' if ':' in host and host[0] != '[' else host}:{port}{PAGE}"
