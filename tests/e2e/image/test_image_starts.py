"""The image starts, is healthy, keeps data and stops, as people run it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest
from docker_engine import run
from image_kit import Container, moment, read, round_trip

Start = Callable[..., Container]
MOST_BYTES = 60_000_000
ON_HOST = ("-p", "127.0.0.1:9092:9092")
DATA = "/var/lib/momus"


def told(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Print a figure, though the test passes."""
    with capsys.disabled():
        sys.stdout.write(f"\n    {text}\n")


def test_image_as_it_comes_serves_a_client_on_the_host(start: Start, capsys):
    container = start("-p", "9092:9092")
    container.wait_for("momus ready")
    printed = run("docker", "logs", "--timestamps", container.id).stdout.split()[0]
    told(capsys, f"ready {moment(printed) - moment(container.state()['StartedAt']):.2f} s after the start")
    round_trip("localhost:9092")


def test_container_is_healthy_after_its_first_check(start: Start, capsys):
    container = start()
    while container.state()["Health"]["Status"] == "starting":
        time.sleep(0.05)
    state = container.state()
    first = state["Health"]["Log"][0]
    assert (state["Health"]["Status"], first["Output"].strip()) == ("healthy", "ok: port 9092 answers")
    told(capsys, f"healthy {moment(first['End']) - moment(state['StartedAt']):.2f} s after the start")
    used = container.exec("bash", "-c", "healthcheck; times").split()
    told(capsys, f"a health check takes {used[-2]} of user and {used[-1]} of system time on a processor")


def test_layers_of_ours_are_small(image: str, base: str, capsys):
    sizes = [int(run("docker", "image", "inspect", "--format", "{{.Size}}", name).stdout) for name in (image, base)]
    told(capsys, f"layers of ours: {(sizes[0] - sizes[1]) / 1e6:.1f} MB")
    assert sizes[0] - sizes[1] <= MOST_BYTES


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_data_in_a_volume_is_there_in_a_new_container(volume: str, start: Start, end: str):
    first = start(*ON_HOST, "-v", f"{volume}:{DATA}")
    first.wait_for("momus ready")
    round_trip("localhost:9092")
    run("docker", end, first.id)
    run("docker", "start", first.id)
    while first.logs().count("momus ready") < 2:
        assert first.state()["Running"], first.logs()
        time.sleep(0.05)
    read("localhost:9092", "t", 0)
    run("docker", end, first.id)
    second = start(*ON_HOST, "-v", f"{volume}:{DATA}")
    second.wait_for("momus ready")
    read("localhost:9092", "t", 0)


@pytest.mark.parametrize(
    "options",
    [
        ("--user", "54321"),
        ("--user", "54321:54321"),
        ("--user", "0"),
        ("--read-only",),
        ("--read-only", "--user", "54321:54321", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    ],
    ids=" ".join,
)
def test_image_serves_any_user_and_on_a_root_that_is_read_only(volume: str, start: Start, options: tuple[str, ...]):
    container = start(*ON_HOST, *options, "-v", f"{volume}:{DATA}")
    container.wait_for("momus ready")
    round_trip("localhost:9092")


def test_sigterm_ends_it_with_its_data_written(start: Start, capsys):
    container = start(*ON_HOST)
    container.wait_for("momus ready")
    round_trip("localhost:9092")
    begun = time.monotonic()
    run("docker", "kill", "--signal", "SIGTERM", container.id)
    code, log = container.ended()
    told(capsys, f"ended {time.monotonic() - begun:.2f} s after SIGTERM")
    assert code == 0, log
