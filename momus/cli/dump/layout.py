"""The text of a dump: JSON with a record a line, or YAML. The same document is always the same text."""

from __future__ import annotations

import json
import re
from typing import Any

import click

BREAKS = re.compile("[\n\r\x85\u2028\u2029]")
A_LINE_EACH = ("records", "offsets", "acls", "quotas", "users")


def text_of(document: dict[str, Any], name: str) -> str:
    """The document as a file of this name has it. Errors: ClickException."""
    if name.endswith((".yaml", ".yml")):
        return _yaml(document)
    if name.endswith(".toml"):
        raise click.ClickException(f"{name}: TOML has no null, which records have: write .json or .yaml")
    return _json(document, 0) + "\n"


def check_name(name: str) -> None:
    """Errors: ClickException: a file of this name could not be written, or not be loaded."""
    if name != "-" and not name.endswith((".json", ".yaml", ".yml")):
        text_of({}, name)
        raise click.ClickException(f"{name}: name it .json or .yaml: its ending says what it is")


def _yaml(document: dict[str, Any]) -> str:
    try:
        import yaml
    except ImportError:
        raise click.ClickException(
            "YAML needs the extra yaml: pip install 'momus[yaml]'; .json needs nothing"
        ) from None

    comments = "".join(f"# not dumped: {each}\n" for each in document.get("not_dumped", ()))

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the library has no types
        """Puts texts into double quotes that hold what ends a line: else such a character may become a space."""

    def text(dumper: Any, value: str) -> Any:
        style = '"' if BREAKS.search(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    words: dict[str, Any] = {"allow_unicode": True, "sort_keys": False, "width": 1 << 20, "default_flow_style": False}
    return comments + str(yaml.dump(document, Dumper=Dumper, **words))


def _json(value: Any, depth: int, name: str = "") -> str:
    space, inside = "  " * depth, "  " * (depth + 1)
    if isinstance(value, dict) and value and depth < 4:
        rows = [f"{inside}{_line(key)}: {_json(each, depth + 1, key)}" for key, each in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{space}}}"
    if isinstance(value, list) and value:
        rows = [inside + (_line(each) if name in A_LINE_EACH else _json(each, depth + 1)) for each in value]
        return "[\n" + ",\n".join(rows) + f"\n{space}]"
    return _line(value)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
