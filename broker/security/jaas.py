"""Reads the value of `sasl.jaas.config`: a login module with its options."""

from __future__ import annotations

import re
from typing import NamedTuple

from broker.config.config_values import ConfigError

_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^\s"=;]+)|([=;]))', re.DOTALL)
_FLAGS = ("required", "requisite", "sufficient", "optional")
KEY = "sasl.jaas.config"


class LoginModule(NamedTuple):
    """`CLASS FLAG name="value" ...;`"""

    name: str
    options: dict[str, str]


def parse_jaas(text: str) -> LoginModule:
    """The one login module of a value. Errors: ConfigError, without the value: it holds secrets."""
    words = _split(text)
    if len(words) < 3 or words[-1] != ";":
        raise _wrong("it must be CLASS required name=value ...;")
    if words[1].lower() not in _FLAGS:
        raise _wrong(f"the word behind the class must be one of {', '.join(_FLAGS)}")
    options = {}
    rest = words[2:-1]
    if len(rest) % 3 or any(equals != "=" for equals in rest[1::3]) or {"=", ";"} & {*rest[::3], *rest[2::3]}:
        raise _wrong("options must be name=value, for one login module")
    for name, value in zip(rest[::3], rest[2::3], strict=True):
        options[name.text] = value.text
    return LoginModule(words[0].text, options)


class _Word(str):
    """A word as it was written; `text` is what it stands for."""

    __slots__ = ("text",)
    text: str


def _split(text: str) -> list[_Word]:
    words = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _wrong("a quotation mark is not closed")
        quoted, bare, sign = found.groups()
        word = _Word("quoted" if quoted is not None else bare or sign)
        word.text = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if quoted is not None else bare or sign
        words.append(word)
        position = found.end()
    return words


def _wrong(why: str) -> ConfigError:
    return ConfigError(KEY, "[hidden]", why)
