"""What others have written is in the lists of licences that a release makes."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("vendored", ROOT / "tools" / "vendored.py")
assert SPEC is not None
assert SPEC.loader is not None
vendored = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(vendored)


def test_licence_of_the_charts_is_added_to_both_lists_of_a_release(tmp_path):
    licences, sbom = tmp_path / "LICENSES.txt", tmp_path / "sbom.json"
    licences.write_text("click\n8.1\nBSD\n")
    sbom.write_text(json.dumps({"bomFormat": "CycloneDX", "components": [{"name": "click"}]}))
    vendored.add(ROOT, licences, sbom)
    text = licences.read_text()
    assert text.startswith("click\n8.1\nBSD\n\nuPlot\n1.6.32\nMIT License\n")
    assert "Copyright (c) 2022 Leon Sorokin" in text
    assert 'THE SOFTWARE IS PROVIDED "AS IS"' in text
    assert "*/" not in text
    found = json.loads(sbom.read_text())["components"]
    assert [each["name"] for each in found] == ["click", "uPlot"]
    assert found[1]["version"] == "1.6.32"
    assert found[1]["licenses"][0]["license"]["name"] == "MIT License"


def test_release_adds_them_to_what_it_lists():
    text = (ROOT / "tools" / "release.py").read_text()
    body = re.search(r"^def make_lists\(.*?(?=^def )", text, re.DOTALL | re.MULTILINE)
    assert body is not None
    assert body[0].rstrip().endswith('vendored.add(REPOSITORY, folder / "LICENSES.txt", folder / "sbom.json")')


def test_file_with_a_licence_that_does_not_say_whose_is_named(tmp_path):
    for package in vendored.PACKAGES:
        (tmp_path / package).mkdir()
    (tmp_path / "broker" / "grid.js").write_text("// Copyright (c) 2020 A. N. Author\nlet x;\n")
    with pytest.raises(ValueError, match=r"broker/grid\.js has a licence in it"):
        list(vendored.find(tmp_path))


def test_script_without_a_copyright_is_as_large_as_ours_are():
    """A minified library without its licence would be one line of many thousand characters."""
    theirs = {each.path for each in vendored.find(ROOT)}
    for path in (ROOT / "broker" / "shell" / "page" / "static").glob("*.js"):
        if path not in theirs:
            assert max(map(len, path.read_text().splitlines())) < 700, path


def tool(name):
    tools = str(ROOT / "tools")
    sys.path.insert(0, tools)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(tools)


def test_release_names_what_image_and_list_of_parts_do_not_both_have():
    rows = [("click", "8.5.1"), ("Typing_Extensions", "4.1"), ("fastavro", "1.10")]
    parts = [{"name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"} for name, version in rows]
    sbom = json.dumps({"components": [*parts, {"name": "uPlot", "version": "1.6.32"}]})
    same = "click==8.5.1\ntyping-extensions==4.1\nfastavro==1.10\nmomus==0.1.0\nsetuptools==65\n"
    assert tool("release").compare(sbom, same) == []
    other = same.replace("click==8.5.1\n", "").replace("fastavro==1.10", "fastavro==1.11")
    assert tool("release").compare(sbom, other) == [
        "the image has fastavro==1.11, and the list of parts has not",
        "the list of parts has click==8.5.1, and the image has not",
        "the list of parts has fastavro==1.10, and the image has not",
    ]


def test_all_that_the_image_installs_has_its_version_in_the_constraints():
    pinned = {line.partition("==")[0] for line in (ROOT / "tools" / "constraints.txt").read_text().splitlines()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = tool("lock").EXTRAS
    wanted = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    found = set()
    while wanted:
        need = Requirement(wanted.pop())
        name = re.sub("[-_.]+", "-", need.name).lower()
        if name not in found and (need.marker is None or need.marker.evaluate({"extra": ""})):
            found.add(name)
            wanted += importlib.metadata.distribution(name).requires or []
    assert found - pinned <= tool("release").INSTALLERS
    assert len(found) > 30
