"""Files that fill a cluster and are meant to do harm: refused by a sentence, before what they would make is made."""

from __future__ import annotations

import tracemalloc

import pytest

from broker.load.problems import LoadError
from broker.load.sources import read_documents, read_value
from broker.shell.load.disk import read_paths

DOUBLED = "".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 10))
LISTS = f"a0: &a0 [{', '.join('x' * 10)}]\n{DOUBLED}"
TEXTS = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 100)}]\n"
DIGITS = "1" * 1_000_000
BOMBS = {
    "aliases of lists": ("yaml", LISTS, "its aliases make much more than the text has"),
    "aliases of nothing": ("yaml", LISTS.replace("x, " * 9 + "x", ""), "its aliases make much more than the text has"),
    "aliases of texts": ("yaml", TEXTS, "its aliases make much more than the text has"),
    "aliases of keys": ("yaml", LISTS.replace("[", "[{k: ").replace(", ", "}, {k: ").replace("]", "}]"), "its aliases"),
    "an alias of itself": ("yaml", "a: &a [1, *a]", "the alias a is within what it stands for"),
    "no such anchor": ("yaml", "a: *b", "undefined alias"),
    "YAML in brackets": ("yaml", "[" * 200_000, "this is nested more than 200 deep"),
    "YAML in braces": ("yaml", "{a: " * 200_000, "this is nested more than 200 deep"),
    "YAML in dashes": ("yaml", "- " * 2000 + "a", "this is nested more than 200 deep"),
    "JSON in brackets": ("json", "[" * 900 + "]" * 900, "this is nested more than 200 deep"),
    "JSON without end": ("json", '{"a":' * 200_000, "this is nested more than 200 deep"),
    "JSON that is wrong, deep": ("json", '[NaN, {"a": 1, "a": 2}, ' + "[" * 300 + "]" * 300 + "]", "nested more than"),
    "TOML in brackets": ("toml", "a = " + "[" * 900 + "]" * 900, "this is nested more than 200 deep"),
    "TOML in tables": ("toml", "a = " + "{b = " * 900 + "1" + "}" * 900, "this is nested more than 200 deep"),
    "TOML in dots": ("toml", "[" + ".".join("a" * 900) + "]", "this is nested more than 200 deep"),
    "digits of YAML": ("yaml", f"a: {DIGITS}", "a number has at most 4300 digits"),
    "digits of JSON": ("json", f'{{"a": {DIGITS}}}', "a number has at most 4300 digits"),
    "digits of TOML": ("toml", f"a = {DIGITS}", "a number has at most 4300 digits"),
    "infinity of YAML": ("yaml", "a: 1.0e+400", "1.0e+400 is a larger number than any that is read here"),
    "infinity of JSON": ("json", '{"a": 1e400}', "1e400 is a larger number than any that is read here"),
}


@pytest.mark.parametrize("what", BOMBS)
def test_bomb_is_refused_before_it_is_made(what):
    ending, text, why = BOMBS[what]
    tracemalloc.start()
    try:
        with pytest.raises(LoadError) as refused:
            read_documents([(f"bomb.{ending}", text)], {}.__getitem__)
        assert tracemalloc.get_traced_memory()[1] < (8 << 20) + 8 * len(text)
    finally:
        tracemalloc.stop()
    assert why in str(refused.value)
    assert str(refused.value).startswith("bomb.")
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("language", ["json", "toml", "yaml"])
def test_what_is_nested_less_is_read_and_its_lines_are_found(language):
    deep = "[" * 150 + "]" * 150
    text = {"json": f'{{"wrong":\n{deep}}}', "toml": f"wrong = {deep}", "yaml": f"wrong: {deep}"}[language]
    with pytest.raises(LoadError, match="wrong"):
        read_documents([(f"deep.{language}", text)], {}.__getitem__)


def test_value_that_is_nested_too_deep_is_refused():
    value = []
    for _ in range(900):
        value = [value]
    with pytest.raises(LoadError, match="nested more than 200 deep"):
        read_value("load", {"topics": value})


def test_aliases_that_make_little_are_read():
    rows = ", ".join(["{value: *v}"] * 50)
    text = f"topics:\n- name: t\n  records: [{{value: &v {{a: b}}}}, {rows}]\n"
    (topic,) = read_documents([("load.yaml", text)], {}.__getitem__).topics
    assert [row.value for row in topic.rows] == [b'{"a":"b"}'] * 51


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[" * 100_000, "this is nested more than 200 deep"),
        ('{"value": ' + DIGITS + "}", "a number has at most 4300 digits"),
        ("x" * 300, "a line is longer than"),
    ],
)
def test_line_of_records_that_is_no_record_is_refused(line, why, monkeypatch):
    if line[0] == "x":
        monkeypatch.setattr("broker.load.texts.LONGEST_LINE", 200)
    document = "topics: [{name: t, records_from: rows}]"
    with pytest.raises(LoadError, match="rows:2.*" + why):
        read_documents([("load.yaml", document)], {"rows": '{"value": "a"}\n' + line}.__getitem__)


def test_file_without_end_is_refused(tmp_path, monkeypatch):
    (tmp_path / "load.json").write_text('{"topics": [{"name": "t", "records_from": "/dev/zero"}]}')
    with pytest.raises(LoadError, match="/dev/zero is no file"):
        read_paths([str(tmp_path / "load.json")])
    with pytest.raises(LoadError, match="/dev/zero is no file"):
        read_paths(["/dev/zero"])
    monkeypatch.setattr("broker.shell.load.disk.MOST_BYTES", 50)
    with pytest.raises(LoadError, match="is larger than 0 MB"):
        read_paths([str(tmp_path / "load.json")])


@pytest.mark.parametrize("form", ["lines", "keyed"])
def test_line_without_end_is_refused_in_each_form_of_plain_lines(form, monkeypatch):
    monkeypatch.setattr("broker.load.record_lines.LONGEST_LINE", 200)
    document = f"topics: [{{name: t, records_from: rows, records_format: {form}}}]"
    read_documents([("load.yaml", document)], {"rows": "k:" + "x" * 198}.__getitem__)
    with pytest.raises(LoadError, match=r"rows:2.*a line is longer than"):
        read_documents([("load.yaml", document)], {"rows": "k:v\nk:" + "x" * 199}.__getitem__)
