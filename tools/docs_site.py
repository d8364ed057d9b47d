"""Makes the site of the documents in build/site: the pages of docs/, README and the others, search, an API reference.

    python tools/docs_site.py         `make docs`; a warning ends it with exit code 1

The pages are read where they are in the repository, and link to one another by their places there. So that the site can
be built from one folder, they are copied to build/docs with their folders; a link to what is no page, such as a file of
the source, becomes text.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE, SITE = REPOSITORY / "build" / "docs", REPOSITORY / "build" / "site"
LINK = re.compile(r"(!?)\[([^]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]+)?\)")
# In this order. A page of docs/ that is named nowhere is an error.
SECTIONS: dict[str, str] = {
    "Begin": "README docs/faq docs/coming-from docs/ci docs/container docs/testcontainers",
    "Test": "docs/test-kit docs/test-cluster docs/test-snapshots docs/test-brokers docs/test-failing-run"
    " docs/test-releases docs/control-plane docs/faults docs/clients docs/journal docs/load docs/registry"
    " docs/languages clients/go/README clients/junit/README clients/node/README api",
    "Operate": "docs/command-line docs/security docs/metrics docs/traces docs/page",
    "Logs": "docs/pipeline docs/pipeline-sources docs/pipeline-lag docs/pipeline-resets docs/pipeline-audit"
    " docs/pipeline-archive docs/pipeline-follow docs/pipeline-migrate docs/pipeline-report docs/pipeline-client"
    " docs/pipeline-cluster docs/pipeline-scale storage/FORMAT",
    "Trust": "docs/correctness SUPPORTED docs/figures docs/growth docs/ecosystem docs/compatibility",
    "Change": "CONTRIBUTING DESIGN docs/new-release CHANGELOG",
}
API = """# API reference

What `from momus import ...` gives, and what its objects are. Each has a twin to await, `.aio`.

::: momus.kit.process.Broker
::: momus.handle
::: momus.faults
::: momus.journal
::: momus.control
"""
CONFIG = """\
[project]
site_name = "momus"
site_description = "A Kafka broker for tests, CI and laptops"
docs_dir = "{source}"
site_dir = "{site}"
use_directory_urls = false
nav = [
{nav}]

[project.theme]
features = ["navigation.sections", "navigation.top", "content.code.copy", "search.highlight"]

[[project.theme.palette]]
media = "(prefers-color-scheme)"

[project.plugins.mkdocstrings.handlers.python]
paths = ["{repository}"]

[project.plugins.mkdocstrings.handlers.python.options]
show_root_heading = true
heading_level = 2
members_order = "source"
show_source = false
"""


def copy_page(name: str, pages: set[str]) -> None:
    """One page, with the links that lead to other pages."""
    page = REPOSITORY / name

    def linked(match: re.Match[str]) -> str:
        picture, text, target, _ = match.groups()
        file = (page.parent / target).resolve()
        if file == REPOSITORY / "README.md":
            return match[0].replace("README.md", "index.md")
        if str(file.relative_to(REPOSITORY)) in pages:
            return match[0]
        if picture:
            copy = SOURCE / file.relative_to(REPOSITORY)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            return match[0]
        return text

    made = SOURCE / ("index.md" if name == "README.md" else name)
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(LINK.sub(linked, page.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> int:
    """Copy the pages, write the configuration, build."""
    for folder in (SOURCE, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    pages = {f"{name}.md" for names in SECTIONS.values() for name in names.split()} - {"api.md"}
    left = {f"docs/{each.name}" for each in (REPOSITORY / "docs").glob("*.md")} - pages
    if left:
        sys.exit(f"in no section of tools/docs_site.py: {', '.join(sorted(left))}")
    for name in sorted(pages):
        copy_page(name, pages)
    (SOURCE / "api.md").write_text(API, encoding="utf-8")
    nav = ""
    for section, names in SECTIONS.items():
        files = ", ".join(f'"{"index" if name == "README" else name}.md"' for name in names.split())
        nav += f'  {{ "{section}" = [{files}] }},\n'
    config = SOURCE.parent / "zensical.toml"
    words = {"source": SOURCE.name, "site": SITE.name, "repository": REPOSITORY, "nav": nav}
    config.write_text(CONFIG.format(**words), encoding="utf-8")
    command = [Path(sys.executable).parent / "zensical", "build", "--clean", "--strict", "--config-file", config]
    return subprocess.run(command, cwd=SOURCE.parent, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
