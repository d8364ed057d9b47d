"""Makes items of what files say, once each file has passed its check; notes what is wrong beyond that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.load import fields, values
from broker.load.items import (
    ClockItem,
    GroupItem,
    OffsetItem,
    PlainItem,
    QuotaItem,
    Row,
    SchemaItem,
    TopicItem,
    UserItem,
    Where,
)
from broker.load.problems import LoadError, Problem
from broker.load.record_lines import CSV, KEYED, VALUES, format_of, read_records
from broker.load.shapes import plain
from broker.load.texts import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.load.items import Load
    from broker.load.problems import Path

    Fetch = Callable[[str, str], tuple[str, str]]


OF_A_FILE = ("records_format", "records_separator", "records_key")


class Builder:
    """Adds file after file to a Load.

    fetch      name and text of a file that a document names; OSError: it cannot be read.
    problems   all that is wrong.
    """

    def __init__(self, load: Load, fetch: Fetch) -> None:
        self.problems: list[Problem] = []
        self._load = load
        self._fetch = fetch
        self._taken: dict[tuple[Any, ...], Where] = {}

    def add(self, text: Text) -> None:
        """Add what a document says."""
        before = len(self.problems)
        fields.FILE.check(text.value, (), lambda path, why: self.problems.append(text.problem(path, why)))
        if len(self.problems) > before:
            return
        parts: dict[str, Callable[[Where, dict[str, Any]], None]] = {
            "topics": self._topic,
            "groups": self._group,
            "users": self._user,
            "acls": self._acl,
            "quotas": self._quota,
            "faults": lambda where, given: self._load.faults.append(PlainItem(where, given)),
            "schemas": self._schema,
        }
        for part, take in parts.items():
            for number, given in enumerate(text.value.get(part, ())):
                take(Where(text, (part, number)), given)
        if "clock" in text.value:
            self._clock(Where(text, ("clock",)), text.value["clock"])

    def _once(self, where: Where, what: str, *key: Any) -> None:
        """Note what is there for the second time."""
        first = self._taken.setdefault((what, *key), where)
        if first is not where:
            place = f"{first.text.name}:{first.text.line(first.path)}"
            self.problems.append(where.problem(f"{what} {key[0]} is in {place} too"))

    def _try(self, where: Where, make: Callable[[], Any], *more: str | int) -> Any:
        """What `make` makes; None, and a problem, if it cannot."""
        try:
            return make()
        except ValueError as error:
            self.problems.append(where.problem(str(error), *more))
        except OverflowError:
            self.problems.append(where.problem("is too large", *more))
        return None

    def _topic(self, where: Where, given: dict[str, Any]) -> None:
        self._once(where, "topic", given["name"])
        rows = [self._row(where.at("records", at), row) for at, row in enumerate(given.get("records", ()))]
        if "records_from" in given:
            rows += self._rows_from(where, given)
        elif idle := [name for name in OF_A_FILE if name in given]:
            self.problems.append(where.problem("has no effect without records_from", idle[0]))
        config = {key: values.setting_text(value) for key, value in given.get("config", {}).items()}
        partitions, replicas = given.get("partitions", -1), given.get("replicas", -1)
        self._load.topics.append(TopicItem(where, given["name"], partitions, replicas, config, rows))

    def _row(self, where: Where, given: dict[str, Any]) -> Row:
        if "timestamp_ms" in given:  # of a line alone
            given = {"timestamp": given["timestamp_ms"], **given}
        moment = given.get("timestamp")
        return Row(
            where,
            given.get("partition"),
            self._try(where, lambda: values.data_of(given.get("key")), "key"),
            self._try(where, lambda: values.data_of(given.get("value")), "value"),
            self._try(where, lambda: values.headers_of(given.get("headers", ())), "headers") or (),
            None if moment is None else self._try(where, lambda: values.moment_ms(moment), "timestamp"),
        )

    def _rows_from(self, where: Where, given: dict[str, Any]) -> list[Row]:
        name = given["records_from"]
        form = format_of(name, given.get("records_format"))
        separator, key = given.get("records_separator"), given.get("records_key")
        if separator is not None and form != KEYED:
            self.problems.append(where.problem(f"has no effect with records_format {form}", "records_separator"))
        if key is not None and form not in (CSV, VALUES):
            self.problems.append(where.problem(f"has no effect with records_format {form}", "records_key"))
        content = self._file(where, name, "records_from")
        try:
            text = None if content is None else read_records(*content, form, separator, key)
        except LoadError as error:
            self.problems += error.problems
            return []
        if text is None:
            return []
        before = len(self.problems)

        def report(path: Path, why: str) -> None:
            self.problems.append(text.problem(path, why))

        for at, row in enumerate(text.value):
            fields.LINE.check(row, (at,), report)
        if len(self.problems) > before:
            return []
        return [self._row(Where(text, (at,)), row) for at, row in enumerate(text.value)]

    def _file(self, where: Where, name: str, field: str) -> tuple[str, str] | None:
        try:
            return self._fetch(where.text.name, name)
        except OSError as error:
            self.problems.append(where.problem(f"{name}: {error.strerror or error}", field))
        return None

    def _group(self, where: Where, given: dict[str, Any]) -> None:
        self._once(where, "group", given["name"])
        offsets = []
        for at, row in enumerate(given["offsets"]):
            place = where.at("offsets", at)
            partition = row.get("partition", 0)
            self._once(place, "the offset of", f"{row['topic']}-{partition} in group {given['name']}")
            offsets.append(OffsetItem(place, row["topic"], partition, row["offset"], row.get("metadata", "")))
        self._load.groups.append(GroupItem(where, given["name"], offsets))

    def _user(self, where: Where, given: dict[str, Any]) -> None:
        self._once(where, "user", given["name"])
        self._load.users.append(UserItem(where, given["name"], given.get("password", "")))

    def _acl(self, where: Where, given: dict[str, Any]) -> None:
        words: dict[str, Any] = {
            name: plain(given[name]) for name in ("operation", "resource", "pattern", "permission") if name in given
        }
        self._load.acls.append(PlainItem(where, {**given, **words}))

    def _quota(self, where: Where, given: dict[str, Any]) -> None:
        entity = {
            name.replace("_", "-"): None if given[name] == fields.DEFAULT_ENTITY else given[name]
            for name in fields.ENTITIES
            if name in given
        }
        rates = {name: float(given[name]) for name in fields.RATES if name in given}
        self._once(where, "the quota of", " ".join(f"{kind} {name}" for kind, name in entity.items()))
        self._load.quotas.append(QuotaItem(where, entity, rates))

    def _clock(self, where: Where, given: dict[str, Any]) -> None:
        self._once(where, "the clock", "of the cluster")
        moment, advance = given.get("set"), given.get("advance")
        set_ms = None if moment is None else self._try(where, lambda: values.moment_ms(moment), "set")
        advance_ms = 0 if advance is None else self._try(where, lambda: values.duration_ms(advance), "advance") or 0
        self._load.clock = ClockItem(where, set_ms, advance_ms, given.get("freeze", False))

    def _schema(self, where: Where, given: dict[str, Any]) -> None:
        if "schema" in given and "file" in given:
            self.problems.append(where.problem("give schema or file, not both"))
            return
        if "file" in given:
            content = self._file(where, given["file"], "file")
            text = "" if content is None else content[1]
        else:
            schema = given["schema"]
            text = schema if isinstance(schema, str) else self._try(where, lambda: values.compact(schema), "schema")
        kind = given.get("type", "AVRO").upper()
        self._load.schemas.append(SchemaItem(where, given["subject"], kind, text or "", given.get("references", [])))
