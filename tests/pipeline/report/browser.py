"""A page as headless Chromium sees it: its elements once it is drawn, and everything its console was told."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-logging=stderr", "--v=0",
)  # fmt: skip  # several to a line
DARK = "--blink-settings=preferredColorScheme=0"
# Asks the page what no element says, once it has all that it wants; added to a copy of it.
PROBE = """<script>
addEventListener("load", () => {
  const all = document.documentElement, chart = [...document.querySelectorAll("svg.chart")].filter(e => e.clientWidth);
  all.dataset.probe = JSON.stringify({
    width: all.scrollWidth, paper: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color, charts: chart.length,
    cursors: chart.filter(e => e.querySelector(".cursor")).length,
    letters: getComputedStyle(chart[0]?.querySelector("text") ?? document.body).fill,
    fetched: performance.getEntriesByType("resource").map(e => e.name),
    asked: ASKED,
  });
});
</script></body>"""


@dataclass
class DrawnPage(HTMLParser):
    """Tables by name, all figures, what the probe found, and lines of the console."""

    console: list[str] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    probe: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._rows: list[list[str]] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "html" and named.get("data-probe"):
            self.probe = json.loads(str(named["data-probe"]))
        elif tag == "table":
            self._rows = self.tables.setdefault(str(named["data-of"]), [])
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        self._inside = "figures" if named.get("id") == "figures" else tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "figures":
            self.figures = json.loads(data)
        elif self._inside in ("td", "th"):
            self._rows[-1][-1] += data


def look(page: str, *flags: str, width: int = 1280, ask: str = "null") -> DrawnPage:
    """Load a page from a file in a fresh profile. ask: an expression of JavaScript, whose value is `probe["asked"]`."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder, "page.html")
        file.write_text(page.replace("</body>", PROBE.replace("ASKED", ask)), encoding="utf-8")
        size = f"--window-size={width},1000"
        command = [CHROMIUM, *FLAGS, *flags, size, f"--user-data-dir={folder}/profile", "--dump-dom", file.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    seen = DrawnPage(console=re.findall(r"CONSOLE.*", done.stderr))
    seen.feed(done.stdout)
    return seen
