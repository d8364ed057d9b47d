"""How the commands of this process connect to a broker: what -X and --config said, and which of their keys are read."""

from __future__ import annotations

SETTINGS: dict[str, str] = {}
PASSES = "momus.sasl.pass.through"  # clients of a proxy authenticate themselves; it does for what it asks itself
READ = frozenset(
    (
        PASSES,
        "client.id",
        "sasl.jaas.config",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        *(f"ssl.keystore.{each}" for each in ("certificate.chain", "key", "location", "password", "type")),
        *(f"ssl.truststore.{each}" for each in ("certificates", "location", "password", "type")),
    )
)
OF_SECURITY = ("momus.", "sasl.", "security.", "ssl.")


def of_security(key: str) -> bool:
    """Whether a key says how to connect, so that it must not be passed over in silence."""
    return key.startswith(OF_SECURITY)


def nearest(key: str) -> str:
    """A question to end a sentence with, " Did you mean sasl.username?"; "" where nothing is near."""
    import difflib  # 3 ms

    found = difflib.get_close_matches(key.lower().replace("_", "."), READ, 1, 0.75)
    return f" Did you mean {found[0]}?" if found else ""
