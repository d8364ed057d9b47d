"""Principals: who a connection acts for, as Kafka writes it, and how the name in a certificate becomes a user."""

from __future__ import annotations

import re
from typing import Any, Final

from broker.config.config_values import ConfigError

ANONYMOUS: Final = "User:ANONYMOUS"
INTERNAL: Final = "the broker itself"  # of the control plane's requests: no rule concerns it
RULES: Final = "ssl.principal.mapping.rules"
_RULE = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)\s*")
_PART = re.compile(r"\\(.)|\$(\d+)|(\$|\\)|([^$\\]+)", re.DOTALL)  # of a replacement
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
    size = len(data).to_bytes(2, "big").lstrip(b"\0")
    head = bytes([tag, len(data)]) if len(data) < 128 else bytes([tag, 0x80 + len(size)]) + size
    return f"{number}=#{head.hex()}{data.hex()}"


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
        self._rules: list[tuple[Any, list[str | int], str] | None] = []  # None: the name as it is
        position = 0
        text = text.strip() or "DEFAULT"
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None or (found.end() < len(text) and text[found.end()] != ","):
                raise ConfigError(RULES, text, "is not RULE:pattern/replacement/[LU] or DEFAULT, separated by commas")
            default, pattern, replacement, case = found.groups()
            if default:
                self._rules.append(None)
            else:
                compiled = _compiled(pattern)
                self._rules.append((compiled, _parts(replacement, compiled.groups), case))
            position = found.end() + 1
            while text[position : position + 1] == " ":
                position += 1

    def principal(self, name: str) -> str:
        """The principal of a name; "" without a rule that matches: its connection is closed."""
        for rule in self._rules:
            if rule is None:
                return f"User:{name}"
            pattern, parts, case = rule
            if (found := pattern.fullmatch(name)) is None:
                continue
            user = "".join(part if isinstance(part, str) else found.group(part) or "" for part in parts)
            return f"User:{user.lower() if case == 'L' else user.upper() if case == 'U' else user}"
        return ""


def _parts(replacement: str, groups: int) -> list[str | int]:
    """A replacement as text and numbers of groups. Errors: ConfigError.

    As in Kafka: `$N` with a number above that of the groups is text, if there is any group; `\\` takes the next
    character as it is.
    """
    parts: list[str | int] = []
    for escaped, number, sign, text in _PART.findall(replacement):
        if sign or (number and not groups and int(number)):
            raise ConfigError(RULES, replacement, "has a $ without the number of a group, or a \\ at its end")
        parts.append(int(number) if number and int(number) <= groups else f"${number}" if number else escaped or text)
    return parts


def _compiled(pattern: str) -> Any:
    import re2  # 8 ms, and few listeners have rules

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.replace("\\/", "/"), options)
    except re2.error as error:
        raise ConfigError(RULES, pattern, f"is no regular expression: {error}") from None
