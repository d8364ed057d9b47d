"""The examples of Confluent's documentation: each request with the answer that is printed below it.

Sources: the quick start of its repository's README ("README"); "Using Schema Registry" ("using"); "Schema Registry API
Reference" ("api"); the Schema Registry Tutorial ("tutorial"); "Schema Evolution and Compatibility" ("evolution"); the
operations are those of its OpenAPI document of 8.5. An answer may have fields that the documentation of its time does
not know (guid, version); lists of subjects are printed in no order.
"""

from __future__ import annotations

import json

import pytest

from broker.registry.routes import find, words_of

STRING = {"schema": '{"type": "string"}'}
LATEST = "/compatibility/subjects/{}/versions/latest"


def named(name, *fields, **more):
    """A request with a record's schema, spelt as the documents spell it."""
    rows = [{"name": field, "type": kind, **rest} for field, kind, *given in fields for rest in (given or [{}])]
    return {"schema": json.dumps({"type": "record", "name": name, "fields": rows, **more})}


TEST = named("test", ("field1", "string"), ("field2", "int"))
SHOP = {"namespace": "io.confluent.examples.clients.basicavro"}
PAID = (("id", "string"), ("amount", "double"))
PAYMENT = named("Payment", *PAID, **SHOP)
PAYMENT_2A = named("Payment", *PAID, ("region", "string"), **SHOP)
PAYMENT_2B = named("Payment", *PAID, ("region", "string", {"default": ""}), **SHOP)
USER = (("name", "string"), ("favorite_number", "int"))
COLOUR = ("favorite_color", "string", {"default": "green"})
OF_USER = {"namespace": "example.avro"}


def text(request):
    """The schema as it is kept: without spaces, name and namespace before the fields."""
    tree = json.loads(request["schema"])
    ordered = {key: tree[key] for key in ("type", "name", "namespace", "fields") if key in tree}
    return json.dumps(ordered, separators=(",", ":"))


README = [
    ("POST", "/subjects/Kafka-key/versions", STRING, {"id": 1}),
    ("POST", "/subjects/Kafka-value/versions", STRING, {"id": 1}),
    ("GET", "/subjects", None, ["Kafka-value", "Kafka-key"]),
    ("GET", "/subjects/Kafka-value/versions", None, [1]),
    ("GET", "/schemas/ids/1", None, {"schema": '"string"'}),
    (
        "GET",
        "/subjects/Kafka-value/versions/1",
        None,
        {"subject": "Kafka-value", "version": 1, "id": 1, "schema": '"string"'},
    ),
    (
        "GET",
        "/subjects/Kafka-value/versions/latest",
        None,
        {"subject": "Kafka-value", "version": 1, "id": 1, "schema": '"string"'},
    ),
    ("POST", "/subjects/Kafka-key", STRING, {"subject": "Kafka-key", "version": 1, "id": 1, "schema": '"string"'}),
    ("POST", LATEST.format("Kafka-value"), STRING, {"is_compatible": True}),
    ("GET", "/config", None, {"compatibilityLevel": "BACKWARD"}),
    ("PUT", "/config", {"compatibility": "NONE"}, {"compatibility": "NONE"}),
    ("PUT", "/config/Kafka-value", {"compatibility": "BACKWARD"}, {"compatibility": "BACKWARD"}),
]
# A subject with three and with five versions, as its readers have to imagine.
README_DELETIONS = [
    ("PUT", "/config", {"compatibility": "NONE"}, {"compatibility": "NONE"}),
    *(
        ("POST", "/subjects/Kafka-value/versions", named("test", (f"f{number}", "int")), {"id": number})
        for number in range(1, 4)
    ),
    ("DELETE", "/subjects/Kafka-value/versions/3", None, 3),
    *(
        ("POST", "/subjects/others-value/versions", named("test", (f"f{number}", "int")), {"version": number})
        for number in range(1, 6)
    ),
    ("DELETE", "/subjects/others-value", None, [1, 2, 3, 4, 5]),
]
USING = [
    ("POST", "/subjects/Kafka-key/versions", STRING, {"id": 1}),
    ("POST", "/subjects/Kafka-value/versions", STRING, {"id": 1}),
    ("DELETE", "/subjects/Kafka-value/versions/1", None, 1),
    ("POST", "/subjects/Kafka-value/versions", STRING, {"id": 1}),
    ("DELETE", "/subjects/Kafka-value/versions/latest", None, 2),
    ("POST", "/subjects/Kafka-value/versions", STRING, {"id": 1}),
    ("GET", "/schemas/ids/1", None, {"schema": '"string"'}),
    ("POST", LATEST.format("Kafka-value"), STRING, {"is_compatible": True}),
    ("PUT", "/config", {"compatibility": "NONE"}, {"compatibility": "NONE"}),
    ("DELETE", "/subjects/Kafka-value", None, [3]),
    ("GET", "/subjects", None, ["Kafka-key"]),
]
API = [
    ("POST", "/subjects/test/versions", TEST, {"id": 1}),
    ("POST", "/subjects/test", TEST, {"subject": "test", "id": 1, "version": 1, "schema": text(TEST)}),
    ("POST", LATEST.format("test"), TEST, {"is_compatible": True}),
    ("GET", "/schemas/ids/1", None, {"schema": text(TEST)}),
    ("GET", "/subjects/test/versions/1/schema", None, text(TEST)),
    ("PUT", "/config", {"compatibility": "FULL"}, {"compatibility": "FULL"}),
    ("GET", "/config", None, {"compatibilityLevel": "FULL"}),
    ("PUT", "/config/test", {"compatibility": "FULL"}, {"compatibility": "FULL"}),
    ("GET", "/config/test", None, {"compatibilityLevel": "FULL"}),
    ("DELETE", "/subjects/test/versions/1", None, 1),
]
TUTORIAL = [
    ("POST", "/subjects/transactions-value/versions", PAYMENT, {"id": 1}),
    ("GET", "/subjects", None, ["transactions-value"]),
    (
        "GET",
        "/subjects/transactions-value/versions/latest",
        None,
        {"subject": "transactions-value", "version": 1, "id": 1, "schema": text(PAYMENT)},
    ),
    ("GET", "/schemas/ids/1", None, {"schema": text(PAYMENT)}),
    ("POST", LATEST.format("transactions-value"), PAYMENT_2A, {"is_compatible": False}),
    ("POST", "/subjects/transactions-value/versions", PAYMENT_2A, 409),
    ("POST", "/subjects/transactions-value/versions", PAYMENT_2B, {"id": 2}),
    (
        "GET",
        "/subjects/transactions-value/versions/latest",
        None,
        {"subject": "transactions-value", "version": 2, "id": 2, "schema": text(PAYMENT_2B)},
    ),
]


def evolved(level, new, fits):
    """Whether a change of the user's schema is taken at a level."""
    return [
        ("PUT", "/config", {"compatibility": level}, {"compatibility": level}),
        ("POST", "/subjects/user/versions", named("user", *USER, **OF_USER), {"id": 1}),
        ("POST", LATEST.format("user"), named("user", *new, **OF_USER), {"is_compatible": fits}),
    ]


EXAMPLES = {
    "README": README,
    "README, deletions": README_DELETIONS,
    "using": USING,
    "api": API,
    "tutorial": TUTORIAL,
    "evolution, a field with a default is compatible backward": evolved("BACKWARD", (*USER, COLOUR), True),
    "evolution, without it it is not": evolved("BACKWARD", (*USER, COLOUR[:2]), False),
    "evolution, a removed field is compatible backward": evolved("BACKWARD", USER[:1], True),
    "evolution, a new field is compatible forward": evolved("FORWARD", (*USER, COLOUR), True),
    "evolution, so is one without a default": evolved("FORWARD", (*USER, COLOUR[:2]), True),
    "evolution, a removed field without a default is not": evolved("FORWARD", USER[:1], False),
    "evolution, a new field with a default is fully compatible": evolved("FULL", (*USER, COLOUR), True),
    "evolution, one without it is not": evolved("FULL", (*USER, COLOUR[:2]), False),
    "evolution, NONE takes another type": evolved("NONE", (("name", "int"),), True),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_documented_example_is_answered_as_it_is_printed(registry, name):
    for method, path, body, printed in EXAMPLES[name]:
        answer = registry.ask(method, path, body)
        if isinstance(printed, dict):
            assert isinstance(answer, dict), (path, answer)
            assert {key: answer[key] for key in printed} == printed, path
        elif path == "/subjects":
            assert sorted(answer) == sorted(printed)
        elif printed == 409:
            assert answer[:2] == (409, 409)
            assert answer[2].startswith("Schema being registered is incompatible with an earlier schema")
            assert "'region'" in answer[2]
        else:
            assert answer == printed, path


OPERATIONS = [
    # method, path with a subject and a version that are there or not, body, the code that is listed for it
    ("GET", "/schemas/ids/99", None, 40403),
    ("GET", "/schemas/ids/99/schema", None, 40403),
    ("GET", "/schemas/ids/99/subjects", None, 40403),
    ("GET", "/schemas/ids/99/versions", None, 40403),
    ("GET", "/subjects/none/versions", None, 40401),
    ("DELETE", "/subjects/none", None, 40401),
    ("GET", "/subjects/none/versions/1", None, 40401),
    ("GET", "/subjects/test/versions/99", None, 40402),
    ("GET", "/subjects/test/versions/0", None, 42202),
    ("GET", "/subjects/none/versions/1/schema", None, 40401),
    ("GET", "/subjects/test/versions/99/schema", None, 40402),
    ("GET", "/subjects/test/versions/abc/schema", None, 42202),
    ("GET", "/subjects/none/versions/1/referencedby", None, 40401),
    ("GET", "/subjects/test/versions/99/referencedby", None, 40402),
    ("POST", "/subjects/test/versions", named("other", ("f", "int")), 409),
    ("POST", "/subjects/test/versions", {"schema": "{"}, 42201),
    ("POST", "/subjects/none", TEST, 40401),
    ("POST", "/subjects/test", STRING, 40403),
    ("DELETE", "/subjects/none/versions/1", None, 40401),
    ("DELETE", "/subjects/test/versions/99", None, 40402),
    ("DELETE", "/subjects/test/versions/abc", None, 42202),
    ("POST", "/compatibility/subjects/test/versions/99", TEST, 40402),
    ("POST", "/compatibility/subjects/test/versions/1", {"schema": "{"}, 42201),
    ("POST", "/compatibility/subjects/test/versions/abc", TEST, 42202),
    ("PUT", "/config", {"compatibility": "SOMETIMES"}, 42203),
    ("PUT", "/config/test", {"compatibility": "SOMETIMES"}, 42203),
    ("GET", "/config/none", None, 40408),
    ("PUT", "/mode", {"mode": "SOMETIMES"}, 42204),
    ("PUT", "/mode/test", {"mode": "IMPORT"}, 42205),
]


@pytest.mark.parametrize(("method", "path", "body", "code"), OPERATIONS)
def test_documented_code_is_what_the_operation_is_refused_by(registry, method, path, body, code):
    registry.register("test", TEST["schema"])
    status, found, message = registry.ask(method, path, body)
    assert (status, found) == (int(str(code)[:3]), code)
    assert message


# Each operation of the OpenAPI document.
SERVED = """
GET / POST / GET /config PUT /config DELETE /config GET /config/s PUT /config/s DELETE /config/s GET /contexts GET /mode
PUT /mode DELETE /mode GET /mode/s PUT /mode/s DELETE /mode/s GET /schemas GET /schemas/ids/1 GET /schemas/ids/1/schema
GET /schemas/ids/1/subjects GET /schemas/ids/1/versions GET /schemas/types GET /schemas/guids/x GET /schemas/guids/x/ids
GET /subjects POST /subjects/s DELETE /subjects/s GET /subjects/s/versions POST /subjects/s/versions
GET /subjects/s/versions/1 DELETE /subjects/s/versions/1 GET /subjects/s/versions/1/referencedby
GET /subjects/s/versions/1/schema GET /subjects/s/metadata GET /v1/metadata/version
GET /v1/metadata/id GET /v1/metadata/deployment DELETE /contexts/c
POST /compatibility/subjects/s/versions/1 POST /compatibility/subjects/s/versions
GET /associations/resources/r GET /associations/resources/n/r GET /associations/subjects/s POST /associations
POST /associations:batchGet POST /associations:batchMutate PUT /associations/resources/r
DELETE /associations/resources/r
"""


def operations(rows):
    words = rows.split()
    return list(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(("method", "path"), operations(SERVED))
def test_documented_operation_is_served(method, path):
    route, _ = find(method, words_of(path))
    assert route.method == method
