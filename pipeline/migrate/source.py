"""What to copy: what the command line wants of what the source's metadata log says, and what is left out, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.migrate import cluster_settings, plan
from pipeline.migrate.settings import NotCopied, settings_of, without_settings
from pipeline.source.metadata_log import METADATA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from pipeline.migrate.plan import Topic
    from pipeline.migrate.settings import Settings

AS_ASKED: Final = "left out, as asked"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to copy: globs of topics, names of settings, and the rest of the command line."""

    topics: Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    exclude_config: Sequence[str] = ()
    topic_config: Sequence[tuple[str, str]] = ()
    without: Sequence[str] = ()
    replication_factor: int = -1
    groups: bool = True
    offsets_only: bool = False
    as_of: datetime | None = None
    dry_run: bool = False


@dataclass(slots=True)
class Source:
    """The source as its metadata log has it: what is copied, and what is not."""

    topics: dict[str, Topic]
    settings: Settings
    not_copied: list[NotCopied]


def source_of(spark: SparkSession, path: str, wanted: Wanted) -> Source:
    """Read it, less what is not wanted. Errors: PipelineError: it has no such topic, or an archive lacks the log."""
    metadata = tables.raw(spark, path, METADATA, plan.METADATA_RECORDS)
    values = list(plan.metadata_values(metadata, path))
    described, settings = plan.topics_of(values), settings_of(values)
    if not described and tables.is_archive(path):
        raise PipelineError(f"{path} lacks the metadata log: archive --topics '*' copies it with all others")
    topics = plan.matching_topics(described, wanted.topics, wanted.exclude)
    if not topics:
        raise PipelineError(f"{path} has no topic {' '.join(wanted.topics)}")
    left_out = [
        NotCopied("topic", name, AS_ASKED) for name in sorted(described) if name not in (*topics, *plan.INTERNAL)
    ]
    for kind, configs_of in (("topic", {t.name: t.configs for t in topics.values()}), ("group", settings.groups)):
        for name, configs in configs_of.items():
            kept = without_settings(configs, wanted.exclude_config)
            left_out += [
                NotCopied(f"{kind} setting", f"{key} of {name}", AS_ASKED) for key in configs if key not in kept
            ]
            configs_of[name] = kept
        if kind == "topic":
            for name, configs in configs_of.items():
                topics[name].configs = {**configs, **dict(wanted.topic_config)}
    without = (*wanted.without, *(cluster_settings.PARTS[1:] if wanted.offsets_only else ()))
    for part, held in (
        (cluster_settings.GROUP_SETTINGS, settings.groups),
        (cluster_settings.ACLS, settings.acls),
        (cluster_settings.QUOTAS, settings.quotas),
    ):
        if part in without and held:
            left_out.append(NotCopied(part, f"{len(held)} of them", AS_ASKED))
            held.clear()
    return Source(topics, settings, [*left_out, *settings.not_copied])
