"""What a test may do with the virtual brokers of a cluster: stop them, let them lag, pause them."""

from __future__ import annotations

from momus.kit.asks import Asks
from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it


class NodeVerbs(Asks):
    """The calls of a cluster that concern its virtual brokers."""

    def stop_broker(self, node_id: int) -> None:
        """Stop one of several virtual brokers, counted from 1: the others lead what it led."""
        self.control.stop_broker(node_id)

    def start_broker(self, node_id: int) -> None:
        """Start a virtual broker again, on the same port."""
        self.control.start_broker(node_id)

    def lag_follower(self, node_id: int) -> None:
        """Let a virtual broker fetch nothing: what it follows is not committed until it leaves the in-sync replicas."""
        self.control.lag_follower(node_id)

    def release_follower(self, node_id: int) -> None:
        """Let a broker that lags catch up; it is in sync again."""
        self.control.release_follower(node_id)

    def pause_broker(self, node_id: int) -> None:
        """Let a virtual broker read and answer nothing, as a process that is stopped; its connections stay open.

            broker.pause_broker(2)
            ...                                 # clients wait; no other leads what it led
            broker.clock.advance(seconds=10)    # its session has ended (broker.session.timeout.ms, 9 s): others lead
            broker.resume_broker(2)

        Calls of the test are answered all the same. Errors: ControlError: it is stopped, or there is none.
        """
        self.control.pause_broker(node_id)

    def resume_broker(self, node_id: int) -> None:
        """Let a broker that is paused go on: it answers what it was sent, and is in sync, and leads, again."""
        self.control.resume_broker(node_id)
