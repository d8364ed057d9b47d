"""Login modules as Java cuts their texts: words, quotes, escapes, comments, and the file with several entries."""

from __future__ import annotations

import pytest

from broker.config.settings import ConfigError
from broker.security.jaas import parse_jaas, parse_jaas_file

BACKSLASH = chr(92)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.B required;", ("a.B", {})),
        ('a.B required x="1" y=two;', ("a.B", {"x": "1", "y": "two"})),
        (' a.B\n optional x="a \\"b\\" ; = \\\\" ; ', ("a.B", {"x": 'a "b" ; = \\'})),
        ('a.B required x="";', ("a.B", {"x": ""})),
        ("a.B required x='one \"two\"';", ("a.B", {"x": 'one "two"'})),
        ('a.B /* b */ required // c\n x="/* d */" ;', ("a.B", {"x": "/* d */"})),
        ("a.B REQUIRED x=a-b_c$d.1;", ("a.B", {"x": "a-b_c$d.1"})),
        ('a.B required user_ä="ü";', ("a.B", {"user_ä": "ü"})),
    ],
)
def test_jaas_is_read(text, expected):
    assert tuple(parse_jaas(text)) == expected


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("n", "\n"),
        ("t", "\t"),
        ("r", "\r"),
        ("f", "\f"),
        ("b", "\b"),
        ("101", "A"),
        ("1010", "A0"),
        ("477", "'7"),
        ("0z", "\0z"),
        ("q", "q"),
        ('"', '"'),
        (BACKSLASH, BACKSLASH),
    ],
)
def test_escape_in_a_value_is_what_java_makes_of_it(written, meant):
    assert parse_jaas(f'a.B required x="<{BACKSLASH}{written}>";').options == {"x": f"<{meant}>"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.B",
        "a.B required",
        "a.B needed;",
        'a.B required x="1;',
        'a.B required x="1\n";',
        "a.B required x;",
        "a.B required x=;",
        "a.B required x=12;",
        "a.B required x=-1;",
        "a.B required x=p@ss;",
        "a required ; b required;",
        "12 required;",
    ],
)
def test_jaas_that_is_wrong_is_refused_without_its_text(text):
    with pytest.raises(ConfigError, match=r"\[hidden\]") as refused:
        parse_jaas(text)
    assert "p@ss" not in str(refused.value)


def test_file_has_entries_with_modules():
    text = """
        /* for all */
        KafkaServer {
            a.Plain required user_alice="x" // the first
                user_bob="y";
            a.Scram optional;
        };
        inside.KafkaServer { a.Plain required; };
    """
    assert parse_jaas_file(text) == {
        "KafkaServer": (("a.Plain", {"user_alice": "x", "user_bob": "y"}), ("a.Scram", {})),
        "inside.KafkaServer": (("a.Plain", {}),),
    }
    assert parse_jaas_file(" // nothing") == {}


@pytest.mark.parametrize(
    "text",
    [
        "KafkaServer",
        "KafkaServer {",
        "KafkaServer { a.B required; }",
        "KafkaServer { };",
        "KafkaServer { a.B required };",
        'KafkaServer { a.B required x="secret" }; ',
        "A { a.B required; }; A { a.B required; };",
    ],
)
def test_file_that_is_wrong_is_refused_without_its_text(text):
    with pytest.raises(ConfigError, match=r"java\.security\.auth\.login\.config") as refused:
        parse_jaas_file(text)
    assert "secret" not in str(refused.value)
