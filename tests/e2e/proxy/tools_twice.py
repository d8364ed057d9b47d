"""One node of Apache Kafka, a proxy before it, and its console tools, run directly and through the proxy.

The node has two listeners, both with SASL. Tools that run directly connect to one, with a password. The proxy connects
to the other, and who runs through it has no password: led past the proxy, to the node itself, a tool is refused.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apache_kafka import apache_kafka
from java_toolbox import Toolbox
from ports import HeldPorts

from momus import Broker

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = """\
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=DIRECT://127.0.0.1:{direct},BEHIND://127.0.0.1:{behind},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=DIRECT:SASL_PLAINTEXT,BEHIND:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=DIRECT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.direct.plain.sasl.jaas.config={login} username="admin" password="secret" user_admin="secret";
listener.name.behind.plain.sasl.jaas.config={login} username="admin" password="secret" user_admin="secret";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
delegation.token.secret.key=secret
log.dirs={logs}-1,{logs}-2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.num.partitions=3
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=4194304
"""
PASSWORD = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "admin",
    "sasl.password": "secret",
}
# Each run has names of its own, equally long: tables have columns of equal widths.
OWN, OTHER = ("without", "through"), ("through", "without")
OPTIONS_FIRST = ("TransactionsCommand", "MetadataQuorumCommand", "FeatureCommand")
# Not offered by the proxy where it makes no SASL of its own: what follows it has no heads. docs/proxy.md
NOT_OFFERED = ("SaslHandshake(17): 0 to 1 ", "SaslHandshake(17): 1 ")
COLUMNS = ("ProducerId", "TransactionDurationMs")
TRIES = 60


class Twice:
    """Where the tools run, and how."""

    def __init__(self, toolbox: Toolbox, proxy: Broker, ports: tuple[int, int, int], folder: Path) -> None:
        self.proxy = proxy
        self.port = proxy.bootstrap_servers.rpartition(":")[2]
        self._direct, self._behind, self._controller = ports
        self.folder = folder
        self._toolbox = toolbox
        self.servers = f"127.0.0.1:{self._direct}", proxy.bootstrap_servers
        self._properties = folder / "without.properties", folder / "through.properties"
        self._properties[1].write_text("client.id=tool\n")
        self._properties[0].write_text(
            "client.id=tool\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={LOGIN} username="admin" password="secret";\n'
        )

    def settings(self, place: int) -> dict[str, str]:
        """What a client of librdkafka needs, directly (0) or through the proxy (1)."""
        return {"bootstrap.servers": self.servers[place], "log_level": "0"} | ({} if place else PASSWORD)

    def change(self, tool: str, line: str = "", *, shows: str, text: str = "", in_order: bool = True) -> str:
        """Run a tool at both places, each with names of its own in the place of "$", and hold equal what it prints.

        shows       is in it, with the proxy's address and the first names: a regular expression.
        in_order    the words are in the same order; some tools print sets.
        Returns it.
        """
        printed = [self.run(place, tool, line, text) for place in (0, 1)]
        assert f":{self._behind}" not in printed[1], "a client of the proxy is told where the node is"
        directly, through = self._alike(*printed)
        assert re.search(shows, directly), f"{tool} {line}\n{directly}"
        rows = [each.split("\n") if in_order else sorted(each.split()) for each in (directly, through)]
        assert rows[0] == rows[1], f"{tool} {line}\n{directly}\n---\n{through}"
        return directly

    def read(self, tool: str, line: str = "", *, shows: str, in_order: bool = True) -> str:
        """The same of a tool that changes nothing: again, until the node has learned of a change before."""
        tick = threading.Event()
        for _ in range(TRIES):
            try:
                return self.change(tool, line, shows=shows, in_order=in_order)
            except AssertionError:
                tick.wait(0.1)
        return self.change(tool, line, shows=shows, in_order=in_order)

    def run(self, place: int, tool: str, line: str, text: str = "") -> str:
        """Run a tool, directly (0) or through the proxy (1). Returns its exit code, and what it printed."""
        words = [word.replace("$", OWN[place]) for word in line.split()]
        about = ["--bootstrap-server", self.servers[place], "--command-config", str(self._properties[place])]
        words = [*about, *words] if tool.endswith(OPTIONS_FIRST) else [*words, *about]
        code, printed = self._toolbox.run("org.apache.kafka.tools." + tool, *words, text=text.replace("$", OWN[place]))
        lines = printed.splitlines(keepends=True)
        return f"{code}\n" + "".join(each for each in lines if OTHER[place] not in each)

    def _alike(self, directly: str, through: str) -> tuple[str, str]:
        """What must not differ: the proxy's address stands where the node's stood, or its controller's."""
        ports = f"{self._direct}|{self._controller}"
        directly = re.sub(rf"\b127\.0\.0\.1(:| +)({ports})\b", rf"127.0.0.1\g<1>{self.port}", directly)
        return normal(directly.replace(*NOT_OFFERED)), normal(through.replace(OWN[1], OWN[0]))


def normal(printed: str) -> str:
    """Without what differs between two runs: ids and times."""
    for pattern, name in (
        (r"(TopicId: |tokenId : )[\w-]{22}", r"\1ID"),
        (r"(?m)^[\w-]{22} [\w+/]{86}==", "ID HMAC"),
        (r"(?m)^\tat .*\n", ""),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d", "TIME"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
        (r"(?<=\s)[\w+/-]{22}(?= +(/127|UUID|streams))", "ID"),  # a member
        (r"\b1[0-9]{12}\b", "TIME"),
        (r"(Epoch: +|HighWatermark: +)\d+", r"\1N"),
    ):
        printed = re.sub(pattern, name, printed)
    return "\n".join(without_columns(printed.split("\n")))


def without_columns(lines: list[str]) -> Iterator[str]:
    """Tables of transactions without the ids of producers, and how long ago they began."""
    left_out: list[int] = []
    for line in lines:
        cells = line.split("\t")
        if "ProducerId" in map(str.strip, cells):
            left_out = [index for index, cell in enumerate(cells) if cell.strip() in COLUMNS]
        yield "\t".join(cell for index, cell in enumerate(cells) if index not in left_out)


@contextmanager
def tools_twice(libs: str, classes: str, folder: Path) -> Iterator[Twice]:
    """All of it, started."""
    held = HeldPorts(3)
    direct, behind, controller = held.numbers
    more = SETTINGS.format(direct=direct, behind=behind, controller=controller, login=LOGIN, logs=folder / "logs")
    box = Toolbox(classes)
    try:
        with (
            apache_kafka(libs, folder, more),
            Broker(upstream=f"127.0.0.1:{behind}", upstream_config=PASSWORD, journal_mb=64) as proxy,
        ):
            yield Twice(box, proxy, (direct, behind, controller), folder)
    finally:
        box.close()
        held.close()
