"""Testcontainers' modules in Java, Python, Go and Node start the image, and clients of each language are served; so do
the containers of docs/testcontainers.md."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from docker_engine import run
from image_kit import REPOSITORY, round_trip

MODULES = Path(__file__).parent / "modules"
BUILD = REPOSITORY / "build" / "image-modules"
PAGE = (REPOSITORY / "docs" / "testcontainers.md").read_text()
ENVIRONMENT = {"TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "localhost"}
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="pencil";'
# what the Java container of the page is run by
JAVA_MAIN = """\
import java.io.*; import java.net.*; import java.net.http.*; import java.util.Map;
import org.testcontainers.containers.GenericContainer; import org.testcontainers.containers.wait.strategy.Wait;

class Main {{
    public static void main(String[] words) throws Exception {{
        try (var momus = new MomusContainer(words[0])) {{
            momus.start();
            System.out.println(momus.control("/clock", "{{\\"freeze\\": true}}"));
            System.out.println(momus.control("/clock", "{{\\"advance_ms\\": 691200000}}"));
            Modules.roundTrip("MomusContainer", "localhost:" + momus.port, Map.of());
        }}
    }}
}}

{container}
"""

pytestmark = pytest.mark.modules


@pytest.fixture(scope="module")
def tagged(image: str) -> str:
    """The image under a tag that is a release of Confluent's, as two modules want it."""
    run("docker", "tag", image, f"{image}:7.9.0")
    return f"{image}:7.9.0"


def need(*tools: str) -> None:
    """Skip where a tool is absent."""
    absent = [tool for tool in tools if shutil.which(tool) is None]
    if absent:
        pytest.skip(f"{' and '.join(absent)} not installed: make test-image-modules")


def lines(*command: str | Path, cwd: Path) -> list[str]:
    """What a program prints that starts containers."""
    return list(filter(None, run(*command, cwd=cwd, env={**os.environ, **ENVIRONMENT}).stdout.splitlines()))


def block(language: str, beginning: str) -> str:
    """The code on the page that begins so."""
    return next(text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if text.startswith(beginning))


@pytest.fixture(scope="module")
def java(image: str) -> list[str]:
    """`java` with Testcontainers and a client on its class path."""
    need("java", "mvn")
    jars = BUILD / "java"
    copy = ("mvn", "-B", "-q", "-f", MODULES / "java" / "pom.xml", "dependency:copy-dependencies")
    run(*copy, f"-DoutputDirectory={jars}")
    run("javac", "-nowarn", "-cp", f"{jars}/*", "-d", jars / "classes", MODULES / "java" / "Modules.java")
    return ["java", "-cp", f"{jars}/*:{jars}/classes"]


def test_modules_for_java_start_the_image(java: list[str], image: str):
    assert lines(*java, "Modules", image, cwd=BUILD) == [
        "KafkaContainer: one",
        "ConfluentKafkaContainer: one",
        "KafkaContainer with ZooKeeper: one",
        "ConfluentKafkaContainer with SASL: one",
        "KafkaContainer with SASL: one",
    ]


def test_container_for_java_on_the_page_is_steered(java: list[str], image: str, tmp_path: Path):
    (tmp_path / "Main.java").write_text(JAVA_MAIN.format(container=block("java", "class MomusContainer")))
    frozen, moved, read = lines(*java, "Main.java", image, cwd=tmp_path)
    before, after = (int(re.search(r'"now_ms": ?(\d+)', told)[1]) for told in (frozen, moved))
    assert after - before == 691_200_000
    assert read == "MomusContainer: one"


def test_module_for_go_starts_the_image(image: str):
    need("go")
    run("go", "build", "-o", BUILD / "go-modules", ".", cwd=MODULES / "go")
    found = lines(BUILD / "go-modules", image, cwd=BUILD)
    assert [line for line in found if line.startswith("kafka.Run")] == ["kafka.Run: one", "kafka.Run with SASL: one"]


def test_module_for_node_starts_the_image_in_each_of_its_modes(tagged: str, tmp_path: Path):
    need("node", "npm")
    folder = BUILD / "node"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "modules.js"):
        shutil.copy(MODULES / "node" / name, folder)
    run("npm", "ci", "--silent", "--no-audit", "--no-fund", cwd=folder)
    store = tmp_path / "keystore.pfx"
    store.write_bytes(key_store("secret"))
    assert lines("node", "modules.js", tagged, store, "secret", cwd=folder) == [
        "KafkaContainer with ZooKeeper: one",
        "KafkaContainer with KRaft: one",
        "SASL_SSL with ZooKeeper: one",
        "SASL_SSL with KRaft: one",
    ]


def key_store(password: str) -> bytes:
    """A certificate for localhost with its key, in PKCS12."""
    import trustme
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
    from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
    from cryptography.x509 import load_pem_x509_certificate

    made = trustme.CA().issue_cert("localhost")
    key = load_pem_private_key(made.private_key_pem.bytes(), None)
    certificate = load_pem_x509_certificate(made.cert_chain_pems[0].bytes())
    return serialize_key_and_certificates(b"server", key, certificate, None, BestAvailableEncryption(password.encode()))


@pytest.fixture
def testcontainers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Testcontainers for Python."""
    if importlib.util.find_spec("testcontainers") is None:
        pytest.skip("testcontainers not installed: make test-image-modules")
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("mode", ["zookeeper", "kraft", "sasl"])
def test_module_for_python_starts_the_image(tagged: str, testcontainers: None, mode: str):
    code = f"""
import sys
from testcontainers.community.kafka import KafkaContainer
container, client = KafkaContainer({tagged!r}), {{}}
if {mode!r} == "sasl":
    container = KafkaContainer({tagged!r}, listener_name="SECURE", security_protocol="SASL_PLAINTEXT").with_kraft()
    container.with_env("KAFKA_SASL_ENABLED_MECHANISMS", "PLAIN")
    container.with_env("KAFKA_LISTENER_NAME_SECURE_PLAIN_SASL_JAAS_CONFIG", {LOGIN!r})
elif {mode!r} == "kraft":
    container.with_kraft()
with container:
    print(container.get_bootstrap_server(), flush=True)
    sys.stdin.read()
"""
    user = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "pencil",
    }
    started_and_reached(code, user if mode == "sasl" else {})


def started_and_reached(code: str, settings: dict[str, str]) -> None:
    """A round trip with the broker of a program that prints its address and ends with its standard input."""
    command = [shutil.which("python3", path=str(REPOSITORY / ".venv" / "bin")) or "python3", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        address = program.stdout.readline().strip()
        round_trip(address, **settings)
        program.communicate("")
    assert program.returncode == 0


def test_container_for_python_on_the_page_is_steered(image: str, testcontainers: None):
    names: dict[str, object] = {}
    exec(block("python", "import socket"), names)  # what a reader pastes
    with names["MomusContainer"](image, MOMUS_FLUSH="memory") as momus:
        round_trip(momus.bootstrap)
        clock = names["Clock"](momus.control())
        clock.freeze()
        before = clock.now()
        clock.advance(days=8)
        assert clock.now() - before == timedelta(days=8)
