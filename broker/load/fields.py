"""The fields of a file that fills a cluster, declared once: what is checked, and what editors are told.

After a change: `momus load-schema | tee docs/load.schema.json > momus/load.schema.json`.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Final

from broker.authorization.access import OPERATION_NAMES
from broker.faults.kinds import KINDS
from broker.load.record_lines import FORMATS
from broker.load.shapes import Either, Fields, Flag, Items, Names, Number, Scalar, Shape, Whole, Words

VERSION: Final = "https://json-schema.org/draft/2020-12/schema"
RATES: Final = {
    "producer_byte_rate": "bytes a second",
    "consumer_byte_rate": "bytes a second",
    "request_percentage": "percent of one thread",
    "controller_mutation_rate": "partitions that are made or removed a second",
    "connection_creation_rate": "connections a second; of an ip alone",
}
ENTITIES: Final = ("user", "client_id", "ip")
DEFAULT_ENTITY: Final = "<default>"  # as kafka-configs shows it
OPERATIONS: Final = tuple(name.lower() for name in OPERATION_NAMES[2:])
RESOURCES: Final = ("topic", "group", "cluster", "transactional_id", "delegation_token", "user")
TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
_ENTITY: Final = f'"{DEFAULT_ENTITY}" is that of all others'
_DATA: Final = 'a text; null; {"base64": "..."}; an object, a list, a number, true or false is written as compact JSON'
_MOMENT: Final = Either(
    "Unix milliseconds, or an ISO time; without a zone it is UTC",
    {int: Whole(), str: Words(), datetime: Shape(), date: Shape()},
    "milliseconds or an ISO time",
)
_HEADERS: Final = Either(
    "an object, or [name, value] pairs where a name is there twice",
    {dict: Names(Shape(_DATA)), list: Items(Items(Shape(), "a pair"))},
    "an object or a list of [name, value]",
)

RECORD: Final = Fields(
    "One record.",
    key=Shape(_DATA),
    value=Shape(f"{_DATA}; without it null"),
    headers=_HEADERS,
    timestamp=_MOMENT,
    partition=Whole("without it by the key as Java's producer does; without a key one after the other", most=1 << 31),
)
# As `momus consume --json` writes them, too.
LINE: Final = RECORD.and_more(timestamp_ms=_MOMENT, topic=Shape("is not used"), offset=Shape("the same"))
TOPIC: Final = Fields(
    "One topic.",
    ("name",),
    name=Words("its name"),
    partitions=Whole("num.partitions of the broker unless given", 1, 10_000),
    replicas=Whole("default.replication.factor unless given; at most as many as there are brokers", 1, 32_767),
    config=Names(Scalar(), "Kafka's topic settings"),
    records=Items(RECORD, "in this order"),
    records_from=Words("a file beside this one with a record in each line, after those of `records`"),
    records_format=Words("of that file: by its ending unless given, .csv csv, .txt lines, others records", FORMATS),
    records_separator=Words("between key and value of `keyed`; : unless given"),
    records_key=Words("the column of `csv`, or the field of `values`, that is the key"),
)
GROUP: Final = Fields(
    "One group without members.",
    ("name", "offsets"),
    name=Words("its id"),
    offsets=Items(
        Fields(
            "One committed offset.",
            ("topic", "offset"),
            topic=Words("of this file, or there already"),
            partition=Whole("0 unless given", most=1 << 31),
            offset=Whole("the next one to read"),
            metadata=Words("a text of the consumer's", may_be_empty=True),
        )
    ),
)
USER: Final = Fields(
    "One user of a cluster that authenticates.",
    ("name",),
    name=Words("its name"),
    password=Words("without it the user is not made, unless certificates say who it is"),
)
ACL: Final = Fields(
    "One ACL, in the words of kafka-acls.",
    ("principal", "operation", "resource", "name"),
    principal=Words("User:alice"),
    operation=Words("what it is about", OPERATIONS),
    resource=Words("the kind", RESOURCES),
    name=Words("of the resource; * is all; of the cluster: kafka-cluster"),
    pattern=Words("literal unless given", ("literal", "prefixed")),
    permission=Words("allow unless given", ("allow", "deny")),
    host=Words("* unless given"),
)
QUOTA: Final = Fields(
    "Quotas of a user, of a client id, of both together, or of an address.",
    (),
    (ENTITIES, tuple(RATES)),
    user=Words(_ENTITY),
    client_id=Words(_ENTITY),
    ip=Words(_ENTITY),
    **{name: Number(about) for name, about in RATES.items()},
)


class _Fault(Shape):
    """A fault: broker/faults/ checks the whole of it."""

    def check(self, value: Any, path: Any, report: Any) -> None:
        if not isinstance(value, dict):
            report(path, "takes an object")

    def schema(self) -> dict[str, object]:
        kinds = {"enum": list(KINDS)}
        return {"type": "object", "properties": {"fault": kinds}, "required": ["fault"], "description": self.about}


CLOCK: Final = Fields(
    "The cluster's clock, before anything is loaded: set, then advance, then freeze.",
    set=_MOMENT,
    advance=Words("so much later: 90s, 8d, 1h30m, 250ms"),
    freeze=Flag("it stands"),
)
SCHEMA: Final = Fields(
    "One schema of the registry inside.",
    ("subject",),
    (("schema", "file"),),
    subject=Words("orders-value"),
    type=Words("AVRO unless given", TYPES),
    schema=Either(
        "the schema: a text; an object or a list is written as JSON",
        {str: Words(), dict: Shape(), list: Shape()},
        "a text, an object or a list",
    ),
    file=Words("a file beside this one that holds the schema"),
    references=Items(
        Fields(
            "What it refers to.",
            ("name", "subject", "version"),
            name=Words("as the schema calls it"),
            subject=Words("where it is"),
            version=Whole("of that subject", 1, (1 << 31) - 1),
        )
    ),
)
FILE: Final = Fields(
    "What a momus broker is filled with: `momus serve --load`, `Broker(load=...)`, @pytest.mark.momus(load=...).",
    __schema=Words("the address of this schema, for editors"),
    topics=Items(TOPIC, "topics with their records"),
    groups=Items(GROUP, "groups with the offsets that they have committed"),
    users=Items(USER, "users with passwords"),
    acls=Items(ACL, "ACLs, of a cluster with an authorizer"),
    quotas=Items(QUOTA, "quotas of clients"),
    faults=Items(_Fault("as docs/faults.md has them"), "faults that act once all else is loaded"),
    clock=CLOCK,
    schemas=Items(SCHEMA, "schemas, in this order"),
    not_dumped=Items(Words(), "what `momus dump` could not read; it loads nothing"),
)


def json_schema() -> dict[str, object]:
    """The whole as JSON Schema."""
    return {"$schema": VERSION, "title": "momus load", **FILE.schema()}
