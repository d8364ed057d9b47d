"""The code blocks of README and docs/, as rows: what a reader pastes is run as it stands.

A line of a shell that starts with `momus` or `curl` is run in the scene of its page; Python is a program, or a test if
it defines one. Names of machines that a reader replaces are replaced (REPLACED), and `...`, where the reader's own
program stands, by a client (CLIENTS). What is run elsewhere is in ELSEWHERE, with the place.
"""

from __future__ import annotations

import re
from pathlib import Path

from table import ORDERS, Scene

REPOSITORY = Path(__file__).resolve().parents[2]
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
REPLACED = (
    ("kafka-1:9092,kafka-2:9092", "127.0.0.1:9092"),
    ("kafka-1:9092", "127.0.0.1:9092"),
    ("staging:9092", "127.0.0.1:9092"),
    ("HOST:PORT", "127.0.0.1:9090"),
    ("-d DIR", "-d data"),
    ("$CONTROL", "http://127.0.0.1:9090"),
    ("make integration-test", "momus produce -b {servers} -t compared -v one"),
)
# Beginnings of lines that are run elsewhere, or need what only a reader has.
ELSEWHERE = (
    "momus pipeline",  # Spark's jobs: make test-pipeline
    "momus serve --data-dir ./data --retain-for archive",  # beside them
    "momus offsets import before.jsonl",
    "momus replay runs/",  # runs that were kept: the scene of a failed test in table.py
    "momus open runs/",
    "momus step",
    "momus dump -b staging:9092 -X security.protocol",  # a cluster with TLS
    "momus proxy --to kafka-1:9093",
    "momus explore --load orders.yaml",  # a program of the reader's: the scene of one that is explored in table.py
    "momus explore -- mvn",  # suites of the reader's: tests/e2e/explore/test_explored_suites.py
    "momus explore -- npm",
    "momus explore --test TestSums",
)
SPARK = "docs/pipeline"  # make test-pipeline
PAGES_ELSEWHERE = {
    "docs/new-release.md",  # Apache Kafka of two releases: make new-release
    "docs/testcontainers.md",  # make test-image-modules
}
CODES = {  # lines that end with another code than 0 in their scene, with reason
    "momus group expel billing consumer-1": 1,  # no such member is there
    "momus group rebalance billing": 1,  # it has no members
}
# What the page begins with; the broker of the first line is at 9092, its control endpoint at 9090.
BROKER = "momus serve --control 127.0.0.1:9090 --journal 4 --ui &  # => momus ui"
FILLED = """\
momus topic create orders=3 copy=3
printf 'table-4:one coffee\\n' | momus produce -t orders -K : -q
printf '{"group": "billing", "topic": "orders", "partition": %s, "offset": 0}\\n' 0 1 2 | momus offsets import
"""
GONE = "momus topic delete orders carts returns >/dev/null || true"
# Lines of a page are other ways to do a thing, not steps of one: what these need first.
BEFORE = {
    "momus topic create": [GONE],
    "momus topic alter": [GONE, "momus topic create orders=3"],
    "momus dump": [GONE, "momus topic create orders=3"],
    "momus group wait": [
        """echo '{"group": "billing", "topic": "orders", "partition": 0, "offset": 0}' | momus offsets import""",
        "momus group seek billing -t orders --to-latest",
    ],
}
FILES = {"lines": "table-4:one coffee\n", "orders.yaml": ORDERS}
COMMIT = """
    from kafka import KafkaConsumer
    broker.produce("orders", "x")
    told = {"group_id": "billing", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    first = KafkaConsumer("orders", **told, **broker.client_config("kafka-python"))
    next(first)
    first.commit()  # is refused twice, and tried again by the client
    first.close(autocommit=False)
    def work():
        told = {"group_id": "orders", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        reader = KafkaConsumer("orders", **told, **broker.client_config("kafka-python"))
        next(reader)
        for _ in range(3):
            try:
                reader.commit()
            except Exception:
                return
    import threading
    threading.Thread(target=work, daemon=True).start()
"""
COMMIT_THREE = """
    from kafka import KafkaConsumer
    broker.produce("orders", "x")
    told = {"group_id": "billing", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    reader = KafkaConsumer("orders", **told, **broker.client_config("kafka-python"))
    next(reader)
    for _ in range(3):
        reader.commit()
    reader.close(autocommit=False)
"""
PRODUCE = """
    from kafka import KafkaProducer
    client = KafkaProducer(**broker.client_config("kafka-python"))
    client.send("orders", b"x")
"""
CLIENTS = {"docs/faults.md": COMMIT, "docs/journal.md": COMMIT_THREE, "docs/proxy.md": PRODUCE}


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language, title and text of each block."""
    return [(each[1], each[2] or "", each[3]) for each in FENCE.finditer(page.read_text())]


def scenes() -> list[Scene]:
    """A scene for each page that has something to run."""
    made = (scene(name, page) for name, page in pages())
    return [each for each in made if len(each.lines.splitlines()) > 1 + len(FILLED.splitlines())]


def pages() -> list[tuple[str, Path]]:
    """The pages whose blocks are run here."""
    found = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
    named = [(str(page.relative_to(REPOSITORY)), page) for page in found]
    return [(name, page) for name, page in named if name not in PAGES_ELSEWHERE and not name.startswith(SPARK)]


def shell_lines(text: str) -> list[str]:
    """The commands of a block, without the remarks after them."""
    lines = [re.sub(r"\s+#(?= ).*$", "", line).strip() for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if re.match(r"(?:\w+=\S+ )*(?:momus|curl)\b", line)]


def scene(name: str, page: Path) -> Scene:
    """The lines of a page, after a broker that has what they speak of."""
    lines, files = [BROKER, *FILLED.splitlines()], dict(FILES)
    for number, (language, title, text) in enumerate(blocks(page)):
        if title and "/" not in title:
            files[title] = text
        if language in ("sh", "bash", "shell"):
            for line in shell_lines(text):
                if line.startswith(ELSEWHERE):
                    continue
                lines += _of_shell(line)
        elif language in ("python", "py"):
            file, row = _of_python(name, number, title, text)
            files[file] = files.get(file, "") if file == title else _python(name, text)
            if row:
                lines.append(row)
    return Scene(name, "\n".join(lines), files, extras=True)


def _of_shell(line: str) -> list[str]:
    for told, here in REPLACED:
        line = line.replace(told, here)
    if line == "momus consume -t orders":
        return [line + " -c 1"]
    if line.startswith("momus consume") and not re.search(r" (-e|-c)\b", line):
        return [line + " -e"]
    if line.startswith("momus tail") and "--once" not in line:
        return [line + " --once"]
    before = next((rows for start, rows in BEFORE.items() if line.startswith(start)), [])
    if before:
        return [*before, line]
    if re.match(r"momus serve\b", line):
        data = " -d served" if "data-dir" not in line else ""
        return ["stop all", f"{line}{data} &", "stop", "rm -rf served", BROKER]
    if re.match(r"momus proxy\b", line):
        return [f"{line} &"]
    if line.startswith("curl -N"):
        line = f"curl -s --max-time 5 {line.removeprefix('curl -N')} || true"
    if line.startswith("curl") and "--fail" not in line:  # a route that is not there is told by its status alone
        line = f"curl --fail-with-body {line.removeprefix('curl ')}"
    if "wait-for-offsets" in line:  # nothing has committed there: it says so, and fails
        return [f"{line}  # exit 22"]
    return [f"{line}  # exit {CODES[line]}" if CODES.get(line) else line]


def _of_python(name: str, number: int, title: str, text: str) -> tuple[str, str]:
    if "host.create_cluster" in text:
        return "part.py", ""  # a part of a program: host is the reader's
    is_test = re.search(r"^(async )?def test_", text, re.MULTILINE)
    file = title or f"{'test_' if is_test else 'block_'}{number}.py"
    runner = "pytest -q" if is_test else "python"
    return file, f"{runner} {file}"


def _python(name: str, text: str) -> str:
    if name in CLIENTS and "Broker(" in text:
        return re.sub(r"^    \.\.\. .*$", CLIENTS[name].strip("\n"), text, flags=re.MULTILINE)
    return text
