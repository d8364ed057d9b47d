"""`make test-ecosystem`: runs the scripts of this folder one after the other, all or those named, and writes what they
showed into docs/ecosystem.md. Rows of scripts that were not run this time stay as they were."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE.parents[1] / "docs" / "ecosystem.md"
SCRIPTS = (
    "connect",
    "mirror_maker",
    "spring_kafka",
    "karapace",
    "apicurio",
    "kafka_go",
    "sarama",
    "faust_streaming",
    "flink",
    "confluent_registry",
    "python_registry",
    "registry_node",
    "registry_go",
    "registry_srclient",
    "registry_java",
    "registry_connect",
)
LIMIT_S = 1800  # a script
OUTCOME = "OUTCOME "
ABOUT = """\
# Programs of the ecosystem on momus

Made by `make test-ecosystem`. It fetches each program in the version named, runs it on a broker of its own, and checks
what the program is for. The scripts are in [tests/ecosystem](../tests/ecosystem). The seconds are those of two cores
that had other work; what was fetched or compiled the first time is among them.

| script | program | version | what was shown | result | seconds |
|---|---|---|---|---|---|
"""


def outcome(name: str) -> dict[str, str]:
    """Run one script. What it prints goes to the terminal too."""
    command = [sys.executable, str(HERE / name / f"{name}.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told: dict[str, str] | None = None
    try:
        printed, _ = process.communicate(timeout=LIMIT_S)
        for line in printed.splitlines():
            if line.startswith(OUTCOME):
                told = json.loads(line.removeprefix(OUTCOME))
            else:
                sys.stdout.write(f"{line}\n")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if told is None:
        return {
            "program": name,
            "version": "",
            "shown": "",
            "result": "FAILED: it did not tell its outcome",
            "seconds": "",
        }
    return told


def rows_before() -> dict[str, str]:
    """Script -> its row in the table as it is."""
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    return {line.split("|")[1].strip(): line for line in lines if line.split("|")[1:2] and line[:3] == "| `"}


def main(names: list[str]) -> int:
    unknown = set(names) - set(SCRIPTS)
    if unknown:
        sys.stderr.write(f"no such script: {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}\n")
        return 2
    failed = 0
    for name in names or SCRIPTS:
        told = outcome(name)
        sys.stdout.write(f"{name}: {told['result']} in {told['seconds']} s; {told['shown']}\n")
        failed += told["result"].startswith("FAILED")
        cells = (f"`{name}`", *(str(told[key]) for key in ("program", "version", "shown", "result", "seconds")))
        row = "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        rows = {**rows_before(), f"`{name}`": row}
        TABLE.write_text(ABOUT + "".join(f"{rows[key]}\n" for each in SCRIPTS if (key := f"`{each}`") in rows))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
