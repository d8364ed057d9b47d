"""Numbers in schemas: one that would be given back as another one is refused, in what is new alone."""

from __future__ import annotations

import json

import pytest

from broker.registry.formats.checker import check
from broker.registry.jobs import Job, SchemaFaultError, Source


def schema(kind, number):
    if kind == "JSON":
        return f'{{"maximum":{number}}}'
    return f'{{"type":"record","name":"R","fields":[{{"name":"a","type":"double","default":{number}}}]}}'


def text_of(kind, number, version=0):
    return check(Job(Source(kind, schema(kind, number), version=version), is_new=version == 0), None).text


WRONG = {
    "NaN": "NaN is no number of JSON",
    "Infinity": "Infinity is no number of JSON",
    "-Infinity": "-Infinity is no number of JSON",
    "1e400": "the number 1e400 has no double",
    "1e-400": "the number 1e-400 has no double",
    "1e-9999999999999999999999": "the number 1e-9999999999999999999999 has no double",
    "1.123456789012345678901234567890": "has no double that is equal to it",
    "123456789012345678901234567890.5": "has no double that is equal to it",
    "1" * 5000: "it has a number of more than 4300 digits",
}


@pytest.mark.parametrize("kind", ["JSON", "AVRO"])
@pytest.mark.parametrize("number", WRONG)
def test_number_that_would_become_another_is_refused(kind, number):
    with pytest.raises(SchemaFaultError, match=WRONG[number]):
        text_of(kind, number)


@pytest.mark.parametrize("kind", ["JSON", "AVRO"])
@pytest.mark.parametrize("number", ["0.1", "1.0", "1E5", "-0.0", "1.50", "3.141592653589793", "1e308", "5e-324"])
def test_number_that_a_double_keeps_is_the_same_number(kind, number):
    found = json.loads(text_of(kind, number))
    assert (found["maximum"] if kind == "JSON" else found["fields"][0]["default"]) == float(number)


def test_whole_number_of_thirty_digits_is_kept_as_it_is_written():
    number = "123456789012345678901234567890"
    assert text_of("JSON", number) == schema("JSON", number)


def test_schema_that_is_stored_already_is_still_read():
    assert text_of("JSON", "1.123456789012345678901234567890", version=1)
