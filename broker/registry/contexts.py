"""Contexts: registries within the registry, each with subjects and ids of its own. They are part of a subject's name.

    orders-value           of the default context, "."
    :.billing:orders-value of the context ".billing"
    :.billing:             the context itself, for config and mode
    :.__GLOBAL:            what counts for all contexts that have no config or mode of their own
    :*:orders              as a prefix: of any context

Source: Confluent's QualifiedSubject and ContextFilter.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

DEFAULT: Final = "."
GLOBAL: Final = ":.__GLOBAL:"
ANY: Final = ":*:"


def normalized(subject: str) -> str:
    """A subject as it is stored: without the default context, which it may name."""
    if not subject.startswith(":."):
        return subject
    context, _, name = subject[1:].partition(":")
    return prefix_of(context) + name


def context_of(subject: str | None) -> str:
    """The context of a subject as it is stored; "." for none."""
    return subject[1:].partition(":")[0] if subject and subject.startswith(":.") else DEFAULT


def prefix_of(context: str) -> str:
    """What the subjects of a context begin with."""
    return "" if context == DEFAULT else f":{context}:"


def name_of(subject: str) -> str:
    """A subject without its context."""
    return subject[len(prefix_of(context_of(subject))) :]


def beside(parent: str, subject: str) -> str:
    """What one subject means where another one names it: that of the other's context, if it names none itself."""
    found = normalized(subject)
    return found if found.startswith(":.") else prefix_of(context_of(parent)) + found


def is_whole(subject: str | None) -> bool:
    """Whether it is a context, not a subject in one."""
    return subject is None or not name_of(subject)


def is_within(subject: str, whole: str | None) -> bool:
    """Whether a subject is the one that is given, or of that context; None: of any."""
    if whole is None or whole == subject:
        return True
    return is_whole(whole) and (whole == GLOBAL or context_of(whole) == context_of(subject))


def out_of_contexts(words: list[str], query: dict[str, str]) -> list[str]:
    """The path /contexts/{context}/... as one without, its subjects in the context; `query` is changed likewise.

    Errors: ValueError: it is no name of a context.
    """
    if words[:1] != ["contexts"] or len(words) < 3:
        return words
    prefix, rest = given_prefix(unquote(words[1])), words[2:]
    found, is_subject = [], False
    for number, word in enumerate(rest):
        found.append(_within(word, prefix) if is_subject else word)
        is_subject = not is_subject and (word == "subjects" or (number == 0 and word in ("config", "mode")))
    if is_subject and rest[0] in ("config", "mode") and prefix:
        found.append(quote(prefix, safe=""))
    if rest[:2] == ["schemas", "ids"]:
        query["subject"] = unquote(_within(quote(query.get("subject", ""), safe=""), prefix))
    elif rest[0].startswith("associations"):
        query["context"] = prefix
    elif rest in (["schemas"], ["subjects"]):
        query["subjectPrefix"] = unquote(_within(quote(query.get("subjectPrefix", ""), safe=""), prefix))
    return found


def given_prefix(context: str) -> str:
    """What the subjects of a context begin with that is named in a path: .c, c or :.c:. Errors: ValueError."""
    name = context.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise ValueError(f"Context name '{name}' cannot contain a colon")
    return prefix_of(name if name.startswith(".") else f".{name}")


def _within(word: str, prefix: str) -> str:
    return word if unquote(word).startswith((":.", ANY)) else quote(prefix, safe="") + word
