"""The image, built once from this checkout, and containers of it that end with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from docker_engine import Engine, NoEngineError, base_image, compose_command, run
from image_kit import IMAGE, REPOSITORY, Container


@pytest.fixture(scope="session")
def engine() -> Iterator[None]:
    """A Docker Engine; one that is started here ends with the tests."""
    engine = Engine()
    try:
        engine.start()
    except NoEngineError as error:
        pytest.skip(f"the container image: {error}")
    yield
    engine.stop()


@pytest.fixture(scope="session")
def base(engine: None) -> str:
    """The name of the image that ours is built on."""
    return base_image()


@pytest.fixture(scope="session")
def image(base: str) -> str:
    """The name of the image, built as `docker build .` does, but on the host's network."""
    run("docker", "build", "--network", "host", "--build-arg", f"BASE={base}", "--tag", IMAGE, REPOSITORY)
    return IMAGE


@pytest.fixture(scope="session")
def compose(image: str) -> list[str]:
    """`docker compose`, version 2."""
    return compose_command()


@pytest.fixture
def start(image: str) -> Iterator[Callable[..., Container]]:
    """Starts a container, `start("--user", "1", command=["serve"])`; all end with the test, with their volumes."""
    with ExitStack() as started:

        def begin(*options: str, command: tuple[str, ...] = ()) -> Container:
            made = run("docker", "create", *options, image, *command).stdout.strip()
            started.callback(run, "docker", "rm", "--force", "--volumes", made)
            run("docker", "start", made)
            return Container(made)

        yield begin


@pytest.fixture
def volume(engine: None) -> Iterator[str]:
    """A new volume."""
    name = run("docker", "volume", "create").stdout.strip()
    yield name
    run("docker", "volume", "rm", "--force", name)
