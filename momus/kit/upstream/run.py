"""A run of tests on a real cluster (`--momus-upstream`): its proxies, what it skips, and what it leaves there.

A test that asks for what a real cluster cannot do is skipped, counted and listed. What the run has created is removed
when it ends, by the list that the proxy keeps on disk; the lists of runs that were killed are worked off at the start
of the next one.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from momus.control import NotOnUpstreamError
from momus.kit.plugin_options import option
from momus.kit.verified import SKIPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any

    from momus.kit.process import Broker

REASON = "not on a real cluster: "
OF_MOMUS = ("as_version", "config", "fetch_waits", "seed", "at", "security", "users", "codec")  # words of tests


class UpstreamRun:
    """The run, as a plugin of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self.servers = option(config, "upstream")
        self._config = config
        self.removed: list[str] = []
        self.left: list[str] = []

    def broker(self, **words: Any) -> Broker:
        """A proxy before the cluster, not started. `words`: of Broker."""
        from momus.kit.process import Broker  # 10 ms

        made = Broker(upstream=self.servers, upstream_config=self._client_config(), **words)
        made.created_list = f"{self._folder()}/{os.urandom(4).hex()}"
        return made

    def process_words(self, words: Mapping[str, Any]) -> dict[str, Any]:
        """The words of a proxy in a process of its own. Errors: NotOnUpstreamError."""
        if wrong := [name for name in OF_MOMUS if words.get(name)]:
            raise NotOnUpstreamError(f"this is a proxy: {', '.join(wrong)} cannot be had of a real cluster")
        return {name: words[name] for name in ("log_level", "listen", "journal_mb") if name in words}

    def finished(self, broker: Broker) -> None:
        """A proxy is about to end: what it has created goes."""
        if broker.running:
            found: Any = broker.control.ask("POST", "/_admin/upstream/remove-created", {})
            self.removed += found["removed"]
            self.left += found["left"]

    def _client_config(self) -> dict[str, str]:
        path = option(self._config, "upstream_config")
        if not path:
            return {}
        settings = {}
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith(("#", "!")):
                settings[key.strip()] = value.strip()
        return settings

    def _folder(self) -> str:
        cache = getattr(self._config, "cache", None)
        if cache is not None:
            return str(cache.mkdir("momus-runs"))
        return os.path.join(tempfile.gettempdir(), f"momus-runs-{os.environ.get('USER', 'user')}")

    # -- what pytest calls

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """A fixture asks for what a real cluster cannot do."""
        return (yield from self._skipping(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """The test itself does."""
        return (yield from self._skipping(item))

    def _skipping(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            return (yield)
        except NotOnUpstreamError as error:
            item.stash[SKIPPED] = True
            pytest.skip(f"{REASON}{error}")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What was not run, and what was removed."""
        found = [each for each in terminalreporter.stats.get("skipped", ()) if REASON in str(each.longrepr)]
        write = terminalreporter.write_line
        terminalreporter.section(f"momus: on the cluster at {self.servers}")
        write(f"{len(found)} tests need what a real cluster cannot do:" if found else "no test was skipped for it")
        for each in found:
            write(f"  {each.nodeid}: {str(each.longrepr[2]).partition(REASON)[2]}")
        write(f"removed from it: {', '.join(self.removed) or 'nothing'}")
        if self.left:
            write(f"left in it: {', '.join(self.left)}")


def find(config: pytest.Config) -> UpstreamRun | None:
    """The run on a real cluster; None: this is none."""
    found: UpstreamRun | None = config.pluginmanager.get_plugin("momus-upstream")
    return found
