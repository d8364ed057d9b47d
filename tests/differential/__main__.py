"""make differ: random requests to Apache Kafka 4.4.0 and to momus, answers compared. Needs java and mvn.

    make differ ARGS="--seed 7 --cases 300"                        the default profile
    make differ ARGS="--profile restarts --seed 7 --cases 200"     latest, assignors, nodes, share, letters, expiry
    make differ ARGS="--against 4.3.1 --seed 7"                    that release, which momus imitates
    make differ ARGS="--replay build/differential/X.json"          one case again
    make differ ARGS="--at 70000012,70000013"                      some cases again, by the seeds that were printed
    make differ ARGS="--prove"                                     the rules that random cases seldom meet
    make differ ARGS="--record"                                    Kafka's answers for make test; or --profile share
    make differ-long                                               a million pairs; goes on where it was stopped

The last line is `N pairs, K unexplained differences`; exit code 0 means K is 0.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from differential import recording
from differential.brokers import KafkaPeer, WorldPeer
from differential.campaign import Brokers, Plan, Result, allow_list, run
from differential.generate.profiles import PROFILES, make_case
from differential.pair import Pair
from differential.proofs import PROOFS, proof_of
from differential.script import Script, describe

CASES_A_ROUND = 1500  # between fresh brokers
RECORDED_STORIES = 70  # cases; each is there for one spot, so they are not chosen among
RECORDED_SEED = 1


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="make differ", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--profile", choices=sorted(PROFILES), default="default")
    parser.add_argument("--only", default="", help="families of the profile, with commas")
    parser.add_argument("--against", default="", help="an older release of Apache Kafka, as in 4.3.1")
    parser.add_argument("--inside", action="store_true", help="momus in this process, not in one of its own")
    parser.add_argument("--shrink-seconds", type=float, default=20.0)
    parser.add_argument("--scripts", type=Path, default=Path("build/differential"))
    parser.add_argument("--at", default="", help="seeds of single cases, with commas")
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--rules", default="", help="with --prove: only these, with commas; each is shown whole")
    parser.add_argument("--pairs", type=int, default=0, help="go on until there are so many, with --state")
    parser.add_argument("--state", type=Path, help="file that keeps what has been played")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the brokers end with this process
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            parser.error(f"{tool} is not installed")
    if args.record and args.profile not in recording.KEPT:
        parser.error(f"answers are recorded for {', '.join(recording.KEPT)}")
    if args.record:
        return record(args.profile)
    if args.prove:
        return prove([name for name in args.rules.split(",") if name], args.inside, args.against)
    if args.replay:
        script = Script.read(args.replay)
        return replay([script], args.inside, args.against)
    if args.at:
        seeds = [int(text) for text in args.at.split(",")]
        return replay(
            [Script("case", args.profile, seed, make_case(args.profile, seed)[1]) for seed in seeds],
            args.inside,
            args.against,
        )
    return campaign(args)


def campaign(args: argparse.Namespace) -> int:
    """Rounds of cases, each on fresh brokers."""
    state = _load(args.state) if args.state else {"next": args.first, "pairs": 0, "cases": 0, "real": [], "noise": []}
    end = args.first + args.cases if not args.pairs else 1 << 62
    while state["next"] < end and (not args.pairs or state["pairs"] < args.pairs):
        cases = min(CASES_A_ROUND, end - state["next"])
        only = [name for name in args.only.split(",") if name] or None
        plan = Plan(args.profile, args.seed, cases, state["next"], only, args.inside, args.shrink_seconds, args.scripts)
        brokers = Brokers(args.profile, args.inside, args.against)
        try:
            result = run(plan, brokers)
        finally:
            brokers.stop()
        report(result, [rule.name for rule in allow_list(args.profile, args.against).rules])
        state["next"] += cases
        state["pairs"] += result.pairs
        state["cases"] += result.cases
        state["real"] += [*result.real, *result.open, *result.broken]
        state["noise"] += result.noise
        if args.state:
            args.state.parent.mkdir(parents=True, exist_ok=True)
            args.state.write_text(json.dumps(state, indent=1))
    sys.stdout.write(f"{state['pairs']} pairs, {len(set(state['real']))} unexplained differences\n")
    return 1 if state["real"] else 0


def _load(path: Path) -> dict[str, Any]:
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    return {"next": 0, "pairs": 0, "cases": 0, "real": [], "noise": []}


def report(result: Result, rules: list[str]) -> None:
    """What a round has played, and which of the rules it has met, and which not."""
    rate = result.pairs / max(result.seconds, 0.001)
    lines = [
        f"{result.cases} cases, {result.pairs} pairs in {result.seconds:.0f} s, {rate:.0f} a second;"
        f" {result.skipped} steps left out behind a difference",
        f"explained: {dict(result.explained.most_common())}",
        f"rules not met: {', '.join(name for name in rules if name not in result.explained)}",
        f"families: {dict(result.families.most_common())}",
        f"APIs: {dict(result.apis.most_common())}",
        *(f"open: {name} in {count} cases" for name, count in result.open.most_common()),
        *(f"broken: {text}" for text in result.broken),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def replay(scripts: list[Script], inside: bool, against: str) -> int:
    """Single cases, shown whole."""
    pairs = unexplained = 0
    brokers = Brokers(scripts[0].profile, inside, against)
    try:
        pair = brokers.pair(0, allow_list(scripts[0].profile, against))
        for script in scripts:
            outcome = pair.play(script.steps, script.slow_s)
            sys.stdout.write(describe(script, outcome) + "\n")
            pairs += outcome.pairs
            unexplained += len(outcome.findings) + len(outcome.open)
    finally:
        brokers.stop()
    sys.stdout.write(f"{pairs} pairs, {unexplained} unexplained differences\n")
    return 1 if unexplained else 0


def prove(rules: list[str], inside: bool, against: str) -> int:
    """Play the proofs of rules, of all that have one where none is named."""
    names = rules or list(PROOFS)
    unmet: list[str] = []
    scripts: dict[str, list[Script]] = {"default": [], "restarts": []}  # the second has brokers that come back soon
    for name in names:
        steps = proof_of(name)
        profile = "restarts" if any(step.get("do") == "restart" for step in steps) else "default"
        scripts[profile].append(Script(name, profile, 0, steps))
    for profile, of_profile in scripts.items():
        if of_profile:
            unmet += _proved(of_profile, profile, inside, against, shows=bool(rules))
    sys.stdout.write(f"{len(names)} rules, {len(unmet)} not met {' '.join(unmet)}\n")
    return 1 if unmet else 0


def _proved(scripts: list[Script], profile: str, inside: bool, against: str, *, shows: bool) -> list[str]:
    """Play proofs to the brokers of a profile. Returns the rules that are not met."""
    brokers, unmet = Brokers(profile, inside, against), []
    try:
        pair = brokers.pair(0, allow_list(profile, against))
        for script in scripts:
            outcome = pair.play(script.steps)
            is_met = script.kind in outcome.explained
            unmet += [] if is_met else [script.kind]
            found = [finding.kind for finding in outcome.findings]
            sys.stdout.write(
                f"{script.kind}: {'met' if is_met else 'NOT MET'}, {dict(outcome.explained)} {found or ''}\n"
            )
            if shows:
                sys.stdout.write(describe(script, outcome) + "\n")
    finally:
        brokers.stop()
    return unmet


def record(profile: str) -> int:
    """Ask Kafka, and keep its answers."""
    chosen, wanted = PROFILES[profile], recording.KEPT[profile]
    kafka = KafkaPeer(settings={**chosen.settings, **chosen.kafka})
    played: list[tuple[str, int, set[str]]] = []
    stories: list[tuple[str, int, set[str]]] = []
    pairs = number = 0
    try:
        pair = Pair([kafka, WorldPeer(settings={**chosen.settings, **chosen.momus})], allow_list(profile))
        for at in range(RECORDED_STORIES if "stories" in chosen.families else 0):
            family, steps = make_case(profile, RECORDED_SEED * 10_000_000 + at, ["stories"])
            stories.append((*recording.record(pair, family, steps), set()))
        while pairs < wanted.candidates:
            family, steps = make_case(profile, RECORDED_SEED * 10_000_000 + number)
            number += 1
            if family == "stories" or not recording.stands_alone(steps):
                continue
            line, count = recording.record(pair, family, steps)
            played.append((line, count, recording.features(steps, line)))
            pairs += count
    finally:
        kafka.stop()
    lines = [line for line, _, _ in stories] + recording.choose(played, wanted.pairs)
    if profile != "default":  # whose brokers wait for nothing that takes its time
        world = Pair([WorldPeer(settings={**chosen.settings, **chosen.momus})], allow_list(profile))
        apart = [line for line in lines if recording.replay(world, recording.parsed(line)).outcome.findings]
        lines = [line for line in lines if line not in apart]
        sys.stdout.write(
            f"left out, look at them: {len(apart)} cases that differ, written to {recording.set_apart(apart)}\n"
        )
    recording.write(lines, wanted.path)
    kept = sum(count for line, count, _ in stories + played if line in lines)
    size = wanted.path.stat().st_size
    sys.stdout.write(f"{pairs} pairs; kept {len(lines)} cases, {kept} pairs, {size} bytes in {wanted.path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
