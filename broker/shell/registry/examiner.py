"""Has schemas examined by a process of its own, so that no schema, however hostile, holds up or ends the broker.

One job after the other. A job that takes longer than JOB_S ends the process. Where a job has kept all processes busy
for PATIENCE_S, the next one begins another process, up to MOST: it ends as soon as there is nothing left for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from pathlib import Path
from typing import Any, Final

from broker.registry.jobs import Checked, Difference, Job, SchemaFaultError
from broker.shell.registry import examined

logger = logging.getLogger("momus.registry")

JOB_S: Final = 10.0
PATIENCE_S: Final = 0.5
MOST: Final = 4
ANSWER_BYTES: Final = 64 << 20


class Examiner:
    """The processes, of which the first is begun with the first job. They serve all registries of the broker."""

    def __init__(self) -> None:
        self._processes: set[_Process] = set()
        self._idle: asyncio.Queue[_Process] = asyncio.Queue()

    async def check(self, job: Job) -> Checked | SchemaFaultError:
        """What was found out about a schema."""
        process = await self._free()
        try:
            async with asyncio.timeout(JOB_S):
                answer = await process.ask(job)
        except TimeoutError:
            process.end()
            return SchemaFaultError(f"it could not be examined within {JOB_S:.0f} s")
        except (OSError, asyncio.IncompleteReadError):
            process.end()
            return SchemaFaultError("the process that examined it has ended")
        except BaseException:  # the client is gone, and half an answer is left
            process.end()
            raise
        finally:
            self._leave(process)
        if "fault" in answer:
            fault = SchemaFaultError(answer["fault"])
            fault.is_of_new = bool(answer.get("is_of_new"))
            return fault
        text, messages, differences, fields = answer["found"]
        return Checked(text, messages, [Difference(*each) for each in differences], tuple(fields))

    async def begin_early(self) -> None:
        """Begin the process before the first job, which then need not wait for it."""
        if not self._processes:
            process = self._new()
            try:
                with contextlib.suppress(OSError):  # the job that needs it says why it has failed
                    await process.begin(has_time=True)
            finally:
                self._leave(process)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.end()

    def _new(self) -> _Process:
        process = _Process()
        self._processes.add(process)
        return process

    async def _free(self) -> _Process:
        """A process that has nothing to do."""
        while self._idle.empty():
            now_s = asyncio.get_running_loop().time()
            if len(self._processes) < MOST and all(now_s - each.since_s > PATIENCE_S for each in self._processes):
                return self._new()
            try:
                async with asyncio.timeout(PATIENCE_S):
                    return await self._idle.get()
            except TimeoutError:
                continue  # is it the same job that takes so long?
        return self._idle.get_nowait()

    def _leave(self, process: _Process) -> None:
        """Let a process wait for the next job, or end it where another one waits."""
        if self._idle.empty():
            self._idle.put_nowait(process)
        else:
            self._processes.discard(process)
            process.end()


class _Process:
    """One process, begun with its first job, and again with the first one after its end.

    since_s   when it was given its job.
    """

    def __init__(self) -> None:
        self.since_s = asyncio.get_running_loop().time()
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, job: Job) -> Any:
        """The answer. Errors: OSError, IncompleteReadError: it has ended."""
        self.since_s = asyncio.get_running_loop().time()
        await self.begin()
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

    async def begin(self, *, has_time: bool = False) -> None:
        """Begin it, where it is not there; `has_time`: no job waits for it yet. Errors: OSError."""
        if self._process is not None:
            return
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(Path(examined.__file__))),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # a terminal's signals are for the broker
        )
        assert self._process.stdin is not None
        self._process.stdin.write(_message([sys.path, has_time]))

    def end(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()


def _message(value: object) -> bytes:
    data = json.dumps(value).encode()
    return len(data).to_bytes(4, "big") + data
