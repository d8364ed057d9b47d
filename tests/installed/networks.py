"""A network of this program's own, with a loopback in which nothing listens, so that lines may name fixed ports."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

INSIDE = "MOMUS_INSTALLED_NETWORK"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def enter_a_new_one() -> None:
    """Start this program anew in a network of its own; where the system makes none, say so and go on in this one."""
    if INSIDE in os.environ:
        _raise_loopback()
        return
    kinds = (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"])
    for words in kinds if shutil.which("unshare") else ():
        if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp(words[0], [*words, sys.executable, *sys.argv])
    sys.stderr.write(
        "no network of its own can be made here: ports 8081, 8476, 9090, 9092 to 9094, 19092 must be free\n"
    )


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        told = fcntl.ioctl(asked, SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", told)[1]
        fcntl.ioctl(asked, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))
