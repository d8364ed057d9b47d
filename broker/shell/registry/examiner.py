"""Has schemas examined by a process of its own, so that no schema, however hostile, holds up or ends the broker.

One job after the other; a job that takes longer than JOB_S ends the process, and the next one begins another.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any, Final

from broker.registry.jobs import Checked, Difference, Job, SchemaFaultError
from broker.shell.registry import examined

logger = logging.getLogger("momus.registry")

JOB_S: Final = 10.0
ANSWER_BYTES: Final = 64 << 20


class Examiner:
    """The process, begun with the first job. It serves all registries of the broker's process."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turns = asyncio.Lock()

    async def check(self, job: Job) -> Checked | SchemaFaultError:
        """What was found out about a schema."""
        async with self._turns:
            try:
                async with asyncio.timeout(JOB_S):
                    answer = await self._ask(job)
            except TimeoutError:
                self._end()
                return SchemaFaultError(f"it could not be examined within {JOB_S:.0f} s")
            except (OSError, asyncio.IncompleteReadError):
                self._end()
                return SchemaFaultError("the process that examined it has ended")
            except BaseException:  # the client is gone, and half an answer is left
                self._end()
                raise
        if "fault" in answer:
            return SchemaFaultError(answer["fault"])
        text, messages, differences = answer["found"]
        return Checked(text, messages, [Difference(*each) for each in differences])

    async def begin(self) -> None:
        """Begin the process before the first job, which it then need not wait for."""
        async with self._turns:
            if self._process is None:
                await self._begin()

    def close(self) -> None:
        """End the process."""
        self._end()

    async def _ask(self, job: Job) -> Any:
        if self._process is None:
            await self._begin()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(_message(job))
        await process.stdin.drain()
        size = int.from_bytes(await process.stdout.readexactly(4), "big")
        if size > ANSWER_BYTES:
            raise OSError("an answer without end")
        return json.loads(await process.stdout.readexactly(size))

    async def _begin(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(Path(examined.__file__))),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # a terminal's signals are for the broker
        )
        assert self._process.stdin is not None
        self._process.stdin.write(_message(sys.path))

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()


def _message(value: object) -> bytes:
    data = json.dumps(value).encode()
    return len(data).to_bytes(4, "big") + data
