"""Parses and formats config values, with Kafka's error texts."""

from __future__ import annotations

import re
from typing import TypeAlias

from broker.config.addresses import java_address
from broker.config.config_defs import Rule

Value: TypeAlias = "bool | int | float | str | tuple[str, ...] | None"

# DescribeConfigs' number for each type.
TYPE_IDS = {
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}
_BITS = {"SHORT": 15, "INT": 31, "LONG": 63}
# As Java's Double.valueOf, which takes the suffixes of its literals, but for NaN and Infinity, which mean nothing here.
_DOUBLE = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[dDfF]?", re.ASCII)
_HEX_DOUBLE = re.compile(r"([+-]?0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)[pP][+-]?\d+)[dDfF]?", re.ASCII)
_THROTTLED = re.compile(r"(\d+:\d+)?")
TRIMMED = "".join(map(chr, range(0x21)))  # as Java trims: a no-break space is no space
BY_DURATION = "by_duration:"
_DURATION = re.compile(  # the groups: sign, days, hours, minutes, seconds, their fraction
    r"([-+]?)P(?:([-+]?\d+)D)?(?:T(?=[-+\d])(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)


_LEAST_AGE = {"age": 0, "positive age": 1}
NO_AGE = "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"


class ConfigError(ValueError):
    """An invalid value of a key."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {key}: {reason}")
        self.key = key
        self.value = value
        self.reason = reason


class StartRefusedError(ConfigError):
    """Settings that cannot be meant; the message is Kafka's own where Kafka does not start with them either."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(key, "", message)
        self.args = (message,)


def parse_value(key: str, kind: str, rule: Rule, text: str) -> Value:
    """Parse a value. Errors: ConfigError, with key, text and reason."""
    text = text.strip(TRIMMED)
    value: Value
    if kind in _BITS:
        value = _parse_int(key, kind, text)
    elif kind == "BOOLEAN":
        lowered = text.lower()
        if lowered not in ("true", "false"):
            raise ConfigError(key, text, "Expected value to be either true or false")
        return lowered == "true"
    elif kind == "DOUBLE":
        if found := _DOUBLE.fullmatch(text):
            value = float(found[1])
        elif found := _HEX_DOUBLE.fullmatch(text):
            value = float.fromhex(found[1])
        else:
            raise ConfigError(key, text, "Not a number of type DOUBLE")
    elif kind == "LIST":
        words = re.split(r"\s*,\s*", text, flags=re.ASCII) if text else []
        value = tuple(
            words if rule == "throttled replicas" else dict.fromkeys(words)
        )  # Kafka keeps such a list as it is
        if "" in value:
            raise ConfigError(key, text, "values must not be empty")
    else:
        value = text
    if rule is not None:
        _check(key, rule, value)
    return value


def _parse_int(key: str, kind: str, text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits.isascii() and digits.isdigit() and len(digits) < 20:
        value = int(text)
        if -(1 << _BITS[kind]) <= value < 1 << _BITS[kind]:
            return value
    raise ConfigError(key, text, f"Not a number of type {kind}")


def _check(key: str, rule: Rule, value: Value) -> None:
    if isinstance(rule, str):
        _check_special(key, rule, value)
    elif isinstance(rule, tuple) and isinstance(rule[0], str):
        for word in value if isinstance(value, tuple) else (value,):
            if word not in rule:
                raise ConfigError(key, word, f"String must be one of: {', '.join(map(str, rule))}")
    elif isinstance(rule, tuple) and isinstance(value, int | float):
        lowest, highest = rule
        if value < lowest:
            raise ConfigError(key, format_value(value), f"Value must be at least {lowest}")
        if highest is not None and value > highest:
            raise ConfigError(key, format_value(value), f"Value must be no more than {highest}")


def _check_special(key: str, rule: str, value: Value) -> None:
    if rule == "gzip level":
        if not (isinstance(value, int) and (value == -1 or 1 <= value <= 9)):
            raise ConfigError(key, value, "Value must be between 1 and 9 or equal to -1")
    elif rule == "throttled replicas":
        if value != ("*",) and not (isinstance(value, tuple) and all(map(_THROTTLED.fullmatch, value))):
            raise ConfigError(key, format_value(value), "must be '*' or a list of [partitionId]:[brokerId] pairs")
    elif rule == "task assignors":
        if value != ("sticky",):
            raise ConfigError(key, format_value(value), "sticky is the only one here: a Java class cannot be loaded")
    elif rule == "age or never":
        if value == 0:
            raise StartRefusedError(key, NO_AGE)
    elif rule in _LEAST_AGE:
        if isinstance(value, int) and value < (least := _LEAST_AGE[rule]):
            raise StartRefusedError(key, f"requirement failed: {key} must be greater than or equal to {least}")
    elif rule == "host counts":
        host_counts(key, str(value))
    elif rule == "offset reset":
        text = str(value)
        if text not in ("earliest", "latest") and not _is_by_duration(text):
            raise ConfigError(key, value, "must be earliest, latest or by_duration:PnDTnHnMn.nS")


def _is_by_duration(text: str) -> bool:
    try:
        return text.startswith(BY_DURATION) and duration_ms(text.removeprefix(BY_DURATION)) >= 0
    except ValueError:
        return False


def duration_ms(text: str) -> int:
    """Milliseconds of an ISO-8601 duration in days and smaller units: "P1DT2H30M1.5S".

    Errors: ValueError: it is none, or has more seconds than 63 bits hold. Source: Java's Duration.parse.
    """
    found = _DURATION.fullmatch(text)
    if found is None or len(text) > 200 or not any(found.groups()[1:5]):
        raise ValueError(f"not a duration: {text:.100}")
    sign, days, hours, minutes, whole, fraction = found.groups()
    seconds = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60 + int(whole or 0)
    if abs(seconds) >= 1 << 63:
        raise ValueError(f"too long a duration: {text:.100}")
    part_ns = int((fraction or "").ljust(9, "0")) * (-1 if (whole or "").startswith("-") else 1)
    return (-1 if sign == "-" else 1) * (seconds * 1000 + part_ns // 1_000_000)


def host_counts(key: str, text: str) -> dict[str, int]:
    """HOST:COUNT, separated by commas. Errors: ConfigError."""
    found = {}
    for pair in filter(None, text.replace(" ", "").split(",")):
        host, colon, count = pair.rpartition(":")
        if not colon or not (count.isascii() and count.isdigit()):
            raise ConfigError(key, text, f"{pair} is not HOST:COUNT")
        found["127.0.0.1" if host == "localhost" else java_address(host)] = int(count)
    return found


def format_value(value: Value) -> str | None:
    """A value as Kafka writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return "1.7976931348623157E308" if value > 1e308 else repr(value)
    return str(value)
