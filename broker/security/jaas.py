"""Reads login modules with their options: the value of `sasl.jaas.config`, and the file that
-Djava.security.auth.login.config names.

Source: Kafka's JaasConfig and the JDK's ConfigFile, which cut their texts by java.io.StreamTokenizer: quoted words know
        \\n, \\t, \\r, \\f, \\b, \\a, \\v and octal numbers, end at a line's end, and a number must be quoted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from broker.config.config_values import ConfigError

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORD, _NUMBER, _SIGN = "word", "number", "sign"  # of an unquoted word, a number, any other character
KEY = "sasl.jaas.config"
FILE_KEY = "java.security.auth.login.config"


class LoginModule(NamedTuple):
    """`CLASS FLAG name="value" ...;`"""

    name: str
    options: dict[str, str]


class _Token(NamedTuple):
    kind: str  # of these three, or the quotation mark
    text: str

    @property
    def is_text(self) -> bool:
        return self.kind not in (_NUMBER, _SIGN)


_END: Final = _Token(_SIGN, "")


class _WrongError(ValueError):
    """What is wrong with a text; without the text: it holds secrets."""


def parse_jaas(text: str) -> LoginModule:
    """The one login module of a value. Errors: ConfigError, without the value."""
    tokens = _tokens(text, "-_$")
    modules = []
    try:
        while (token := next(tokens, _END)) is not _END:
            modules.append(_module(token, tokens))
        if not modules:
            raise _WrongError("Login module not specified in JAAS config")
        if len(modules) > 1:
            raise _WrongError(f"JAAS config property contains {len(modules)} login modules, should be 1 module")
    except _WrongError as error:
        raise ConfigError(KEY, "[hidden]", f'{error}; it is CLASS required name="value" ...;') from None
    return modules[0]


def parse_jaas_file(text: str) -> dict[str, tuple[LoginModule, ...]]:
    """The login modules of each entry, NAME { MODULE ... };. Errors: ConfigError, without the text."""
    tokens = _tokens(text, "-_$*")
    entries: dict[str, tuple[LoginModule, ...]] = {}
    try:
        while (token := next(tokens, _END)) is not _END:
            if not token.is_text or next(tokens, _END).text != "{":
                raise _WrongError("an entry is NAME { ... };")
            modules = []
            while (inner := next(tokens, _END)).text != "}" or inner.is_text:
                if inner is _END:
                    raise _WrongError("an entry is not closed by };")
                modules.append(_module(inner, tokens))
            if next(tokens, _END).text != ";" or not modules:
                raise _WrongError(f"the entry {token.text:.64} is not NAME {{ CLASS required ...; }};")
            if token.text in entries:
                raise _WrongError(f"Can not specify multiple entries for {token.text:.64}")
            entries[token.text] = tuple(modules)
    except _WrongError as error:
        raise ConfigError(FILE_KEY, "[hidden]", str(error)) from None
    return entries


def _module(token: _Token, tokens: Iterator[_Token]) -> LoginModule:
    """The login module that begins with this token."""
    if not token.is_text:
        raise _WrongError("Login module not specified in JAAS config")
    flag = next(tokens, _END)
    if flag is _END:
        raise _WrongError("Login module control flag not specified in JAAS config")
    if not flag.is_text or flag.text.lower() not in _FLAGS:
        raise _WrongError(f"Invalid login module control flag in JAAS config: one of {', '.join(_FLAGS)}")
    options = {}
    while (name := next(tokens, _END)) != _Token(_SIGN, ";"):
        if name is _END:
            raise _WrongError("JAAS config entry not terminated by semi-colon")
        equals, value = next(tokens, _END), next(tokens, _END)
        if not name.is_text or equals != _Token(_SIGN, "=") or not value.is_text:
            raise _WrongError('Value not specified for an option in JAAS config: write name="value"')
        options[name.text] = value.text
    return LoginModule(token.text, options)


def _tokens(text: str, more_letters: str) -> Iterator[_Token]:
    """The words of a text as StreamTokenizer cuts it."""
    at = 0
    while at < len(text):
        char = text[at]
        if char <= " ":
            at += 1
        elif char == "/":
            at = _comment_end(text, at)
        elif char in "\"'":
            word, at = _quoted(text, at)
            yield _Token(char, word)
        elif char.isascii() and (char.isdigit() or char in ".-"):
            start, at = at, at + 1
            while at < len(text) and text[at] in "0123456789.":
                at += 1
            yield _Token(_SIGN if text[start:at] in ("-", ".") else _NUMBER, text[start:at])
        elif _is_letter(char, more_letters):
            start = at
            while at < len(text) and (_is_letter(text[at], more_letters) or text[at] in "0123456789.-"):
                at += 1
            yield _Token(_WORD, text[start:at])
        else:
            yield _Token(_SIGN, char)
            at += 1


def _is_letter(char: str, more: str) -> bool:
    return (char.isascii() and char.isalpha()) or char in more or char >= "\xa0"


def _comment_end(text: str, at: int) -> int:
    """Where a comment ends: /* */, or one of a line, which a single / opens as well."""
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    while at < len(text) and text[at] not in "\r\n":
        at += 1
    return at


def _quoted(text: str, at: int) -> tuple[str, int]:
    """A quoted word, and where it ends: at the mark that opened it, or at the line's end."""
    mark, at = text[at], at + 1
    found = []
    while at < len(text) and text[at] not in (mark, "\n", "\r"):
        if text[at] == "\\" and at + 1 < len(text):
            char, at = _escaped(text, at + 1)
            found.append(char)
        else:
            found.append(text[at])
            at += 1
    return "".join(found), at + (text[at : at + 1] == mark)


def _escaped(text: str, at: int) -> tuple[str, int]:
    """The character that stands after a backslash here, and where it ends."""
    if text[at] not in "01234567":
        return _ESCAPES.get(text[at], text[at]), at + 1
    end = at + 1
    while end < len(text) and end - at < (3 if text[at] <= "3" else 2) and text[end] in "01234567":
        end += 1
    return chr(int(text[at:end], 8)), end
