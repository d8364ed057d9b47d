"""How `momus proxy` connects to the upstream cluster: as the command line does, by the words of a client.properties.

Imported only where momus.launch.use_packages() has run.
"""

from __future__ import annotations

from momus.client.connect_settings import PASSES, READ, SETTINGS, of_security

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def connecting() -> dict[str, Any]:
    """What serve_proxy takes as `tls` and `authenticate`, made of SETTINGS. Errors: OSError."""
    if not SETTINGS:
        return {}
    from broker.config.config_values import ConfigError  # 10 ms
    from momus.client.wire_security import authenticate, protocol, tls_context

    name = protocol()
    try:
        made: dict[str, Any] = {"tls": tls_context()} if name.endswith("SSL") else {}
    except ConfigError as error:
        raise OSError(str(error)) from None
    if name.startswith("SASL"):
        made |= {"authenticate": authenticate, "passes_sasl": SETTINGS.get(PASSES, "false").lower() == "true"}
    return made


def serve(client_config: dict[str, str], **words: Any) -> int:
    """Run a proxy in a process of its own. Returns the exit code."""
    import sys

    from broker.shell.proxy.serve import serve_proxy

    SETTINGS.update(client_config)
    if unread := sorted(key for key in client_config.keys() - READ if of_security(key)):
        sys.stderr.write(f"momus: {', '.join(unread)}: no effect on how the proxy connects\n")
    try:
        found = connecting()
    except OSError as error:
        sys.stderr.write(f"momus: {error}\n")
        return 2
    return serve_proxy(**words, **found)
