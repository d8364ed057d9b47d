"""The table of paths: what is served, by which function, and what a user needs for it.

A path is matched word by word; its words in braces are given to the function. `needs` is what an authorizer is asked:
an operation on the topic that the subject is of, or on the cluster.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.registry.errors import of_http, unserved

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.registry.jobs import Ask, Decision, Parts, Steps
    from broker.registry.state import RegistryState

    Serve = Callable[[RegistryState, Ask], Decision | Steps]
    ServeParts = Callable[[Ask], Parts]

DESCRIBE, WRITE, DELETE, ALTER, NOTHING = "describe", "write", "delete", "alter", ""
REASONS: Final = {404: "Not Found", 405: "Method Not Allowed"}


class Route(NamedTuple):
    """One method of one path.

    api      the name by which faults and the journal know it.
    target   "module:function" of this folder, imported when first asked for.
    needs    DESCRIBE, WRITE or DELETE on the subject's topic, ALTER on the cluster, or NOTHING.
    writes   whether it may append to `_schemas`: one such request is served after the other.
    parted   whether its parts are decided and written one after the other: its function yields them.
    status   of HTTP, where it has been served and there is an answer.
    """

    method: str
    path: str
    api: str
    target: str
    needs: str
    writes: bool = False
    parted: bool = False
    status: int = 200

    @property
    def is_of_association(self) -> bool:
        """Whether it is about associations, which releases before 8.0 have not."""
        return self.path.startswith("/associations")

    @property
    def draws(self) -> bool:
        """Whether it makes ids of random bytes."""
        return self.is_of_association and self.writes

    @property
    def is_of_subject(self) -> bool:
        """Whether it is about schemas of a subject, which an alias may name; config and mode are the alias's own."""
        return "subjects/{subject}" in self.path

    def load(self) -> Serve:
        """Its function, of one that is not parted."""
        found: Serve = self._load()
        return found

    def load_parts(self) -> ServeParts:
        """Its function, of one that is parted."""
        found: ServeParts = self._load()
        return found

    def _load(self) -> Any:
        module, _, name = self.target.partition(":")
        return getattr(import_module(f"{__package__}.{module}"), name)


ROUTES: Final = (
    Route("GET", "/", "Root", "reading:get_nothing", NOTHING),
    Route("POST", "/", "Root", "reading:get_nothing", NOTHING),
    Route("GET", "/subjects", "ListSubjects", "reading:list_subjects", DESCRIBE),
    Route("POST", "/subjects/{subject}", "LookUpSchema", "registering.lookup:look_up", DESCRIBE),
    Route("DELETE", "/subjects/{subject}", "DeleteSubject", "deletion:delete_subject", DELETE, True),
    Route("GET", "/subjects/{subject}/metadata", "GetByMetadata", "reading:get_by_metadata", DESCRIBE),
    Route("GET", "/subjects/{subject}/versions", "ListVersions", "reading:list_versions", DESCRIBE),
    Route("POST", "/subjects/{subject}/versions", "RegisterSchema", "registering.register:register", WRITE, True),
    Route("GET", "/subjects/{subject}/versions/{version}", "GetVersion", "reading:get_version", DESCRIBE),
    Route("DELETE", "/subjects/{subject}/versions/{version}", "DeleteVersion", "deletion:delete_version", DELETE, True),
    Route("GET", "/subjects/{subject}/versions/{version}/schema", "GetVersion", "reading:get_version_text", DESCRIBE),
    Route(
        "GET", "/subjects/{subject}/versions/{version}/referencedby", "GetReferrers", "reading:get_referrers", DESCRIBE
    ),
    Route("POST", "/subjects/{subject}/versions/{version}/tags", "TagSchema", "registering.register:tag", WRITE, True),
    Route("GET", "/schemas", "ListSchemas", "reading:list_schemas", DESCRIBE),
    Route("GET", "/schemas/types", "ListTypes", "reading:list_types", NOTHING),
    Route("GET", "/schemas/ids/{id}", "GetSchema", "reading:get_schema", DESCRIBE),
    Route("GET", "/schemas/ids/{id}/schema", "GetSchema", "reading:get_schema_text", DESCRIBE),
    Route("GET", "/schemas/ids/{id}/subjects", "ListSubjectsOfId", "reading:get_subjects_of_id", DESCRIBE),
    Route("GET", "/schemas/ids/{id}/versions", "ListVersionsOfId", "reading:get_versions_of_id", DESCRIBE),
    Route("GET", "/schemas/guids/{guid}", "GetSchema", "reading:get_by_guid", DESCRIBE),
    Route("GET", "/schemas/guids/{guid}/ids", "ListIdsOfGuid", "reading:get_ids_of_guid", DESCRIBE),
    Route(
        "POST",
        "/compatibility/subjects/{subject}/versions/{version}",
        "TestCompatibility",
        "registering.register:test_version",
        DESCRIBE,
    ),
    Route(
        "POST",
        "/compatibility/subjects/{subject}/versions",
        "TestCompatibility",
        "registering.register:test_all",
        DESCRIBE,
    ),
    Route("GET", "/config", "GetConfig", "settings:get_config", NOTHING),
    Route("PUT", "/config", "PutConfig", "settings:put_config", ALTER, True),
    Route("DELETE", "/config", "DeleteConfig", "settings:delete_config", ALTER, True),
    Route("GET", "/config/{subject}", "GetConfig", "settings:get_config", DESCRIBE),
    Route("PUT", "/config/{subject}", "PutConfig", "settings:put_config", ALTER, True),
    Route("DELETE", "/config/{subject}", "DeleteConfig", "settings:delete_config", ALTER, True),
    Route("GET", "/mode", "GetMode", "settings:get_mode", NOTHING),
    Route("PUT", "/mode", "PutMode", "settings:put_mode", ALTER, True),
    Route("DELETE", "/mode", "DeleteMode", "settings:delete_mode", ALTER, True),
    Route("GET", "/mode/{subject}", "GetMode", "settings:get_mode", DESCRIBE),
    Route("PUT", "/mode/{subject}", "PutMode", "settings:put_mode", ALTER, True),
    Route("DELETE", "/mode/{subject}", "DeleteMode", "settings:delete_mode", ALTER, True),
    Route("GET", "/contexts", "ListContexts", "reading:list_contexts", NOTHING),
    Route("DELETE", "/contexts/{context}", "DeleteContext", "settings:delete_context", ALTER, True),
    Route(
        "GET",
        "/associations/subjects/{subject}",
        "ListAssociations",
        "associations.reading:list_of_subject",
        DESCRIBE,
    ),
    Route(
        "GET",
        "/associations/resources/{resourceId}",
        "ListAssociations",
        "associations.reading:list_of_resource",
        DESCRIBE,
    ),
    Route(
        "GET",
        "/associations/resources/{resourceNamespace}/{resourceName}",
        "ListAssociations",
        "associations.reading:list_of_name",
        DESCRIBE,
    ),
    Route("POST", "/associations", "CreateAssociation", "associations.changing:create", WRITE, True),
    Route("PUT", "/associations/resources/{resourceId}", "PutAssociation", "associations.changing:put", WRITE, True),
    Route(
        "DELETE",
        "/associations/resources/{resourceId}",
        "DeleteAssociations",
        "associations.changing:delete",
        DELETE,
        True,
    ),
    Route("POST", "/associations:batchGet", "GetAssociations", "associations.batch:get", DESCRIBE, status=207),
    Route(
        "POST",
        "/associations:batchMutate",
        "ChangeAssociations",
        "associations.batch:mutate",
        WRITE,
        True,
        parted=True,
        status=207,
    ),
    Route("GET", "/v1/metadata/version", "GetServerVersion", "reading:get_version_of_server", NOTHING),
    Route("GET", "/v1/metadata/id", "GetServerId", "reading:get_server_id", NOTHING),
    Route("GET", "/v1/metadata/deployment", "GetDeployment", "reading:get_deployment", NOTHING),
)
UNSERVED: Final = {
    "dek-registry": "encryption keys",
    "exporters": "exporters",
    "catalog": "the catalog",
    "v1": "other metadata of the server",
}


def find(method: str, words: list[str]) -> tuple[Route, dict[str, str]]:
    """The route of a request, and the words in braces of its path. Errors: RegistryError."""
    is_there = False
    for route, pattern in _PATTERNS.get((len(words), words[0] if words else ""), ()):
        named = _matched(pattern, words)
        if named is not None:
            if route.method == method:
                return route, named
            is_there = True
    if words and words[0] in UNSERVED and not is_there:
        raise unserved(UNSERVED[words[0]])
    status = 405 if is_there else 404
    raise of_http(status, REASONS[status])


def _matched(pattern: list[str], words: list[str]) -> dict[str, str] | None:
    """The words in braces; both have the same number of words, and the same first one. None: they differ."""
    named = {}
    for mine, word in zip(pattern, words, strict=True):
        if mine[:1] == "{":
            named[mine[1:-1]] = word
        elif mine != word:
            return None
    return named


def words_of(path: str) -> list[str]:
    """The words of a path, still quoted; a subject's name may hold a quoted slash."""
    return [word for word in path.split("/") if word]


def _patterns() -> dict[tuple[int, str], list[tuple[Route, list[str]]]]:
    """The words of each path, by their number and the first of them."""
    found: dict[tuple[int, str], list[tuple[Route, list[str]]]] = {}
    for route in ROUTES:
        words = words_of(route.path)
        found.setdefault((len(words), words[0] if words else ""), []).append((route, words))
    return found


_PATTERNS: Final = _patterns()
