"""What a registry answers beside its JSON, by the settings of its cluster: request ids, limits of size, the release."""

import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request

import pytest
from registry_client import MEDIA, RegistryClient

from momus import Broker

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
SMALL = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
OTHER = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "string"}]}


@pytest.fixture(scope="module")
def broker():
    with Broker(registry=True) as broker:  # without a journal, beside which no answer is kept as bytes
        yield broker


@pytest.fixture
def ids(registry):
    """A function (path, *ids of the request) -> status and id of the response, over one connection."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(registry.url).netloc, timeout=60)

    def ask(path, *given, origin=None):
        connection.putrequest("GET", path)
        if origin is not None:
            connection.putheader("Origin", origin)
        for each in given:
            connection.putheader("X-Request-ID", each)
        connection.endheaders()
        reply = connection.getresponse()
        assert len(reply.headers.get_all("X-Request-ID")) == 1
        reply.read()
        return reply.status, reply.headers["X-Request-ID"]

    yield ask
    connection.close()


@pytest.mark.parametrize(("path", "status"), [("/subjects", 200), ("/subjects/none/versions", 404), ("/none", 404)])
def test_request_is_named_in_its_response(ids, path, status):
    assert [ids(path, "mine-7") for _ in range(3)] == [(status, "mine-7")] * 3
    made = [ids(path) for _ in range(5)]  # the same bytes, whose answer is kept where there is one
    assert {each for each, _ in made} == {status}
    assert len({name for _, name in made}) == 5
    assert all(UUID.fullmatch(name) for _, name in made)


def test_id_that_cannot_be_sent_back_is_replaced(ids):
    for given in ("", "caf\xe9", "x" * 5000):
        assert UUID.fullmatch(ids("/subjects", given)[1])


def test_what_is_refused_before_it_is_read_is_named_too(ids):
    assert ids("/subjects", "mine", origin="http://elsewhere.example") == (403, "mine")


def test_schema_larger_than_a_record_may_be_is_refused_as_too_large(broker):
    with broker.create_cluster(config={"message.max.bytes": "900"}) as cluster:
        registry = RegistryClient(cluster.registry_url)
        assert registry.register("s", SMALL)["id"] == 1
        large = {**SMALL, "doc": "x" * 900}
        refused = (422, 42209, "Register operation failed because schema is too large")
        assert registry.register("s", large) == refused
        assert registry.ask("GET", "/subjects/s/versions") == [1]
        tags = {"tagsToAdd": [{"schemaEntity": {"entityPath": "R", "entityType": "sr_record"}, "tags": ["x" * 900]}]}
        assert registry.ask("POST", "/subjects/s/versions/1/tags", tags) == refused
        assert registry.register("s", {**SMALL, "doc": "x"})["id"] == 2


@pytest.mark.parametrize(("release", "code"), [(None, 409), ("8.0", 40901)])
def test_cluster_answers_as_its_release(broker, release, code):
    config = {} if release is None else {"registry.as": release}
    with broker.create_cluster(config=config) as cluster:
        registry = RegistryClient(cluster.registry_url)
        registry.register("s", SMALL)
        assert registry.register("s", OTHER)[:2] == (409, code)


def test_media_of_an_answer_is_what_was_accepted(registry):
    for wanted in (MEDIA, "application/json"):
        assert registry.ask("GET", "/subjects", Accept=wanted) == []


@pytest.mark.parametrize(("path", "method"), [("/subjects/s/versions", "POST"), ("/config", "PUT"), ("/mode", "PUT")])
@pytest.mark.parametrize("body", [b"", b"null", b" null\n"])
def test_body_of_nothing_is_refused_as_such(registry, path, method, body):
    request = urllib.request.Request(registry.url + path, body, {"Content-Type": MEDIA}, method=method)
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=60)
    with refusal.value as answer:
        assert answer.code == json.loads(answer.read())["error_code"] == 422


def test_head_is_answered_as_a_get_without_its_body(registry):
    registry.register("s", SMALL)
    for path, status in (("/subjects/s/versions", 200), ("/subjects/none/versions", 404)):
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(registry.url).netloc, timeout=60)
        for _ in range(2):  # over one connection: nothing of a body is left in it
            connection.request("HEAD", path)
            reply = connection.getresponse()
            assert (reply.status, reply.read()) == (status, b"")
        connection.close()


def test_nothing_is_answered_without_a_content_type(registry):
    registry.register(":.c:s", SMALL)
    for path in ("/subjects/:.c:s", "/subjects/:.c:s?permanent=true"):
        registry.ask("DELETE", path)
    request = urllib.request.Request(registry.url + "/contexts/.c", method="DELETE")
    with urllib.request.urlopen(request, timeout=60) as reply:
        assert (reply.status, reply.headers["Content-Type"], reply.read()) == (204, None, b"")
