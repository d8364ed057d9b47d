"""Decodes messages whose schema is in a schema registry: Avro, Protobuf and JSON in Confluent's wire format.

Such a message begins with a zero byte and the schema's id (int32). The registry is asked over HTTP in a thread, each id
once for one look: nothing is kept, because a registry that is started again gives the same ids to other schemas.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import io
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict, cast

from broker.shell.page.texts import Note, TextRow, cut
from protocol.record import read_varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.registry.state import RegistryState

MAGIC: Final = 0
PREFIX_BYTES: Final = 5  # magic and id
DECODED_BYTES: Final = 1 << 20  # longer messages are not decoded
ANSWER_BYTES: Final = 4 << 20
ANSWER_S: Final = 3.0
COMPILE_S: Final = 20.0
MOST_REFERENCES: Final = 100


class Reference(TypedDict):
    """Another schema by a version of its subject, under a name."""

    name: str
    subject: str
    version: int


class Schema(TypedDict):
    """A schema as a registry tells it; without a type it is Avro."""

    schema: str
    schemaType: NotRequired[str | None]
    references: NotRequired[list[Reference] | None]


class SchemaError(Exception):
    """A message cannot be decoded; the text says why."""


class Registry:
    """The schemas of one look at messages; `login` is USER:PASSWORD, or nothing."""

    def __init__(self, url: str, login: str = "") -> None:
        self._base = url.rstrip("/")
        self._login = base64.b64encode(login.encode()).decode()
        self._schemas: dict[int, tuple[str, Callable[[bytes], Any]] | SchemaError] = {}
        self._gone = ""  # why the registry cannot be reached: it is not asked again in this look

    async def shown(self, data: bytes | None) -> TextRow | Note | None:
        """What has a schema id as text, or why it is not decoded; None: it has none."""
        if data is None or len(data) < PREFIX_BYTES or data[0] != MAGIC:
            return None
        if len(data) > DECODED_BYTES:
            return {"note": f"not decoded: longer than {DECODED_BYTES} bytes"}
        return await asyncio.to_thread(self._shown, data)

    def _shown(self, data: bytes) -> TextRow | Note:
        number = int.from_bytes(data[1:PREFIX_BYTES], "big")
        try:
            form, decode = self._schema(number)
            text = json.dumps(decode(data[PREFIX_BYTES:]), default=_plain, ensure_ascii=False)
        except SchemaError as error:
            return {"note": f"schema {number}: {error}"}
        except Exception as error:  # whatever a decoder makes of bytes that are not of this schema
            return {"note": f"schema {number}: the bytes do not fit it ({type(error).__name__}: {error})"[:300]}
        shown = cut(text)
        return {"bytes": len(data), "form": form, "schema": number, "text": shown, "is_cut": len(shown) < len(text)}

    def _schema(self, number: int) -> tuple[str, Callable[[bytes], Any]]:
        """The form and the decoder of a schema's messages. Errors: SchemaError."""
        found = self._schemas.get(number)
        if found is None:
            try:
                found = self._made(number)
            except SchemaError as error:
                found = error
            self._schemas[number] = found
        if isinstance(found, SchemaError):
            raise found
        return found

    def _made(self, number: int) -> tuple[str, Callable[[bytes], Any]]:
        answer = self._ask(f"/schemas/ids/{number}")
        form = str(answer.get("schemaType") or "AVRO").lower()
        if form == "json":
            return "json", json.loads
        if form not in ("avro", "protobuf"):
            raise SchemaError(f"its type is {form}, which is not known here")
        references: dict[str, str] = {}
        self._gather(answer, references)
        make = _avro if form == "avro" else _protobuf
        try:
            return form, make(answer["schema"], references)
        except ImportError as error:
            raise SchemaError(f"decoding {form} needs `pip install 'momus[registry]'` ({error})") from None
        except SchemaError:
            raise
        except Exception as error:  # whatever a parser makes of a schema that it does not understand
            raise SchemaError(f"it cannot be read ({type(error).__name__}: {error})"[:300]) from None

    def _gather(self, answer: Schema, found: dict[str, str]) -> None:
        """Add what a schema refers to, by name; what those refer to comes first."""
        for each in answer.get("references") or ():
            if each["name"] in found:
                continue
            if len(found) >= MOST_REFERENCES:
                raise SchemaError(f"it refers to more than {MOST_REFERENCES} others")
            found[each["name"]] = ""  # a circle ends here
            subject = urllib.parse.quote(each["subject"], safe="")
            further = self._ask(f"/subjects/{subject}/versions/{each['version']}")
            self._gather(further, found)
            del found[each["name"]]
            found[each["name"]] = further["schema"]

    def _ask(self, path: str) -> Schema:
        """The answer to a GET. Errors: SchemaError."""
        if self._gone:
            raise SchemaError(self._gone)
        asked = urllib.request.Request(self._base + path)
        if self._login:
            asked.add_header("Authorization", f"Basic {self._login}")
        try:
            with _OPENER.open(asked, timeout=ANSWER_S) as response:
                body = response.read(ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise SchemaError(f"the registry answers {error.code} to GET {path}") from None
        except (OSError, http.client.HTTPException) as error:
            self._gone = f"{self._base} does not answer ({getattr(error, 'reason', None) or error})"
            raise SchemaError(self._gone) from None
        try:
            if len(body) > ANSWER_BYTES:
                raise ValueError(f"longer than {ANSWER_BYTES} bytes")
            answer = json.loads(body)
            if not isinstance(answer, dict) or not isinstance(answer.get("schema"), str):
                raise ValueError('no "schema"')
        except (ValueError, RecursionError) as error:
            raise SchemaError(f"the registry's answer to GET {path} cannot be read ({error})") from None
        return cast(Schema, answer)


class OwnRegistry(Registry):
    """The schemas of the cluster's own registry."""

    def __init__(self, state: RegistryState) -> None:
        super().__init__("")
        self._state = state

    def _ask(self, path: str) -> Schema:
        """The answer that the registry gives to a GET. Errors: SchemaError."""
        words = [urllib.parse.unquote(word) for word in path.strip("/").split("/")]
        if words[0] == "schemas":
            row = next(iter(self._state.of_id(int(words[2]))), None)
        else:
            row = self._state.get(words[1], int(words[3]), deleted=True)
        if row is None:
            raise SchemaError(f"the registry of this cluster has no {path.strip('/')}")
        return cast(Schema, row.to_json())


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects. To another host, port or scheme the login does not go along."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The next request; see the base class."""
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if following is not None and (before.scheme, before.netloc) != (after.scheme, after.netloc):
            following.remove_header("Authorization")
        return following


_OPENER: Final = urllib.request.build_opener(_Redirects)


def _plain(value: object) -> object:
    """What JSON has no form for."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _avro(schema: str, references: dict[str, str]) -> Callable[[bytes], Any]:
    import fastavro  # 80 ms: Protobuf does without

    named: dict[str, dict[Any, Any]] = {}
    for each in references.values():
        fastavro.parse_schema(json.loads(each), named)
    parsed = fastavro.parse_schema(json.loads(schema), named)

    def decode(data: bytes) -> Any:
        source = io.BytesIO(data)
        value = fastavro.schemaless_reader(source, parsed, None)
        if source.tell() < len(data):
            raise SchemaError(f"{len(data) - source.tell()} bytes are left over when it has been read")
        return value

    return decode


def _protobuf(schema: str, references: dict[str, str]) -> Callable[[bytes], Any]:
    # 30 ms: Avro does without
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

    files = descriptor_pb2.FileDescriptorSet.FromString(_compiled(schema, references))
    pool = descriptor_pool.DescriptorPool()
    for each in files.file:
        pool.Add(each)
    main = pool.FindFileByName(MAIN)
    tops = [main.message_types_by_name[each.name] for each in files.file[-1].message_type]

    def decode(data: bytes) -> Any:
        path, place = _message_path(data)
        types, found = tops, None
        for index in path:
            if index >= len(types):
                raise SchemaError(f"it has no message {path}")
            found = types[index]
            types = list(found.nested_types)
        assert found is not None
        message = message_factory.GetMessageClass(found).FromString(data[place:])
        return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)

    return decode


MAIN: Final = "schema-of-the-message.proto"


def _compiled(schema: str, references: dict[str, str]) -> bytes:
    """A FileDescriptorSet of a .proto and what it refers to, by protoc in a process of its own."""
    import grpc_tools  # 1 ms: its folder holds Google's own .proto files

    with tempfile.TemporaryDirectory(prefix="momus-schema-") as folder:
        for name, text in {**references, MAIN: schema}.items():
            place = PurePosixPath(name)
            if place.is_absolute() or ".." in place.parts or "\\" in name or ":" in name:
                raise SchemaError(f"it refers to {name[:100]!r}, which is no name within a registry")
            file = Path(folder, place)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        out = Path(folder, "schema.set")
        own = Path(grpc_tools.__path__[0], "_proto")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{own}", "--include_imports"]
        done = subprocess.run(
            [*command, f"--descriptor_set_out={out}", MAIN],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMPILE_S,
            check=False,
        )
        if done.returncode:
            raise SchemaError(f"protoc refuses it: {done.stderr.strip()[-200:]}")
        return out.read_bytes()


def _message_path(data: bytes) -> tuple[list[int], int]:
    """Which message of the file: an index per level of nesting; and the bytes that this took."""
    count, place = read_varint(data, 0)
    if count == 0:  # short for the first
        return [0], place
    if not 0 < count <= 100:
        raise SchemaError(f"a path of {count} message indexes")
    path = []
    for _ in range(count):
        index, place = read_varint(data, place)
        if index < 0:
            raise SchemaError(f"a message index of {index}")
        path.append(index)
    return path, place
