"""A key that nothing reads is refused or named: --set and -X of `momus proxy`, -X of the commands that ask a broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from momus_command import run_momus

from momus import Broker, BrokerError

PROXY = ("proxy", "--to", "127.0.0.1:1", "--listen", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "momus.sasl.pass.through=true"), "says how to connect to the cluster: give it by -X"),
        (("--set", "sasl.username=alice"), "sasl.username says how to connect to the cluster: give it by -X"),
        (
            ("--set", "ssl.cient.auth=required"),
            "ssl.cient.auth is no setting of a broker. Did you mean ssl",
        ),
        (("-X", "sasl.user=alice"), "sasl.user has no effect here. Did you mean sasl.username?"),
        (("-X", "security.protocl=SASL_SSL"), "Did you mean security.protocol?"),
        (("-X", "momus.sasl.pass.trough=true"), "Did you mean momus.sasl.pass.through?"),
        (("-X", "sasl.oauthbearer.token.endpoint.url=x"), "sasl.oauthbearer.token.endpoint.url has no effect here"),
    ],
    ids=" ".join,
)
def test_proxy_with_a_key_that_nothing_reads_does_not_start(words: tuple[str, ...], said: str) -> None:
    done = run_momus(*PROXY, *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_key_that_a_client_has_but_no_command_is_named(shared_broker: Broker) -> None:
    done = run_momus("health", "-b", shared_broker.bootstrap_servers, "-X", "acks=all")
    assert done.returncode == 0
    assert "-X acks: no effect here" in done.stderr


def test_file_of_a_client_is_taken_and_what_is_not_obeyed_of_its_security_named(
    shared_broker: Broker, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("acks=all\nssl.protocol=TLSv1.3\nsecurity.protocol=PLAINTEXT\n")
    done = run_momus("health", "-b", shared_broker.bootstrap_servers, "--config", str(file))
    assert done.returncode == 0
    assert f"{file}: ssl.protocol: no effect here" in done.stderr
    assert "acks" not in done.stderr


def test_proxy_of_the_kit_with_an_unknown_setting_does_not_start(shared_broker: Broker) -> None:
    proxy = Broker(upstream=shared_broker.bootstrap_servers, config={"ssl.cient.auth": "required"})
    with pytest.raises(BrokerError, match=r"ssl\.cient\.auth is no setting of a broker\. Did you mean"):
        proxy.start()
    proxy.close()
