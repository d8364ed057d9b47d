"""A client of the registry's REST API, of the standard library."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request

NO_CONTENT = 204
MEDIA = "application/vnd.schemaregistry.v1+json"


class RegistryClient:
    """`ask` returns the answer, None where there is none, or (status, error_code, message) of a refusal."""

    def __init__(self, url, login=None, context: ssl.SSLContext | None = None):
        self.url = url
        self.context = context
        self.headers = {"Content-Type": MEDIA}
        if login is not None:
            self.headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()

    def ask(self, method, path, body=None, **headers):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {**self.headers, **headers}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.context) as reply:
                text = reply.read()
                if reply.status == NO_CONTENT:
                    return None
                return json.loads(text) if reply.headers["Content-Type"].endswith("json") else text
        except urllib.error.HTTPError as refusal:
            with refusal:
                answer = json.loads(refusal.read())
            return refusal.code, answer["error_code"], answer["message"]

    def register(self, subject, schema, **more):
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.ask("POST", f"/subjects/{subject}/versions", {"schema": text, **more})
