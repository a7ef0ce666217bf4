"""The API's description as OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.1.html), made from its operations.

`python -m core.http.openapi` prints docs/openapi.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.base.names import NAME_PATTERN
from core.commandtable import CHATS, Argument, Kind
from core.http.arguments import CHAT_BLOCK, key_of
from core.http.rest import API, Operation, operations_of
from core.http.schemas import SCHEMAS

Json = dict[str, Any]

_ABOUT = """\
The HTTP API of the-loop. See docs/http.md for how it is reached and what its answers mean.

Every answer is JSON. Each error is `{"error": {"code", "message", "remedy"}}`; codes are never renamed. Keys that are
not described here may come with a later release.
"""


_POSITION = "^[0-9a-z]{1,20}-[0-9]{1,18}$"
_PATTERNS = {"name": f"^{NAME_PATTERN}$", "after": _POSITION}  #: by key


def document(operations: Sequence[Operation]) -> Json:
    """Return the whole description."""
    paths = dict[str, Json]()
    for one in operations:
        paths.setdefault(f"{API}{one.path}", {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "the-loop", "version": "1", "description": _ABOUT},
        "servers": [{"url": "http://localhost", "description": "At the Unix socket local/http.sock of the state root"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": SCHEMAS,
            "responses": {
                "Refused": _error("What was asked cannot be done: docs/http.md has the table of status codes."),
                "Failed": _error("It failed here. With Retry-After, nothing was done.", _RETRY),
            },
        },
    }


_RETRY: Json = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}


def _error(told: str, headers: Json | None = None) -> Json:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": told, **({"headers": headers} if headers else {}), "content": content}


def _operation(one: Operation) -> Json:
    content: Json = {"application/json": {"schema": {"$ref": f"#/components/schemas/{one.answers}"}}}
    if one.path == "/events":
        content["text/event-stream"] = {"schema": {"type": "string"}}
    summary, _, rest = one.help.partition(". ")
    return {
        "operationId": f"{one.method.lower()}{''.join(part.title() for part in one.path.replace('-', '/').split('/'))}",
        "summary": summary.rstrip("."),
        **({"description": rest} if rest else {}),
        **_takes(one),
        "responses": {
            "200": {"description": "What came of it.", "content": content},
            "4XX": {"$ref": "#/components/responses/Refused"},
            "5XX": {"$ref": "#/components/responses/Failed"},
        },
    }


def _takes(one: Operation) -> Json:
    if one.method == "GET":
        parameters = [_parameter(argument) for argument in one.takes]
        if one.path == "/events":
            parameters += _OF_STREAMS
        return {"parameters": parameters} if parameters else {}
    properties = {key_of(argument): _schema(argument) for argument in one.takes}
    if one.chats:
        properties |= {kind: _chat(title) for kind, title in CHATS.items()}
    body: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [key_of(argument) for argument in one.takes if argument.required]
    if required:
        body["required"] = required
    return {
        "parameters": [_KEY],
        "requestBody": {"required": bool(required), "content": {"application/json": {"schema": body}}},
    }


_KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The request is done once under its key, and answered the same for a day. Another request under the "
    "key: 422.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


_OF_STREAMS = [
    {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "Of a stream: the id of the last event that was read. It counts before `after`.",
        "schema": {"type": "string"},
    },
]


def _parameter(argument: Argument) -> Json:
    return {
        "name": key_of(argument),
        "in": "query",
        **({"description": argument.help} if argument.help else {}),
        "required": argument.required,
        "schema": _schema(argument, described=False, nullable=False),
    }


def _schema(argument: Argument, *, described: bool = True, nullable: bool = True) -> Json:
    """Return the schema of an argument; in a body, null is as if it were not given."""
    kinds = {Kind.TEXT: "string", Kind.PATH: "string", Kind.INTEGER: "integer", Kind.NUMBER: "number"}
    of: Json = {"type": kinds.get(argument.kind, "boolean")}
    if pattern := _PATTERNS.get(key_of(argument)):
        of["pattern"] = pattern
    if argument.choices:
        of["enum"] = list(argument.choices)
    if argument.least is not None:
        of["minimum"] = argument.least
    if argument.most is not None:
        of["maximum"] = argument.most
    if argument.many:
        of = {"type": "array", "items": of}
    if nullable and not argument.required:
        of["type"] = [of["type"], "null"]
        if "enum" in of:
            of["enum"] = [*of["enum"], None]
    if argument.default not in (None, ""):
        of["default"] = argument.default
    if described and argument.help:
        of["description"] = argument.help
    return of


def _chat(title: str) -> Json:
    properties = {key_of(argument): _schema(argument) for argument in CHAT_BLOCK}
    return {
        "type": ["object", "null"],
        "description": f"The session's thread in {title}.",
        "properties": properties,
        "additionalProperties": False,
    }


def text() -> str:
    """Return the description as YAML, as docs/openapi.yaml has it."""
    import yaml

    class Plain(yaml.SafeDumper):
        """Writes no anchors: what stands at two places is written twice."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    head = "# Made from the table of commands: python -m core.http.openapi\n"
    return head + yaml.dump(document(operations_of()), Dumper=Plain, sort_keys=False, width=100, allow_unicode=True)


if __name__ == "__main__":
    print(text(), end="")
