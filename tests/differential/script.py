"""A case on disk, to be replayed, and on the screen, to be read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

from differential.compare import shown
from differential.plain import Values
from differential.play import Finding, Outcome

LONGEST_BODY = 420
LONGEST_ANSWER = 500


class Script(NamedTuple):
    """A case, where it comes from and what it shows."""

    kind: str
    profile: str
    seed: int
    steps: list[Values]
    slow_s: float = 0.0

    def write(self, folder: Path) -> Path:
        """Save it under a name made of its class."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (re.sub(r"[^A-Za-z0-9]+", "_", self.kind).strip("_")[:90] + ".json")
        head = {"kind": self.kind, "profile": self.profile, "seed": self.seed, "slow_s": self.slow_s}
        lines = ",\n".join("  " + json.dumps(step) for step in self.steps)
        path.write_text(json.dumps(head)[:-1] + ', "steps": [\n' + lines + "\n]}\n")
        return path

    @classmethod
    def read(cls, path: Path) -> Script:
        """One that was written by `write`."""
        found = json.loads(path.read_text())
        return cls(found["kind"], found["profile"], found["seed"], found["steps"], found.get("slow_s", 0.0))


def describe(script: Script, outcome: Outcome | None) -> str:
    """The case as lines: each request, both answers where they differ, one where they agree."""
    lines = [f"=== {script.kind}   (profile {script.profile}, seed {script.seed}, {len(script.steps)} steps)"]
    for number, step in enumerate(script.steps):
        if "do" in step:
            lines.append(f"  {number}. {step['do']} {step.get('ms', '')}")
            continue
        link = step.get("c", "a")
        lines.append(f"  {number}. {step['api']} v{step['v']} on {link}: {_brief(step['b'], LONGEST_BODY)}")
        for each in outcome.answers if outcome else []:
            if each.number == number:
                when = " later" if each.late else ""
                if each.kafka == each.momus:
                    lines.append(f"       both{when}: {_brief(each.kafka, LONGEST_ANSWER)}")
                else:
                    lines.append(f"       kafka{when}: {_brief(each.kafka, LONGEST_ANSWER)}")
                    lines.append(f"       momus{when}: {_brief(each.momus, LONGEST_ANSWER)}")
    for finding in [*outcome.findings, *outcome.open] if outcome else []:
        lines.append(explain(finding))
    return "\n".join(lines)


def explain(finding: Finding) -> str:
    """What differs, in a line for each value."""
    head = f"  {finding.kind} at step {finding.number}, {finding.step['api']} v{finding.step['v']}"
    rows = [f"     {path}: kafka {shown(kafka)} momus {shown(momus)}" for path, kafka, momus in finding.differences]
    return "\n".join([head, *rows])


def _brief(value: object, most: int) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= most else text[: most - 3] + "..."
