"""Start scripts of Testcontainers' modules, verbatim, in a scratch root that has the image's files.

The scripts are the command lines of org.testcontainers:kafka 1.21.3, testcontainers 4.15.0 of PyPI and
testcontainers-go/modules/kafka v0.35.0, for the images of Apache and Confluent. Docker is not needed: a user namespace
is the container, and the system's folders are its lower layers.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from ports import HeldPorts

REPOSITORY = Path(__file__).parents[3]
RECOVERED, STARTED = r".*Transitioning from RECOVERY to RUNNING.*", r".*\[KafkaServer id=\d+\] started.*"
STORAGE = (
    "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure\n"
    "echo 'kafka-storage format --ignore-formatted -t {id} -c /etc/kafka/kafka.properties'"
    " >> /etc/confluent/docker/configure"
)
ZOOKEEPER = """
echo 'clientPort=2181' > zookeeper.properties
echo 'dataDir=/var/lib/zookeeper/data' >> zookeeper.properties
echo 'dataLogDir=/var/lib/zookeeper/log' >> zookeeper.properties
zookeeper-server-start zookeeper.properties &
export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'
"""
# name -> (where the script is put, how it is waited for and run, its text, the line that is waited for)
MODULES = {
    "java apache": (
        "/tmp/testcontainers_start.sh",
        "{script}",
        "#!/bin/bash\n{export}\n/etc/kafka/docker/run \n",
        RECOVERED,
    ),
    "java confluent": (
        "/tmp/testcontainers_start.sh",
        "{script}",
        "#!/bin/bash\n{export}\n/etc/confluent/docker/run \n",
        RECOVERED,
    ),
    "java zookeeper": (
        "/tmp/testcontainers_start.sh",
        "{script}",
        "#!/bin/bash\n{export}\necho '' > /etc/confluent/docker/ensure \n"
        + ZOOKEEPER.rpartition("export")[0].replace(" zookeeper.properties", " /tmp/zookeeper.properties")
        + "/etc/confluent/docker/run \n",
        STARTED,
    ),
    "python zookeeper": (
        "/tc-start.sh",
        "sh {script}",
        "#!/bin/bash\n" + ZOOKEEPER + "{export}\n. /etc/confluent/docker/bash-config\n"
        "/etc/confluent/docker/configure\n/etc/confluent/docker/launch",
        STARTED,
    ),
    "python kraft": (
        "/tc-start.sh",
        "sh {script}",
        "#!/bin/bash\n" + STORAGE + "\n{export}\n. /etc/confluent/docker/bash-config\n"
        "/etc/confluent/docker/configure\n/etc/confluent/docker/launch",
        r".*Kafka Server started.*",
    ),
    "go": (
        "/usr/sbin/testcontainers_start.sh",
        "bash {script}",
        "#!/bin/bash\nsource /etc/confluent/docker/bash-config\n{export}\necho Starting Kafka KRaft mode\n"
        + STORAGE.replace("{id}", '"$(kafka-storage random-uuid)"')
        + "\necho '' > /etc/confluent/docker/ensure\n/etc/confluent/docker/configure\n/etc/confluent/docker/launch",
        RECOVERED,
    ),
}
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
# Folders of the system below the image's, and what the image and the container write to.
MOUNT = """
set -e
cd {root}
for each in /*; do
  case $each in /etc|/var|/usr) continue;; esac
  [ -d "$each" ] && [ ! -L "$each" ] && mkdir -p ".$each" && mount --rbind "$each" ".$each"
  [ -L "$each" ] && cp -P "$each" ".$each"
done
mkdir -p var/lib/momus var/lib/zookeeper usr/sbin
for each in /usr/*; do [ "$each" = /usr/sbin ] || {{ mkdir -p ".$each" && mount --rbind "$each" ".$each"; }}; done
exec chroot . /bin/sh -c {command}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that will be / : /etc with the image's files, and the image's programs."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    root = tmp_path / "root"
    shutil.copytree(REPOSITORY / "docker" / "etc", root / "etc")
    shutil.copytree(REPOSITORY / "docker" / "bin", root / "image")
    for name in ("ld.so.cache", "passwd", "nsswitch.conf", "hosts"):
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), root / "etc")
    (root / "image" / "momus").write_text(f'#!/bin/sh\nexec {sys.executable} -m momus "$@"\n')
    (root / "image" / "momus").chmod(0o755)
    return root


@pytest.mark.parametrize("module", MODULES)
def test_start_script_of_the_module_starts_a_broker_that_a_client_reaches(root, module):
    place, start, text, line = MODULES[module]
    held = HeldPorts(3)
    outside, inside, controller = held.numbers
    environment = {
        "CLUSTER_ID": CLUSTER_ID,
        "KAFKA_LISTENERS": f"PLAINTEXT://0.0.0.0:{outside},BROKER://0.0.0.0:{inside},CONTROLLER://0.0.0.0:{controller}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_NODE_ID": "1",
        "KAFKA_BROKER_ID": "1",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": str(2**63 - 1),
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    }
    if module == "java zookeeper":  # the others export it, or have none
        environment["KAFKA_ZOOKEEPER_CONNECT"] = "localhost:2181"
    export = f"export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{outside},BROKER://localhost:{inside}"
    script = root / place.lstrip("/")
    if not place.startswith("/tmp"):  # the system's /tmp is mounted over the folder
        script.parent.mkdir(parents=True, exist_ok=True)
    else:
        place = script = root / "image" / "testcontainers_start.sh"
    script.write_text(text.replace("{export}", export).replace("{id}", CLUSTER_ID).replace("/tmp/zoo", f"{root}/zoo"))
    script.chmod(0o777)
    waiting = f"while [ ! -f {place} ]; do sleep 0.1; done; {start.format(script=place)}"
    command = f"cd /var/lib/zookeeper; /image/entrypoint sh -c {shlex.quote(waiting)}"
    if place == script:
        command = command.replace(str(place), "/image/testcontainers_start.sh")
    process = subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", MOUNT.format(root=root, command=shlex.quote(command))],
        env={"PATH": f"/image:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    seen: list[str] = []
    try:
        assert process.stdout is not None
        for printed in process.stdout:
            seen.append(printed)
            if re.match(line, printed):
                break
        else:
            pytest.fail("".join(seen))
        address = f"localhost:{outside}"
        producer = KafkaProducer(bootstrap_servers=address)
        producer.send("t", b"one").get(30)
        producer.close()
        consumer = KafkaConsumer("t", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest")
        assert next(consumer).value == b"one"
        consumer.close()
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # as the end of a container: all its processes
        process.communicate(timeout=30)
        held.close()
