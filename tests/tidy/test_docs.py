"""The documents tell the truth: links lead somewhere, code can be read, commands and their options exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner

from momus.cli.main import cli

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    [
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").glob("*.md"),
        *(REPOSITORY / "clients").glob("*/README.md"),
        REPOSITORY / "storage" / "FORMAT.md",
    ]
)
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]+)?\)")
MOST_LINES = 200
TABLES = {"docs/clients.md"}  # made by make client-table
# What files of these names are, by the schemas that check-jsonschema brings.
SCHEMAS = {
    ".github/workflows/tests.yml": "vendor.github-workflows",
    ".gitlab-ci.yml": "vendor.gitlab-ci",
    ".devcontainer/compose.yml": "vendor.compose-spec",
}


def name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(*languages: str) -> list[tuple[Path, str, str]]:
    """(page, title, text) of each code block in one of these languages."""
    found = ((page, each) for page in PAGES for each in FENCE.finditer(page.read_text()))
    return [(page, each[2] or "", each[3]) for page, each in found if each[1] in languages]


def anchors(page: Path) -> set[str]:
    """The names that a page's headings get."""
    text = FENCE.sub("", page.read_text())
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = unicodedata.normalize("NFKD", re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading)).lower()
        found.add("#" + re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", plain).strip()))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    lost = []
    for target, anchor in LINK.findall(FENCE.sub("", page.read_text())):
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            lost.append(f"{target}{anchor}")
    assert lost == []


def test_page_is_one_task_and_no_book() -> None:
    """A page that grows is cut: its parts are tasks. Pages of tables are read by looking something up."""
    long = {name(page): len(page.read_text().splitlines()) for page in (REPOSITORY / "docs").glob("*.md")}
    assert {page: lines for page, lines in long.items() if lines > MOST_LINES and page not in TABLES} == {}
    assert all(long[page] > MOST_LINES for page in TABLES), "take it out of TABLES"


def test_each_page_of_docs_is_named_in_readme() -> None:
    text = (REPOSITORY / "README.md").read_text()
    assert [page.name for page in (REPOSITORY / "docs").glob("*.md") if f"docs/{page.name}" not in text] == []


@pytest.mark.parametrize(
    ("page", "title", "text"), blocks("python", "py"), ids=lambda each: name(each) if isinstance(each, Path) else ""
)
def test_python_can_be_compiled(page: Path, title: str, text: str) -> None:
    compile(text, f"{name(page)} {title}", "exec")


@pytest.mark.parametrize(
    ("page", "title", "text"), blocks("json"), ids=lambda each: name(each) if isinstance(each, Path) else ""
)
def test_json_can_be_read(page: Path, title: str, text: str) -> None:
    json.loads(text)


@pytest.mark.slow  # the schema of GitLab alone takes seconds
def test_files_for_ci_obey_their_schemas(tmp_path: Path) -> None:
    checked = 0
    for at, (_, title, text) in enumerate(blocks("yaml")):
        if title in SCHEMAS:
            file = tmp_path / f"{at}.yml"
            file.write_text(text)
            command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", SCHEMAS[title], str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{title}: {done.stdout}{done.stderr}"
            checked += 1
    assert checked >= len(SCHEMAS)


@pytest.mark.slow
def test_workflows_obey_their_schema() -> None:
    files = map(str, sorted((REPOSITORY / ".github" / "workflows").glob("*.yml")))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


COMMANDS = sorted(
    {
        (name(page), line.split("  #")[0].removeprefix("$ ").strip())
        for page, _, text in blocks("sh", "bash", "console", "shell")
        for line in text.replace("\\\n", " ").splitlines()
        if re.match(r"(\$ )?(\.venv/bin/)?(momus|make) ", line)
    }
)
TARGETS = set(re.findall(r"^([\w-]+(?: [\w-]+)*):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_commands_and_their_options_exist(page: str, line: str) -> None:
    program, *words = shlex.split(re.split(r"\s[|&>;]", line)[0], comments=True)
    if program == "make":
        assert words[0] in " ".join(TARGETS).split()
        return
    own = words[: words.index("--")] if "--" in words else words  # what follows is another program's
    result = CliRunner().invoke(cli, [*own, "--help"])
    assert result.exit_code == 0, result.output


SCRIPTS = [each for page in PAGES for each in re.findall(r"`PYTHONPATH=(\S+) python (\S+\.py)", page.read_text())]


@pytest.mark.heavy
@pytest.mark.parametrize(("path", "script"), SCRIPTS)
def test_scripts_find_their_modules(path, script):
    load = (
        f"import runpy, sys; sys.path[0] = {str(Path(script).parent)!r}; runpy.run_path({script!r}, run_name='loaded')"
    )
    done = subprocess.run(
        [sys.executable, "-c", load],
        env={"PYTHONPATH": path},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
