"""`momus open` starts the cluster of a kept run as it was at a request, stays, and goes forward by request."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_control import momus

from momus import Broker
from momus.cli.replay.bundle import EVENT, SENT, TOOK, Bundle, frames
from momus.client.kafka_client import Client
from momus.control import Control, ControlError

SAMPLE = Path(__file__).parents[1] / "samples" / "0.1.0" / "run.momus"


class Opened:
    """A run that is open."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "momus", "open", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().removeprefix("momus ready ").strip()
        self.control = Control(self.process.stdout.readline().removeprefix("momus control ").strip())
        self.line = self.process.stdout.readline()

    def step(self, requests: int = 1) -> Any:
        return self.control.ask("POST", "/_admin/step", {"requests": requests})

    def journal(self) -> list[Any]:
        """Requests of the run, without those that a test has sent: these have momus-cli as their client's id."""
        answer: Any = self.control.ask("GET", "/_admin/clusters/replay/journal?limit=1000")
        return [each for each in answer["entries"] if each["client_id"] != "momus-cli"]

    def ends(self) -> str:
        """Standard error, after SIGTERM."""
        self.process.terminate()
        said = self.process.communicate(timeout=120)[1]
        assert self.process.returncode == 0, said
        return said


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Opens runs, and ends them."""
    made: list[Opened] = []

    def open_(*words: str) -> Opened:
        made.append(Opened(*words))
        return made[-1]

    yield open_
    for each in made:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


def requests_of(path: Path) -> list[int]:
    """The moment of each request."""
    return [event.at_ms for event in Bundle(str(path)).events() if event.kind == TOOK for _ in frames(event.data)]


def test_run_is_open_at_a_request_and_goes_forward_to_its_end(opened):
    moments = requests_of(SAMPLE)
    run = opened(str(SAMPLE), "--until", "5")
    assert run.line.startswith("request 5 of 37, ")
    assert len(run.journal()) == 5
    clock: Any = run.control.ask("GET", "/_admin/clusters/replay/clock")
    assert clock["stands"]
    assert moments[4] <= clock["now_ms"] <= moments[5]
    told = run.step()
    assert (told["request"], told["requests"], told["ended"], told["differences"]) == (6, 37, False, [])
    assert len(run.journal()) == 6
    assert run.journal()[-1]["api"] == told["last"].split()[0]
    told = run.step(100)
    assert (told["request"], told["ended"], told["differences"]) == (37, True, [])
    with Client(run.address) as client:
        assert [row["name"] for row in client.topics() if not row["internal"]]
    assert run.step()["request"] == 37
    assert run.ends() == ""


def test_run_is_open_at_a_moment(opened):
    moments = requests_of(SAMPLE)
    at_ms = moments[9]
    run = opened(str(SAMPLE), "--at", str(at_ms))
    told: Any = run.control.ask("GET", "/_admin/step")
    assert told["request"] == sum(moment <= at_ms for moment in moments)
    assert told["at_ms"] == at_ms
    clock: Any = run.control.ask("GET", "/_admin/clusters/replay/clock")
    assert clock["now_ms"] == at_ms


def test_answer_that_differs_is_named_and_the_run_goes_on(opened, tmp_path):
    """A topic has another name in one recorded answer: the run is played to its end all the same."""
    other = tmp_path / "other.momus"
    events = list(Bundle(str(SAMPLE)).events())
    wanted = max(at for at, event in enumerate(events[:-5]) if event.kind == SENT and len(event.data) > 200)
    data = events[wanted].data
    place = data.index(b"orders")
    events[wanted] = events[wanted]._replace(data=data[:place] + b"OrdErs" + data[place + 6 :])
    with zipfile.ZipFile(SAMPLE) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            packed = b"".join(EVENT.pack(*event[:4], len(event.data)) + event.data for event in events)
            target.writestr(name, packed if name == "events" else source.read(name))
    run = opened(str(other), "--until", "2")
    done = momus("step", "100", "--control", run.control.address)
    assert done.returncode == 1
    assert "JoinGroup v7 of kafka-python-3.0.12: members[0].metadata was b'" in done.stdout
    assert "OrdErs" in done.stdout
    assert "request 37 of 37, the last" in done.stdout
    assert "OrdErs" in run.ends()


def test_what_cannot_be_opened_is_said(tmp_path):
    (tmp_path / "no.momus").write_text("x")
    for words, said in (
        ((str(tmp_path / "no.momus"),), "is not a run that momus has kept"),
        ((str(SAMPLE), "--until", "1", "--at", "5"), "give --until or --at, not both"),
        ((str(SAMPLE), "--at", "noon"), "noon"),
        ((str(SAMPLE), "--control", "0.0.0.0:0"), "it is no loopback HOST:PORT"),
    ):
        done = momus("open", *words)
        assert done.returncode in (1, 2)
        assert said in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr
    with Broker(flush="memory") as broker:
        with pytest.raises(ControlError, match="no kept run is open here"):
            broker.control.ask("POST", "/_admin/step", {})
        assert broker.control.ask("GET", "/_admin/step") == {}


def test_load_is_kept_in_a_run_without_its_secrets(kafka_process_broker, tmp_path):
    """A load by the control plane is played again; users and ACLs are left out, as all that a replay needs not."""
    (tmp_path / "a.yaml").write_text("topics: [{name: t, records_from: b.jsonl}]\nusers: [{name: u, password: hush}]\n")
    (tmp_path / "b.jsonl").write_text('{"value": 1}\n{"value": 2}\n')
    with kafka_process_broker.create_cluster(security="sasl_plaintext") as cluster:
        cluster.record()
        cluster.load(tmp_path / "a.yaml")
        cluster.load({"users": [{"name": "v", "password": "hush"}]})
        data = cluster.recording()
    path = tmp_path / "run.momus"
    path.write_bytes(data)
    events = b"".join(event.data for event in Bundle(str(path)).events())
    assert b"hush" not in events
    assert json.loads(momus("replay", str(path), "--json").stdout)["notes"] == []
    run = Opened(str(path))
    try:
        rows: Any = run.control.ask("POST", "/_admin/clusters/replay/topics/t/consume", {})
        assert [row["value"] for row in rows["records"]] == ["1", "2"]
    finally:
        run.ends()
