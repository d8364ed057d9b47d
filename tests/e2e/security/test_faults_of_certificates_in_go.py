"""What franz-go says of certificates that have expired, are for another host, or come from an authority it does not
trust: the errors of Go's crypto/x509."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from broker.shell.client_configs import _franz_go
from momus import Broker

HERE = Path(__file__).parent
LIMIT_S = 240.0


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
def test_franz_go_names_each_fault_of_a_certificate(tmp_path):
    program = tmp_path / "go"
    shutil.copytree(HERE / "franz_go", program)
    (program / "options").mkdir()
    with Broker(security="sasl_ssl", users={"alice": "pencil"}) as broker:
        settings = broker.client_config("kafka-python", user="alice")  # the words that the file is made of
        (program / "options" / "franz_go.go").write_text(_franz_go(settings))

        def ask() -> str:
            command = [str(program / "asks")]
            return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S).stdout.strip()

        env = {**os.environ, "GOFLAGS": "-mod=mod"}
        made = subprocess.run(
            ["go", "build", "-o", "asks", "."], cwd=program, env=env, capture_output=True, text=True, timeout=LIMIT_S
        )
        assert made.returncode == 0, made.stderr
        assert ask() == "ok"
        broker.certificates.expire()
        assert "x509: certificate has expired or is not yet valid" in ask()
        broker.certificates.issue(hosts=["elsewhere.example"])
        assert "x509: cannot validate certificate for 127.0.0.1" in ask()
        broker.certificates.rotate(authority=True)
        assert "x509: certificate signed by unknown authority" in ask()
