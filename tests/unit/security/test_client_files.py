"""The files that a user's clients read: what they say is the password, whatever characters it has."""

from __future__ import annotations

import json
from pathlib import Path

from broker.security.jaas import parse_jaas
from broker.shell.client_configs import write_client_files
from broker.shell.made_security import MadeSecurity
from momus.client.properties import parse_properties

PASSWORD = 'p"a\\s=s ä😀 é#;'


def test_password_is_the_same_in_the_file_of_each_client(tmp_path):
    made = MadeSecurity("sasl_plaintext", {"alice": PASSWORD}, str(tmp_path))
    folder = Path(write_client_files(str(tmp_path), "127.0.0.1:1", made)) / "alice"
    text = (folder / "client.properties").read_bytes().decode("ascii")  # Java reads ISO-8859-1
    assert parse_jaas(parse_properties(text)["sasl.jaas.config"]).options == {"username": "alice", "password": PASSWORD}
    assert json.loads((folder / "kafka-python.json").read_text("utf-8"))["sasl_plain_password"] == PASSWORD
    found: dict[str, dict[str, str]] = {}
    exec((folder / "aiokafka_client.py").read_text("utf-8"), found)  # what its user does
    assert found["CLIENT"]["sasl_plain_password"] == PASSWORD
    assert json.dumps(PASSWORD, ensure_ascii=False) in (folder / "franz_go.go").read_text("utf-8")
