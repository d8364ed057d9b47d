"""What others have named does not steer the terminal of whoever lists it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momus.cli.commands import _table
from momus.cli.say import say, say_json
from momus.kit.visible import HIDDEN, visible, visible_json
from protocol.shown import shown

HOSTILE = "g\x1b]0;owned\x07\n\x9b2J\u202e\u2028end"


def test_visible_text_is_one_printable_line():
    assert visible(HOSTILE).isprintable()
    assert visible("größe 日本") == "größe 日本"


def test_visible_json_has_the_same_content():
    text = visible_json(json.dumps({"group": HOSTILE, "ok": "größe"}, ensure_ascii=False, indent=2))
    assert json.loads(text) == {"group": HOSTILE, "ok": "größe"}
    assert not HIDDEN.search(text.replace("\n", ""))
    assert "größe" in text


@pytest.mark.parametrize("how", [say, say_json, lambda text: _table([{"group": text}], ("group",))])
def test_commands_print_no_character_that_a_terminal_obeys(how, capsys):
    with CliRunner().isolation() as (out, *_):
        how(HOSTILE)
        printed = out.getvalue().decode()
    assert printed
    assert not HIDDEN.search(printed.replace("\n", ""))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("orders-1", "orders-1"),
        ("consumer-a.b_c-1", "consumer-a.b_c-1"),
        ("", "''"),
        ("two words", "'two words'"),
        ("g has no members", "'g has no members'"),
        ("a\nb", "'a\\nb'"),
        ("größe", "'größe'"),
    ],
)
def test_name_that_is_not_one_plain_word_is_quoted(name, wanted):
    assert shown(name) == wanted
