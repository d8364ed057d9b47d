"""One process for all of xdist's workers: the controller starts it when the first of them asks.

The controller listens on loopback. A worker that needs a cluster connects and reads one line of JSON: where the control
endpoint is, and the file with the log; or why there is none. A run without Kafka tests starts nothing.
"""

from __future__ import annotations

import json
import socket
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from momus import Broker
    from momus.control import Control

START_LIMIT_S = 60.0


class SharedProcess:
    """The controller's end. `log_level`: of the process."""

    def __init__(self, log_level: str) -> None:
        self._log_level = log_level
        self._broker: Broker | None = None
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
        if self._broker is not None:
            self._broker.close()

    def _serve(self) -> None:
        while True:
            worker, _ = self._socket.accept()
            with worker:
                if self._is_closing:
                    return
                try:
                    worker.sendall(json.dumps(self._answer()).encode() + b"\n")
                except OSError:
                    continue  # the worker is gone

    def _answer(self) -> dict[str, str]:
        from momus.process import Broker, BrokerError  # 10 ms

        if self._broker is None:
            broker = Broker(flush="memory", log_level=self._log_level)
            try:
                self._broker = broker.start()
            except (BrokerError, OSError) as error:
                return {"error": str(error)}
        return {"control": self._broker.control.address, "log": self._broker.log_path}


def find_shared(address: str) -> tuple[Control, Callable[[], str]] | None:
    """A worker's end: the control endpoint, and what the process has logged. None: the controller is elsewhere.

    Errors: RuntimeError: the process could not be started.
    """
    from momus.control import Control  # 25 ms

    host, _, port = address.rpartition(":")
    try:
        with (
            socket.create_connection((host, int(port)), timeout=START_LIMIT_S) as controller,
            controller.makefile("rb") as lines,
        ):
            answer = json.loads(lines.readline() or b"null")
    except OSError:
        return None  # of a worker on another machine
    if answer is None or "error" in answer:
        raise RuntimeError(f"the broker process was not started: {(answer or {}).get('error', 'pytest ends')}")

    def read_log() -> str:
        with open(answer["log"], encoding="utf-8", errors="replace") as file:
            return file.read()

    return Control(answer["control"]), read_log
