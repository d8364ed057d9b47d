"""`kafka-broker-api-versions`, and `kafka-cluster cluster-id`: whom one reaches, and what they serve."""

from __future__ import annotations

from collections.abc import Sequence

from momus.cli.kafka_tools.options import Options, bootstrap_options, say, use_settings
from momus.client.kafka_client import Client
from protocol.api import ApiKey
from protocol.messages.cluster import ApiVersionsRequest


def run(tool: str, words: Sequence[str]) -> None:
    """Do what the words say. Errors: OSError; ends the tool."""
    options = Options(tool)
    bootstrap_options(options)
    options.text("--config")  # of kafka-cluster: the same as --command-config
    if tool == "kafka-cluster":
        if words[:1] != ["cluster-id"]:
            options.error("cluster-id is all that is here")
        words = words[1:]
    given = options.read(words)
    if given.bootstrap_server is None:
        options.error("--bootstrap-server must be specified")
    use_settings(options, [given.command_config, given.config])
    with Client(given.bootstrap_server) as client:
        if tool == "kafka-cluster":
            say(f"Cluster ID: {client.cluster().cluster_id}")
        else:
            _versions(client)


def _versions(client: Client) -> None:
    """Each broker, and each API that it serves."""
    for node in sorted(client.cluster().brokers, key=lambda node: int(node.node_id)):
        answer = client._call(
            node.node_id, ApiVersionsRequest(client_software_name="momus", client_software_version="1")
        )
        rows = []
        for each in answer.api_keys:
            name = "".join(word.capitalize() for word in ApiKey(each.api_key).name.split("_"))
            rows.append(
                f"\t{name}({each.api_key}): {each.min_version} to {each.max_version} [usable: {each.max_version}]"
            )
        say(f"{node.host}:{node.port} (id: {node.node_id} rack: {node.rack or 'null'} isFenced: false) -> (")
        say(*(f"{row}," for row in rows[:-1]), *rows[-1:], ")")
