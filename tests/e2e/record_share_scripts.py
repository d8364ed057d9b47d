"""Play the random scripts of share group requests to a broker, and write its answers: see share_scripts.py.

`python tests/e2e/record_share_scripts.py HOST:PORT [COUNT]`, with a fresh Apache Kafka.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[each]) for each in (1, 2)]  # run as a program, not by pytest

from conformance.share_scripts import RECORDED, Player, random_script  # noqa: E402  # the path comes first
from wire_peer import Peer  # noqa: E402  # the same

from protocol.messages.cluster import FindCoordinatorRequest  # noqa: E402  # the same


def main() -> None:
    """Play scripts to a broker, and write its answers."""
    address, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 125
    peer = Peer(address)
    for key_type, key in ((0, "g"), (2, "g:AAAAAAAAAAAAAAAAAAAAAA:0")):
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        while peer.call(request, 6).coordinators[0].error_code:
            time.sleep(0.5)
    time.sleep(3)
    # Kafka's first share group takes longer to begin: its topic is made first.
    Player(peer.call, f"first-{time.time_ns()}", lambda ms: time.sleep(ms / 1000)).play(random_script(0))
    recorded = []
    for number in range(count):
        player = Player(peer.call, f"script-{number}-{time.time_ns()}", lambda ms: time.sleep(ms / 1000))
        script = random_script(number)
        recorded.append(player.play(script))
    lines = [json.dumps(answers, separators=(",", ":")) for answers in recorded]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
