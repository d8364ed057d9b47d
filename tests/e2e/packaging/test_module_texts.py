"""The start scripts of test_drop_in.py are what Testcontainers' modules say, and the modules still say it."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from module_texts import SEEN, differences, strings_of_python, strings_of_text
from test_drop_in import MODULES

TEXTS = json.loads(SEEN.read_text())
# words of test_drop_in.py -> language and files of the module
SOURCES = {
    "java apache": ("java", ("kafka/KafkaHelper.java", "testcontainers/kafka/KafkaContainer.java")),
    "java confluent": ("java", ("kafka/KafkaHelper.java", "ConfluentKafkaContainer.java")),
    "java zookeeper": ("java", ("containers/KafkaContainer.java",)),
    "python zookeeper": ("python", ("__init__.py",)),
    "python kraft": ("python", ("__init__.py",)),
    "go": ("go", ("kafka.go",)),
}


@pytest.mark.parametrize("module", MODULES)
def test_start_script_is_made_of_what_the_module_says(module):
    place, start, script, line = MODULES[module]
    language, files = SOURCES[module]
    strings = [each for name, some in TEXTS[language]["texts"].items() if name.endswith(files) for each in some]
    assert place in strings
    assert line in strings
    said = " ".join("".join(strings).split())
    for piece in re.split(r"\{\w+\}|2181|localhost|\n", script):  # what the module puts in: numbers, names, settings
        assert " ".join(piece.split()) in said
    runs = f"while [ ! -f  ]; do sleep 0.1; done; {start.replace('{script}', '')}"
    assert " ".join(runs.split()) in said


def test_strings_of_a_source_are_those_that_a_program_uses():
    java = 'import a.b;\n/* "no" */ String s = "a\\n\\"b\\""; // "no"\nf("http://x");'
    assert strings_of_text(java) == ['a\n"b"', "http://x"]
    assert strings_of_text('import (\n\t"fmt"\n)\nconst s = `a "b"\n` // "no"') == ['a "b"\n']
    assert strings_of_python('"""no"""\ndef f(x):\n    """no"""\n    return f"a{x}b" + r"\\d"') == ["a", "b", "\\d"]


@pytest.mark.slow
@pytest.mark.java
def test_modules_say_what_they_said():
    if shutil.which("go") is None:
        pytest.skip("there is no go here")
    told, now = differences(TEXTS, {language: each["version"] for language, each in TEXTS.items()})
    assert told == []
    assert now == TEXTS
