"""The table of routes: what each one takes and answers, and how a request finds its handler.

A route belongs to the process or to a cluster. A handler is `async handler(owner, call)`; its owner is the Process or a
ClusterServer. A route of a cluster is declared once, "/clock", and served twice: below /_admin/clusters/NAME, and below
/_admin for the cluster "default".

Bodies are declared as shapes: a type (`int`, `str`, `bool`, `float`, `dict`), BYTES, a list with the shape of its
items, a dict of fields, a dict with the key "*" for any names, Told(shape, name) for what is described further in
schemas.py, or Optional_(shape) for a field that may be left out. They are checked before the handler is called. An
answer is described by the type that its handler returns, to which the type checker holds the handler.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.shell.cluster_plan import ClusterRefusedError, UnknownSnapshotError
from broker.shell.cluster_server import DEFAULT_CLUSTER

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

CLUSTER_PREFIX: Final = "/_admin/clusters/{cluster}"
DEFAULT_PREFIX: Final = "/_admin"
SLICE: Final = 500  # items of a body that are checked before others have their turn

Handler = Callable[[Any, "Call"], Awaitable[Any]]
Shape = Any
CHECK: Final = "false: answer 200 though it is not met"
_NAMES: Final = {int: "a whole number", str: "a text", bool: "true or false", float: "a number", dict: "an object"}


class Process(Protocol):
    """What routes use of the process."""

    clusters: dict[str, ClusterServer]

    async def create(
        self,
        name: str | None,
        config: Mapping[str, str],
        *,
        listen: str,
        brokers: int,
        flush: str,
        seed: int | None,
        at_ms: int | None,
        journal_bytes: int | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
    ) -> ClusterServer: ...
    async def fork(
        self, source: ClusterServer, name: str | None, *, snapshot: str | None = None, listen: str | None = None
    ) -> ClusterServer: ...
    async def remove(self, name: str) -> None: ...
    def refuses(self, method: str, path: str) -> str | None: ...
    async def open_registry(self, cluster: ClusterServer, host: str, port: int) -> str: ...


class RefusedError(Exception):
    """A request that is answered with an error and an HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.seen: Mapping[str, Any] = {}  # what is answered beside the error


class Optional_:  # noqa: N801  # reads as the type that it stands for
    """The shape of a field that may be left out."""

    __slots__ = ("shape",)

    def __init__(self, shape: Shape) -> None:
        self.shape = shape


BYTES: Final = object()  # the shape of a text, null or {"base64": "..."}, which its handler checks


class Told:
    """The shape of a value that its handler checks further, by its name in schemas.py."""

    __slots__ = ("name", "shape")

    def __init__(self, shape: Shape, name: str) -> None:
        self.shape = shape  # what is checked before the handler is called
        self.name = name


class Text:
    """An answer that is not JSON, such as that of /metrics."""

    __slots__ = ("body", "fields", "media")

    def __init__(self, media: str, body: bytes, fields: Mapping[str, str] | None = None) -> None:
        self.media = media  # its Content-Type
        self.body = body
        self.fields = fields or {}  # further ones of the head


class Stream:
    """An answer that goes on until the client hangs up. The next piece is made when the one before has been taken."""

    __slots__ = ("media", "pieces")

    def __init__(self, media: str, pieces: AsyncGenerator[bytes, None]) -> None:
        self.media = media
        self.pieces = pieces


class Call:
    """One request to a route."""

    __slots__ = ("body", "query", "words")

    def __init__(self, words: dict[str, str], query: dict[str, str], body: dict[str, Any]) -> None:
        self.words = words  # by the names in the route's path
        self.query = query
        self.body = body


class Route:
    """One method of one path.

    path     "/brokers/{id}/stop"; of a cluster: without the prefix.
    handler  a function, or "module:function" of the folder calls, which is imported with the first call; a module of
             another folder with its whole name.
    about    one sentence, for the index and the OpenAPI description.
    body     the shape of the JSON object that is sent; None: none is.
    query    the parameters after the path: name -> what it is for.
    media    the Content-Type of an answer that is not JSON.
    example  a body that works, for the description.
    errors   HTTP status -> when it is answered, beyond those that the path, the query and the body imply.
    unmet    the status where the answer's "met" is false, its "why" as the error; not if the query has check=false.
    name     of the operation, for the description; that of the handler's function unless given.
    tag      what it is about, for the description: set by whoever adds it.
    """

    __slots__ = (
        *("_handler", "about", "body", "errors", "example", "media", "method", "name", "path", "query", "tag"),
        "unmet",
    )

    def __init__(
        self,
        method: str,
        path: str,
        handler: Handler | str,
        about: str,
        *,
        body: Shape = None,
        query: dict[str, str] | None = None,
        example: Mapping[str, object] | None = None,
        errors: dict[int, str] | None = None,
        unmet: int | None = None,
        name: str | None = None,
        media: str = "",
    ) -> None:
        self.tag = ""
        self.name = name or (handler if isinstance(handler, str) else handler.__name__).rpartition(":")[2].strip("_")
        self.errors = errors or {}
        self.method = method
        self.path = path
        self._handler = handler
        self.about = about
        self.body = body
        self.query = query or {}
        self.media = media
        self.unmet = unmet
        if unmet is not None:
            self.query = {**self.query, "check": CHECK}
            self.errors = {unmet: 'what was waited for is not so: "met" is false, and "why" says it', **self.errors}
        self.example = example

    def load(self) -> Handler:
        """The handler, imported if it is not yet."""
        if isinstance(self._handler, str):
            module, _, name = self._handler.partition(":")
            place = module if "." in module else f"{__package__}.calls.{module}"
            self._handler = getattr(importlib.import_module(place), name)
        handler: Any = self._handler
        return handler  # type: ignore[no-any-return]  # what the table names is a handler


class ServedPath:
    """A path that is served: its methods, and which of them belong to a cluster."""

    __slots__ = ("methods", "of_cluster", "path", "words")

    def __init__(self, path: str) -> None:
        self.path = path
        self.of_cluster: set[str] = set()
        self.words = path.strip("/").split("/")
        self.methods: dict[str, Route] = {}

    def match(self, words: list[str]) -> dict[str, str] | None:
        """The values of the names in the path, of as many words; None: another path."""
        found = {}
        for mine, word in zip(self.words, words, strict=True):
            if mine[:1] == "{":
                found[mine[1:-1]] = word
            elif mine != word:
                return None
        return found


class Routes:
    """All routes, in the order in which they were added."""

    def __init__(self) -> None:
        self.places: dict[str, ServedPath] = {}
        self._of_length: dict[int, list[ServedPath]] = {}  # by the number of words in the path

    def add_of_process(self, routes: Iterable[Route]) -> None:
        """Serve routes of the process."""
        for route in routes:
            self._add(route.path, route, of_cluster=False)

    def add_of_cluster(self, routes: Iterable[Route]) -> None:
        """Serve routes of each cluster, and of the default one below the short prefix."""
        for route in routes:
            self._add(CLUSTER_PREFIX + route.path, route, of_cluster=True)
            if route.path:
                self._add(DEFAULT_PREFIX + route.path, route, of_cluster=True)

    def _add(self, path: str, route: Route, *, of_cluster: bool) -> None:
        place = self.places.get(path)
        if place is None:
            place = self.places[path] = ServedPath(path)
            self._of_length.setdefault(len(place.words), []).append(place)
        assert route.method not in place.methods, f"{route.method} {path} is there twice"
        place.methods[route.method] = route
        if of_cluster:
            place.of_cluster.add(route.method)

    async def serve(self, process: Process, method: str, target: str, body: dict[str, Any]) -> Any:
        """Call the handler of a request. Errors: RefusedError, and what the handler raises."""
        path, _, query = target.partition("?")
        words = path.strip("/").split("/")
        if "%" in path:
            from urllib.parse import unquote  # 2 ms: few names need it

            words = [unquote(word) for word in words]
        for place in self._of_length.get(len(words), ()):
            found = place.match(words)
            if found is not None:
                break
        else:
            raise RefusedError(404, f"no such path: {path}; GET / lists them")
        route = place.methods.get(method)
        if route is None:
            raise RefusedError(405, f"{path} takes {' and '.join(place.methods)}")
        if route.body is None:
            if body:
                first = ", ".join(name for name, _ in zip(body, range(20), strict=False))
                raise RefusedError(400, f"no fields are expected here, but got {first:.100}")
        else:
            for _ in checking("", route.body, body):
                await asyncio.sleep(0)
        call = Call(found, _parse_query(route, query), body)
        owner: Any = process
        is_of_cluster = method in place.of_cluster
        if is_of_cluster:
            owner = find_cluster(process, call.words.get("cluster", DEFAULT_CLUSTER))
        if (sentence := owner.refuses(method, route.path)) is not None:
            raise RefusedError(501, sentence)
        if is_of_cluster and owner.recording is not None:
            owner.recording.called(method, _path(route, found), body, owner.clock.now_ms())
        try:
            handle = (owner.instead(method, route.path) if is_of_cluster else None) or route.load()
            return _checked(route, call, await handle(owner, call))
        except ClusterRefusedError as error:
            raise RefusedError(404 if isinstance(error, UnknownSnapshotError) else 409, str(error)) from None


def _checked(route: Route, call: Call, answer: Any) -> Any:
    """The answer, unless it says that something is not met. Errors: RefusedError, with all that was seen."""
    asked = call.query.get("check", "true")
    if asked not in ("true", "false"):
        raise RefusedError(400, f'"check" is true or false, not {asked:.20}')
    if route.unmet is not None and asked == "true" and not answer["met"]:
        refusal = RefusedError(route.unmet, answer["why"])
        refusal.seen = answer
        raise refusal
    return answer


def _path(route: Route, words: dict[str, str]) -> str:
    """The path of a call within its cluster, as a client asks for it."""
    from urllib.parse import quote  # 2 ms: few clusters are recorded

    return route.path.format(**{name: quote(word, safe="") for name, word in words.items()})


def find_cluster(process: Process, name: str) -> ClusterServer:
    """A cluster by its name. Errors: RefusedError."""
    cluster = process.clusters.get(name)
    if cluster is None:
        known = ", ".join(list(process.clusters)[:10])
        raise RefusedError(404, f"no such cluster: {name:.100}; there are {known or 'none'}")
    return cluster


def _parse_query(route: Route, query: str) -> dict[str, str]:
    if not query:
        return {}
    from urllib.parse import parse_qsl  # 2 ms: few requests have parameters

    found = dict(parse_qsl(query, keep_blank_values=True))
    for name in found:
        if name not in route.query:
            known = ", ".join(route.query)
            raise RefusedError(400, f"no such parameter: {name:.100}; there are {known or 'none'}")
    return found


def checking(where: str, shape: Shape, value: Any) -> Iterator[None]:
    """Check a value against a shape, in slices of SLICE items. Errors: RefusedError."""
    if isinstance(shape, Optional_):
        shape = shape.shape
    if isinstance(shape, Told):
        shape = shape.shape
    if shape is BYTES:
        return
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise RefusedError(400, f'"{where}" takes a list')
        for index, item in enumerate(value, 1):
            yield from checking(f"{where}[{index - 1}]", shape[0], item)
            if index % SLICE == 0:
                yield
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            raise RefusedError(400, f'"{where}" takes an object')
        yield from _checking_fields(where, shape, value)
    elif type(value) is not shape and not (shape is float and type(value) is int):
        unit = " of milliseconds" if where.endswith("_ms") else ""
        raise RefusedError(400, f'"{where}" takes {_NAMES[shape]}{unit}')


def _checking_fields(where: str, shape: dict[str, Shape], value: Mapping[str, object]) -> Iterator[None]:
    prefix = f"{where}." if where else ""
    any_name = shape.get("*")
    for number, (name, item) in enumerate(value.items(), 1):
        wanted = shape.get(name, any_name)
        if wanted is None:
            raise RefusedError(400, f'no such field: "{prefix}{name:.100}"; there are {", ".join(shape)}')
        yield from checking(prefix + name, wanted, item)
        if number % SLICE == 0:
            yield
    for name, wanted in shape.items():
        if name not in value and name != "*" and not isinstance(wanted, Optional_):
            raise RefusedError(400, f'"{prefix}{name}" is missing')
