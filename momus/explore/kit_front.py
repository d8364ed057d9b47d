"""Stands between the tests of a suite, in any language, and the momus that makes their clusters, for one run of them.

A kit names the test in the field `Momus-Test` of each call that makes a cluster (percent-encoded), and may say with
`Momus-Test-Failed: true` or `false`, when it removes the cluster, what came of the test. All calls are passed on as
they are; before a test gets its cluster, what is to happen in it is set.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

from momus.cluster import Cluster
from momus.control import Control
from momus.explore.watch import Address, Watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from momus.explore.schedule import Schedule

TEST, FAILED = "Momus-Test", "Momus-Test-Failed"
PIECE = 1 << 16
_MAKES = re.compile(r"/_admin/clusters(/[^/?]+/fork)?")
_OF_CLUSTER = re.compile(r"/_admin/clusters/([^/?]+)(/[^?]*)?(\?.*)?")
BEGIN_ANEW = ("/reset", "/restore", "/recording")  # drop the faults and the journal of a cluster
NOT_PASSED_ON = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")


class OfTest:
    """A test of the run.

    has_failed   as its kit has said; a kit that does not say leaves it to the command's code.
    open         clusters that it has made, and that are there still.
    last         if the run was ended while the test went on: the last requests and the groups of its clusters.
    """

    def __init__(self, schedule: Schedule | None) -> None:
        self.where: list[Address] = []
        self.watch = Watch(schedule, self.where.append)
        self.has_failed = False
        self.open: set[str] = set()
        self.last: list[str] = []
        self.lock = threading.Lock()

    @property
    def has_ended(self) -> bool:
        """Whether all its clusters are removed."""
        return not self.open


class Front:
    """One run of a suite before the momus at `control`.

    schedules   of each test by name; one that has none runs plainly.
    tests       name -> the test, of those that have made a cluster, in their order.
    unnamed     so many clusters were made for no test: they are shared, or their kit does not name tests.
    """

    def __init__(self, control: str, schedules: Mapping[str, Schedule]) -> None:
        self.tests: dict[str, OfTest] = {}
        self.unnamed = 0
        self._control = Control(control)
        self._schedules = schedules
        self._clusters: dict[str, tuple[OfTest, Cluster]] = {}
        self._lock = threading.Lock()
        front = self

        class Handler(_Handler):
            owner = front

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="explore-front", daemon=True
        )
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop, and remove the clusters that the run has left."""
        self._server.shutdown()
        self._server.server_close()
        for _test, cluster in list(self._clusters.values()):
            cluster.close()
        self._control.close()

    # -- what calls do; each thread of the server serves one connection

    def before(self, method: str, path: str, fields: Mapping[str, str]) -> None:
        """A call is about to be passed on."""
        found = self._of(path)
        if found is None:
            return
        (test, cluster), rest = found
        with test.lock:
            if method == "DELETE" and not rest and cluster.is_open:
                test.watch.ends(cluster)
                cluster.is_open = False
                test.has_failed = test.has_failed or fields.get(FAILED) == "true"
            elif method == "POST" and rest in BEGIN_ANEW:
                test.watch.will_begin_again(cluster)

    def after(self, method: str, path: str, fields: Mapping[str, str], answer: bytes) -> None:
        """A call was answered with 200."""
        if method == "POST" and _MAKES.fullmatch(path):
            self._made(fields.get(TEST), path, json.loads(answer))
            return
        found = self._of(path)
        if found is None:
            return
        (test, cluster), rest = found
        with test.lock:
            if method == "DELETE" and not rest:
                test.open.discard(cluster.name)
                self._clusters.pop(cluster.name, None)
            elif method == "POST" and rest in BEGIN_ANEW:
                test.watch.began_again(cluster)

    def _made(self, named: str | None, path: str, described: Any) -> None:
        with self._lock:
            of = self._of(path)  # a fork is of the test whose cluster it is of
            if named is not None:
                name = unquote(named)
                test = self.tests.setdefault(name, OfTest(self._schedules.get(name)))
            elif of is not None:
                test = of[0][0]
            else:
                self.unnamed += 1
                return
        with test.lock:
            cluster = Cluster.found(self._control, described)
            self._clusters[cluster.name] = (test, cluster)
            test.open.add(cluster.name)
            test.watch.made(cluster)

    def _of(self, path: str) -> tuple[tuple[OfTest, Cluster], str] | None:
        parts = _OF_CLUSTER.fullmatch(path)
        if parts is None:
            return None
        found = self._clusters.get(unquote(parts[1]))
        return None if found is None else (found, parts[2] or "")

    @property
    def upstream(self) -> str:
        """HOST:PORT of the momus."""
        return self._control.address


class _Handler(BaseHTTPRequestHandler):
    """Passes on what comes over one connection, call by call."""

    owner: Front
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """Connect to the momus too."""
        super().setup()
        self.line = http.client.HTTPConnection(self.owner.upstream, timeout=120)

    def finish(self) -> None:
        """Both end together."""
        self.line.close()
        super().finish()

    def log_message(self, *words: object) -> None:
        """Nothing: the report says what happened."""

    def pass_on(self) -> None:
        """One call and its answer."""
        method, path = self.command, self.path
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        try:
            given = {name.title(): value for name, value in self.headers.items()}
            self.owner.before(method, path, given)
            kept = {name: value for name, value in given.items() if name.lower() not in NOT_PASSED_ON}
            self.line.request(method, path, body, kept)
            answer = self.line.getresponse()
            if answer.getheader("Content-Length") is None:
                self._stream(answer)
                return
            data = answer.read()
            if answer.status == 200:
                self.owner.after(method, path, given, data)
        except (OSError, http.client.HTTPException, RuntimeError, ValueError) as error:
            self.close_connection = True
            data = json.dumps({"error": f"momus explore could not pass this on: {error}"}).encode()
            self._head(502, {"Content-Type": "application/json"}, len(data))
            self.wfile.write(data)
            return
        self._head(answer.status, dict(answer.getheaders()), len(data))
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = pass_on  # noqa: N815  # as http.server names them

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        """An answer that ends with its connection."""
        self.close_connection = True
        self._head(answer.status, dict(answer.getheaders()), None)
        while piece := answer.read1(PIECE):
            self.wfile.write(piece)
            self.wfile.flush()

    def _head(self, status: int, fields: Mapping[str, str], length: int | None) -> None:
        self.send_response_only(status)
        for name, value in fields.items():
            if name.lower() not in NOT_PASSED_ON:
                self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close" if self.close_connection else "keep-alive")
        self.end_headers()
