"""`momus doctor`: words that cannot be obeyed are refused; a peer that sends for ever is not read for ever."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from momus.cli.doctor import probe as probes
from momus.cli.doctor.command import doctor


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["127.0.0.1:70000"], "'127.0.0.1:70000' is not HOST:PORT"),
        (["127.0.0.1:0"], "'127.0.0.1:0' is not HOST:PORT"),
        (["127.0.0.1:1", "--cafile", __file__], "holds no certificate in PEM"),
    ],
)
def test_words_that_cannot_be_obeyed_exit_2_before_anything_is_asked(words, said):
    done = CliRunner().invoke(doctor, words)
    assert done.exit_code == 2, done.output
    assert said in done.output


class _Endless:
    """A connection whose peer sends for ever; it fails the test where too much is read."""

    def __init__(self) -> None:
        self.sent = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def sendall(self, data):
        return None

    def recv(self, size):
        self.sent += size
        assert self.sent < 64 << 20
        return b"S" * size


def test_peer_that_sends_for_ever_is_another_program(monkeypatch):
    monkeypatch.setattr(probes.socket, "create_connection", lambda *_: _Endless())
    assert probes._ask("127.0.0.1", 1, 1.0, b"hello")[:2] == b"SS"
