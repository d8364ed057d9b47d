"""Requests that HTTP servers do not agree on, and what nginx 1.22 answers to each.

    python tests/conformance/http_corpus.py     asks the nginx that is installed, and prints where it says otherwise

An answer is the statuses in their order, "200 400". Where the connection ends in the middle of a request, nginx says
nothing more. A row where ours is neither nginx's answer nor h11's says why: OURS.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HOST: Final = b"Host: localhost\r\n"
GET: Final = b"GET / HTTP/1.1\r\n" + HOST
POST: Final = b"POST / HTTP/1.1\r\n" + HOST
CHUNKED: Final = POST + b"Transfer-Encoding: chunked\r\n\r\n"
UPGRADE: Final = POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
MANY: Final = b"".join(b"X-%d: y\r\n" % number for number in range(2000))

# What is asked, and what nginx says.
CORPUS: Final = {
    "nothing special": (GET + b"\r\n", "200"),
    "two at once": ((GET + b"\r\n") * 2, "200 200"),
    "empty lines before": (b"\r\n\r\n" + GET + b"\r\n", "200"),
    "HTTP/1.0 without a host": (b"GET / HTTP/1.0\r\n\r\n", "200"),
    "HTTP/1.0 that stays": (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" * 2, "200 200"),
    "HTTP/1.0 that goes": (b"GET / HTTP/1.0\r\n\r\n" * 2, "200"),
    "one that closes, and another": (GET + b"Connection: close\r\n\r\n" + GET + b"\r\n", "200"),
    "a method of its own": (b"PURGE / HTTP/1.1\r\n" + HOST + b"\r\n", "200"),
    "an absolute target": (b"GET http://localhost/ HTTP/1.1\r\n" + HOST + b"\r\n", "200"),
    "an empty field": (GET + b"X:\r\n\r\n", "200"),
    "a field of Latin": (GET + b"X: \xe9\r\n\r\n", "200"),
    "a body": (POST + b"Content-Length: 2\r\n\r\nab", "200"),
    "a body, and another request": (POST + b"Content-Length: 2\r\n\r\nab" + GET + b"\r\n", "200 200"),
    "a body of GET": (GET + b"Content-Length: 2\r\n\r\nab", "200"),
    "chunks": (CHUNKED + b"1\r\nx\r\n2\r\nyz\r\n0\r\n\r\n", "200"),
    "chunks, and another request": (CHUNKED + b"1\r\nx\r\n0\r\n\r\n" + GET + b"\r\n", "200 200"),
    "Chunked": (POST + b"Transfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "200"),
    "chunk extensions": (CHUNKED + b'1;a=b;c="d;"\r\nx\r\n0;e\r\n\r\n', "200"),
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\nT: 1\r\n\r\n" + GET + b"\r\n", "200 200"),
    "Expect with its body": (POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nab", "200"),
    "another protocol": (GET + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "200"),
    "another protocol, with a body": (
        UPGRADE + b"Content-Length: 2\r\n\r\nab" + GET + b"\r\n",
        "200 200",
    ),
    "another protocol, in chunks": (
        POST
        + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
        + GET
        + b"\r\n",
        "200 200",
    ),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", "400"),
    "two hosts": (GET + HOST + b"\r\n", "400"),
    "a length beside chunks": (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
    "chunks beside a length": (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", "400"),
    "two lengths": (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"),
    "a length twice": (POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab", "400"),
    "a list of lengths": (POST + b"Content-Length: 2, 2\r\n\r\nab", "400"),
    "a length with its sign": (POST + b"Content-Length: +2\r\n\r\nab", "400"),
    "a negative length": (POST + b"Content-Length: -2\r\n\r\nab", "400"),
    "a length in hex": (POST + b"Content-Length: 0x2\r\n\r\nab", "400"),
    "an empty length": (POST + b"Content-Length:\r\n\r\n", "400"),
    "a length beyond 64 bits": (POST + b"Content-Length: 99999999999999999999\r\n\r\n", "400"),
    "a length beyond the limit": (POST + b"Content-Length: 9999999999\r\n\r\n", "413"),
    "chunks beyond 64 bits": (CHUNKED + b"fffffffffffffffff\r\nx", "400"),
    "a coding that is no chunks": (POST + b"Transfer-Encoding: gzip\r\n\r\n", "501"),
    "two codings": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"),
    "a coding that ends so": (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501"),
    "identity": (POST + b"Transfer-Encoding: identity\r\n\r\n", "501"),
    "chunked twice": (POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "501"),
    "two fields of codings": (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", "400"),
    "a coding after a tab": (POST + b"Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", "501"),
    "a coding after VT": (POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", "501"),
    "HTTP/1.0 in chunks": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
    "a chunk with its sign": (CHUNKED + b"+1\r\nx\r\n0\r\n\r\n", "400"),
    "a chunk in C's hex": (CHUNKED + b"0x1\r\nx\r\n0\r\n\r\n", "400"),
    "a chunk of _": (CHUNKED + b"1_0\r\nx\r\n0\r\n\r\n", "400"),
    "a chunk without its size": (CHUNKED + b"\r\nx\r\n0\r\n\r\n", "400"),
    "a chunk with a space": (CHUNKED + b"1 \r\nx\r\n0\r\n\r\n", "200"),
    "a chunk that is longer": (CHUNKED + b"1\r\nxy\r\n0\r\n\r\n", "400"),
    "chunks by LF": (CHUNKED + b"1\nx\n0\n\n", "200"),
    "an extension that ends by LF": (CHUNKED + b"1;a\nx\r\n0\r\n\r\n", "200"),
    "a trailer that is no field": (CHUNKED + b"0\r\nT\r\n\r\n", "200"),
    "lines by LF": (b"GET / HTTP/1.1\nHost: localhost\n\n", "200"),
    "a field by LF": (GET + b"X: 1\n\r\n", "200"),
    "lines by CR": (b"GET / HTTP/1.1\rHost: localhost\r\r", "400"),
    "CR in a field": (GET + b"X: 1\rY: 2\r\n\r\n", "400"),
    "a field in two lines": (GET + b"X: 1\r\n 2\r\n\r\n", "400"),
    "a field before the first": (b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n", "400"),
    "a space before the colon": (GET + b"X : 1\r\n\r\n", "400"),
    "a space before the coding's colon": (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400"),
    "no colon": (GET + b"X\r\n\r\n", "200"),
    "no name": (GET + b": 1\r\n\r\n", "400"),
    "NUL in a field": (GET + b"X: a\0b\r\n\r\n", "400"),
    "NUL in a name": (GET + b"X\0Y: a\r\n\r\n", "400"),
    "control characters in a field": (GET + b"X: a\x01b\r\n\r\n", "200"),
    "a name in brackets": (GET + b"X[]: a\r\n\r\n", "200"),
    "a small method": (b"get / HTTP/1.1\r\n" + HOST + b"\r\n", "400"),
    "two spaces": (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", "200"),
    "a space in the target": (b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", "400"),
    "a tab in the target": (b"GET /\ta HTTP/1.1\r\n" + HOST + b"\r\n", "400"),
    "Latin in the target": (b"GET /\xe9 HTTP/1.1\r\n" + HOST + b"\r\n", "200"),
    "a target that is no path": (b"GET x HTTP/1.1\r\n" + HOST + b"\r\n", "400"),
    "a tunnel": (b"CONNECT localhost:1 HTTP/1.1\r\n" + HOST + b"\r\n", "400"),
    "HTTP/0.9": (b"GET /\r\n", ""),
    "HTTP/1.2": (b"GET / HTTP/1.2\r\n" + HOST + b"\r\n", "200"),
    "HTTP/2.0": (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", "505"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"),
    "HTTP/01.1": (b"GET / HTTP/01.1\r\n" + HOST + b"\r\n", "400"),
    "no HTTP": (b"hello\r\n\r\n", "400"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x11" * 32 + b"\r\n\r\n", "400"),
    "a long target": (b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", "414"),
    "a long field": (GET + b"X: " + b"y" * 40_000 + b"\r\n\r\n", "400"),
    "many fields": (GET + MANY * 2 + b"\r\n", "400"),
    "a field without end": (GET + b"X: " + b"y" * 200_000, "400"),
    "half a head": (GET, ""),
    "half a body": (POST + b"Content-Length: 5\r\n\r\nab", ""),
    "half a chunk": (CHUNKED + b"5\r\nab", ""),
}

STRICT: Final = "llhttp is strict, as Node is: what others read in two ways is how a request is smuggled"
LARGE: Final = "RFC 6585 has a status for it"
# Where ours is neither nginx's answer nor h11's: the answer, and why.
OURS: Final = {
    "chunked twice": ("400", STRICT),
    "a chunk with a space": ("400", STRICT),
    "lines by LF": ("400", STRICT),
    "a field by LF": ("400", STRICT),
    "control characters in a field": ("400", STRICT),
    "a long target": ("431", LARGE),
    "a long field": ("431", LARGE),
    "many fields": ("431", LARGE),
    "HTTP/2": ("505", "the version is read before the connection's settings"),
    "HTTP/1.2": ("505", "llhttp knows 1.0 and 1.1"),
}


def statuses(address: tuple[str, int], request: bytes) -> str:
    """What a server answers until it hangs up."""
    answers = b""
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=60) as wire:
        with contextlib.suppress(OSError):  # it has hung up on the rest
            wire.sendall(request)
            wire.shutdown(socket.SHUT_WR)
        while data := wire.recv(65_536):
            answers += data
    return " ".join(code.decode() for code in re.findall(rb"HTTP/1\.\d (\d\d\d)", answers) if code != b"100")


def main() -> None:
    """Ask nginx."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as first:
        with socket.create_server(("127.0.0.1", 0)) as second:
            front, back = (each.getsockname()[1] for each in (first, second))
        first.close()
        paths = "".join(f"{each}_temp_path {folder}/{each};" for each in ("proxy", "fastcgi", "uwsgi", "scgi"))
        settings = f"""daemon off; error_log {folder}/errors; pid {folder}/pid; events {{}} http {{ access_log off;
            client_body_temp_path {folder}/bodies; {paths} client_max_body_size 4m;
            server {{ listen 127.0.0.1:{front}; location / {{ proxy_ignore_client_abort on; proxy_pass
                http://127.0.0.1:{back}; }} }}
            server {{ listen 127.0.0.1:{back}; location / {{ return 200 ok; }} }} }}"""
        Path(folder, "nginx.conf").write_text(settings, encoding="utf-8")
        server = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf", "-p", folder])
        try:
            while not statuses(("127.0.0.1", front), CORPUS["nothing special"][0]):
                pass  # it does not listen yet
            for name, (request, told) in CORPUS.items():
                found = statuses(("127.0.0.1", front), request)
                if found != told:
                    sys.stdout.write(f"{name}: {told!r} in the table, nginx says {found!r}\n")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
