"""Principals: who a connection acts for, as Kafka writes it, and how the name in a certificate becomes a user."""

from __future__ import annotations

import re
from typing import Any, Final

from broker.config.config_values import ConfigError

ANONYMOUS: Final = "User:ANONYMOUS"
INTERNAL: Final = "the broker itself"  # of the control plane's requests: no rule concerns it
RULES: Final = "ssl.principal.mapping.rules"
_RULE = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)\s*")
_BACK = re.compile(r"\$(\d)")
# Java writes these attributes by name, all others by their numbers.
_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_NUMBERS: Final = {"emailAddress": ("1.2.840.113549.1.9.1", 0x16), "serialNumber": ("2.5.4.5", 0x13)}


def distinguished_name(certificate: dict[str, Any]) -> str:
    """The subject of SSLSocket.getpeercert(), as Java's X500Principal.getName() writes it. Source: RFC 2253."""
    parts = []
    for relative in reversed(certificate.get("subject", ())):
        parts.append("+".join(_attribute(name, value) for name, value in relative))
    return ",".join(parts)


def _attribute(name: str, value: str) -> str:
    if name in _SHORT:
        return f"{_SHORT[name]}={_escaped(value)}"
    number, tag = _NUMBERS.get(name, (name, 0x0C))
    data = value.encode()
    return f"{number}=#{bytes([tag, len(data)]).hex() if len(data) < 128 else ''}{data.hex()}"


def _escaped(text: str) -> str:
    text = re.sub(r'([,+"\\<>;])', r"\\\1", text)
    if text[:1] in ("#", " "):
        text = "\\" + text
    return text[:-1] + "\\ " if text.endswith(" ") and len(text) > 1 else text


class PrincipalRules:
    """`ssl.principal.mapping.rules`: the first rule whose pattern matches the whole name decides.

    Errors: ConfigError.
    Source: KIP-371.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[Any, str, str] | None] = []  # None: the name as it is
        position = 0
        text = text.strip() or "DEFAULT"
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None or (found.end() < len(text) and text[found.end()] != ","):
                raise ConfigError(RULES, text, "is not RULE:pattern/replacement/[LU] or DEFAULT, separated by commas")
            default, pattern, replacement, case = found.groups()
            self._rules.append(None if default else (_compiled(pattern), replacement, case))
            position = found.end() + 1
            while text[position : position + 1] == " ":
                position += 1

    def principal(self, name: str) -> str:
        """The principal of a name; without a rule that matches it is ANONYMOUS as there is no user to name."""
        for rule in self._rules:
            if rule is None:
                return f"User:{name}"
            pattern, replacement, case = rule
            if (found := pattern.fullmatch(name)) is None:
                continue
            user = _BACK.sub(lambda back, found=found: found.group(int(back.group(1))) or "", replacement)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            return f"User:{user.lower() if case == 'L' else user.upper() if case == 'U' else user}"
        return ""


def _compiled(pattern: str) -> Any:
    import re2  # 8 ms, and few listeners have rules

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.replace("\\/", "/"), options)
    except re2.error as error:
        raise ConfigError(RULES, pattern, f"is no regular expression: {error}") from None
