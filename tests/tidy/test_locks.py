"""What is shipped is installed by hashes, built on what a digest names, and by actions of one commit."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENTRY = re.compile(
    r"^([\w.-]+)==([\w.]+)(?: ; ([^\\\n]+?))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)
LOCKED = "--require-hashes"


def entries(name: str) -> dict[str, tuple[str, int]]:
    """Version and number of hashes of each package in a lock."""
    text = (ROOT / "tools" / name).read_text()
    found = {each[1]: (each[2], each[4].count("--hash")) for each in ENTRY.finditer(text)}
    assert len(found) == len(re.findall(r"^\w", text, re.MULTILINE)), "an entry without hashes"
    return found


def test_lock_has_the_versions_of_the_constraints_with_hashes():
    lines = (ROOT / "tools" / "constraints.txt").read_text().splitlines()
    pinned = dict(re.match(r"([\w.-]+)==([\w.]+)", each).groups() for each in lines if each[0] != "#")
    assert {name: version for name, (version, _) in entries("lock.txt").items()} == pinned, "python tools/lock.py"
    assert min(number for _, number in entries("lock.txt").values()) >= 1


def test_lock_of_the_build_has_what_builds_a_wheel():
    (backend,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert re.match(r"\w+", backend)[0] in entries("build-lock.txt")


def installs(text: str) -> list[str]:
    """The commands of a text that install packages."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return [each for each in re.split(r"&&|\n", joined) if re.search(r"pip\b.*\b(install|\$install)\b", each)]


@pytest.mark.parametrize("path", ["Dockerfile", ".github/workflows/binaries.yml"])
def test_all_that_is_fetched_for_what_is_shipped_is_held_to_hashes(path):
    text = (ROOT / path).read_text()
    words = re.search(r'install="([^"]+)"', text)
    for each in installs(text):
        each = each.replace("$install", words[1]) if words else each
        assert "--no-deps" in each, each
        assert LOCKED in each or ".whl" in each, each
    assert len(installs(text)) >= 2


@pytest.mark.parametrize("tool", ["binary.py", "release.py"])
def test_tools_install_by_the_lock(tool):
    text = (ROOT / "tools" / tool).read_text()
    assert LOCKED in text
    assert "constraints.txt" not in text


def test_actions_are_named_by_commit_with_their_tag():
    uses = [
        line for path in (ROOT / ".github").rglob("*.yml") for line in path.read_text().splitlines() if "uses:" in line
    ]
    wrong = [each for each in uses if not re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", each)]
    assert len(uses) > 10
    assert not wrong
    assert len({line.split("@")[1] for line in uses}) == len({line.split("@")[0] for line in uses}), "two of one action"


def test_release_refuses_a_base_without_a_digest(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    sys.modules.pop("release", None)
    import release

    monkeypatch.setattr(release, "run", lambda *command, cwd=ROOT: "")
    monkeypatch.setattr(release.shutil, "rmtree", lambda *_given, **_more: pytest.fail("it has begun"))
    for base in ("", "python:3.11-slim", "python@sha256:12"):
        with pytest.raises(SystemExit, match="named by no digest"):
            release.main(["--base", base])
    digest = f"python:3.11-slim@sha256:{'a' * 64}"
    for given in (["--base", digest], ["--base-by-tag"], ["--without", "image"]):
        with pytest.raises(pytest.fail.Exception, match="it has begun"):
            release.main(given)
