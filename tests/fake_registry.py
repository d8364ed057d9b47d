"""A schema registry over HTTP that gives what a test has put into it, and messages in Confluent's wire format."""

from __future__ import annotations

import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro

MONEY = '{"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}'
ORDER = """{"type": "record", "name": "shop.Order", "fields": [
    {"name": "drink", "type": "string"}, {"name": "price", "type": "shop.Money"}, {"name": "seal", "type": "bytes"}]}"""
MONEY_PROTO = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
ORDER_PROTO = """syntax = "proto3"; package shop;
import "shop/money.proto";
import "google/protobuf/timestamp.proto";
message Other { string unused = 1; }
message Order {
  message Line { string drink_name = 1; Money price = 2; google.protobuf.Timestamp at = 3; }
}"""


class FakeRegistry:
    """Schemas by id and by subject, over HTTP on loopback; counts what it is asked."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any] | bytes] = {}
        self.asked: list[str] = []
        self.login = ""
        self.hangs_up = False
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                if registry.hangs_up:
                    self.close_connection = True
                    return
                answer = registry.answers.get(self.path)
                allowed = self.headers.get("Authorization", "") == registry.login
                body = answer if isinstance(answer, bytes) else json.dumps(answer or {"error_code": 40403}).encode()
                self.send_response(401 if not allowed else 200 if answer else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def add(self, number: int, schema: str, kind: str | None = None, **references: tuple[str, str]) -> None:
        """A schema; references: subject -> (name, schema)."""
        named = [{"name": name, "subject": s, "version": 1} for s, (name, _) in references.items()]
        self.answers[f"/schemas/ids/{number}"] = {"schema": schema, "references": named} | (
            {"schemaType": kind} if kind else {}
        )
        for subject, (_, text) in references.items():
            self.answers[f"/subjects/{subject}/versions/1"] = {"schema": text}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def framed(number: int, data: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + data


def avro(value: object, *schemas: str) -> bytes:
    named: dict[str, Any] = {}
    parsed: Any = None
    for each in schemas:
        parsed = fastavro.parse_schema(json.loads(each), named)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, value)
    return out.getvalue()
