"""What the report's page costs where there are many groups: its size, and the time until Chromium has opened it.

    python -m benchmarks.report_page [--groups 1000] [--hours 24] [--output PAGE]

Needs the extra spark (not Java) and chromium. The figures are made up: each group has lag and commits that differ in
every slot, which is the most that a page can hold of them. Printed: bytes of the page and of the figures in it, the
time to make it, and of five fresh Chromiums the median from the start of the navigation until all is laid out.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from pipeline.report.figures import Figures, Series
from pipeline.report.page import page
from pipeline.transforms.lag import SLOTS

ROUNDS: Final = 5
PROBE: Final = """<script>
addEventListener("load", () => {
  const laid_out = document.body.offsetHeight > 0;
  document.documentElement.dataset.opened = laid_out && performance.now();
});
</script></body>"""


def crowded(groups: int, hours: int, seed: int = 1) -> Figures:
    """The figures of so many groups in so many hours."""
    rng = random.Random(seed)
    begin, step_s = 1_800_000_000_000, hours * 3600 / SLOTS
    names = [f"team-{n % 40:02d}.service-{n:05d}" for n in range(groups)]
    kinds = ("classic", "consumer", "streams", "share", "simple")
    made = Figures("/data", begin, begin=begin, step_s=step_s)
    made.end = made.time(SLOTS)
    for n, name in enumerate(names):
        made.lag[name] = Series(0, [rng.randrange(100_000) for _ in range(SLOTS + 1)])
        made.commits[name] = Series(0, [rng.randrange(1000) for _ in range(SLOTS + 1)])
        total = sum(each or 0 for each in made.commits[name].values)
        made.groups.append(
            {"group": name, "kind": kinds[n % 5], "changes": groups - n, "epoch": n, "members": n % 7, "commits": total}
        )
        made.kinds[kinds[n % 5]] = made.kinds.get(kinds[n % 5], 0) + 1
        made.commits_total += total
    made.rebalances = [(begin + rng.randrange(hours * 3_600_000), rng.choice(names[:12]), n) for n in range(5000)]
    made.outcomes_over_time = [(made.time(n), how, 9) for n in range(SLOTS) for how in ("committed", "aborted")]
    made.outcomes = {"committed": 9 * SLOTS, "aborted": 9 * SLOTS}
    made.unnamed = [
        {"log": f"__consumer_offsets-{n % 50}", "group": name, "commits": 9} for n, name in enumerate(names)
    ]
    made.logs, made.records = 1000, 10**9
    made.bytes = [(f"topic-{n:04d}-0", 10**9 - n, 10**6 * (1000 - n)) for n in range(1000)]
    return made


def opened_ms(file: Path) -> float:
    """Until a page with PROBE is loaded and laid out, in a Chromium with a fresh profile."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("chromium is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
        command = [chromium, *flags, "--window-size=1280,1000", "--dump-dom", file.as_uri()]
        told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'data-opened="([\d.]+)"', told)
    if found is None:
        raise SystemExit("the page did not load")
    return float(found[1])


def main() -> None:
    """Make the page, open it, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--output", type=Path, help="keep the page here")
    options = parser.parse_args()
    figures: Any = crowded(options.groups, options.hours)
    begin = time.perf_counter()
    text = page(figures)
    made_s = time.perf_counter() - begin
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    inside = len(json.dumps(figures.as_json(), separators=(",", ":")))
    print(f"{options.groups} groups, {options.hours} h: {len(text.encode()):,} bytes, of them {inside:,} of figures")
    print(f"made in {made_s:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_text(text.replace("</body>", PROBE), encoding="utf-8")
        rounds = [opened_ms(file) for _ in range(ROUNDS)]
    print(f"opened in {statistics.median(rounds):.0f} ms ({', '.join(f'{each:.0f}' for each in sorted(rounds))})")


if __name__ == "__main__":
    main()
