"""Where traces are sent, checked before anything of OpenTelemetry is imported."""

from __future__ import annotations

import importlib.util
from typing import Final
from urllib.parse import urlsplit

from broker.config.settings import ConfigError

NEEDED: Final = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


def endpoint_of(url: str) -> str:
    """Where spans are sent: a URL without a path gets OTLP's. Errors: ConfigError: it is no such URL, or no extra."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # a port that is no number
        is_good = False
    if not is_good:
        raise ConfigError("otel", url, "not the address of an OTLP receiver, as http://HOST:4318 is")
    try:
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    except ModuleNotFoundError:
        missing = list(NEEDED)
    if missing:
        raise ConfigError("otel", url, "traces need the extra `otel`: pip install 'momus[otel]'")
    return url if parts.path not in ("", "/") else f"{url.rstrip('/')}/v1/traces"
