"""One process for all of xdist's workers: the controller starts it when the first of them asks.

The controller listens on loopback. A worker that needs a cluster connects, says in one line which control endpoint does
not answer any more, if one does not, and reads one line of JSON: where the endpoint is, the file with the log, and how
earlier processes have ended; or why there is none. A run without Kafka tests starts nothing.
"""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from momus.kit.process import Broker
    from momus.kit.upstream.run import UpstreamRun

START_LIMIT_S = 60.0
LINE_LIMIT_S = 5.0  # for what a worker says


class SharedProcess:
    """The controller's end. `log_level`: of the process; `run`: on a real cluster."""

    def __init__(self, log_level: str, run: UpstreamRun | None = None) -> None:
        self._log_level = log_level
        self._run = run
        self._brokers: list[Broker] = []  # the last is the one in use; workers may still read the logs of the others
        self._deaths: dict[str, str] = {}  # address of the control endpoint -> how its process has ended
        self._is_closing = False
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        host, port = self._socket.getsockname()
        self.address = f"{host}:{port}"
        self._thread = threading.Thread(target=self._serve, name="momus-shared", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and end the process if there is one."""
        self._is_closing = True
        socket.create_connection(self._socket.getsockname()).close()  # wakes accept, which closing alone would not
        self._thread.join()
        self._socket.close()
        for broker in self._brokers:
            broker.close()

    def finish(self) -> None:
        """All workers are done: what they have created in a real cluster goes."""
        for broker in self._brokers:
            if self._run is not None:
                self._run.finished(broker)

    def _serve(self) -> None:
        while True:
            worker, _ = self._socket.accept()
            with worker, suppress(OSError):  # the worker is gone
                if self._is_closing:
                    return
                worker.settimeout(LINE_LIMIT_S)
                with worker.makefile("rb") as lines:
                    silent = lines.readline().decode().strip()
                worker.sendall(json.dumps(self._answer(silent)).encode() + b"\n")

    def _answer(self, silent: str) -> dict[str, Any]:
        from momus.kit.child import DEATH_LIMIT_S
        from momus.kit.process import Broker, BrokerError  # 10 ms

        if self._brokers:
            address = self._brokers[-1].known_control
            sentence = self._brokers[-1].death(DEATH_LIMIT_S if silent == address else 0.0)
            if sentence is not None:
                self._deaths[address] = sentence
        if not self._brokers or self._brokers[-1].known_control in self._deaths:
            words: dict[str, Any] = {"log_level": self._log_level}
            broker = Broker(flush="memory", **words) if self._run is None else self._run.broker(**words)
            try:
                self._brokers.append(broker.start())
            except (BrokerError, OSError) as error:
                return {"error": str(error)}
        broker = self._brokers[-1]
        return {"control": broker.known_control, "log": broker.log_path, "deaths": self._deaths}


class Shared:
    """What the controller answers a worker."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.control: str = answer["control"]
        self.log_path: str = answer["log"]
        self.deaths: dict[str, str] = answer["deaths"]


def ask_controller(controller: str, silent: str) -> Shared:
    """Where the process is. `silent`: the control endpoint of one that does not answer any more, or nothing.

    Errors: OSError: there is no controller; RuntimeError: the process could not be started.
    """
    host, _, port = controller.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=START_LIMIT_S) as connection,
        connection.makefile("rb") as lines,
    ):
        connection.sendall(silent.encode() + b"\n")
        answer = json.loads(lines.readline() or b"null")
    if answer is None or "error" in answer:
        raise RuntimeError(f"the broker process was not started: {(answer or {}).get('error', 'pytest ends')}")
    return Shared(answer)
