"""What usual requests pass is part of the compiled build.

A module on the way that tools/compiled.py does not name may cost more than the change that brought it
there: with fetch_read.py in the interpreter, a record took 280 us from Produce to Fetch, and 167 before.
"""

from __future__ import annotations

import core_broker
import pytest

from momus import launch
from work.meters import REPOSITORY, Files, measure

# Requests that the general codecs serve: their handlers and messages are not compiled.
GENERAL = ("Heartbeat", "ConsumerGroupHeartbeat", "ApiVersions", "Metadata", "FindCoordinator")
# Passed by few lines: a consumer group and its member, whose classes have subclasses that are not compiled; the codecs.
IN_PASSING = {
    "broker/coordinator/groups/common/group.py",
    "broker/coordinator/groups/consumer/group.py",
    "broker/coordinator/groups/consumer/member.py",
    "protocol/codegen.py",
}


@pytest.mark.heavy
def test_what_usual_requests_pass_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    if launch.build() != "pure Python":
        pytest.skip("compiled functions make no calls that can be seen")
    monkeypatch.setattr(core_broker, "DATA", core_broker.DATA)  # `measure` sets it, for a process of its own
    monkeypatch.syspath_prepend(REPOSITORY / "tools")
    from compiled import MODULES

    passed = {file for name, files in measure((Files,)).items() if not name.startswith(GENERAL) for file in files}
    assert len(passed) > 40
    assert passed - set(MODULES) == IN_PASSING
