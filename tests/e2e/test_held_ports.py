"""Ports that tests hold for a JVM: its kind of socket listens there, all others are refused."""

from __future__ import annotations

import socket

import pytest
from ports import HeldPorts


def test_a_held_port_is_free_for_the_program_it_is_for_and_taken_for_others():
    with HeldPorts(1) as held:
        address = ("127.0.0.1", held.numbers[0])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, 10)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(address)
        with socket.create_server(address), socket.create_connection(address, 10):  # sets SO_REUSEADDR, as the JVM
            pass
