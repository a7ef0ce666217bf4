"""What an agent's tools are: their names, what they take, and what they answer. No I/O."""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from core.domain.rights import Verb
from core.errors import CoreError, InvalidValue
from core.values import dataclass

SERVER = "the-loop"  #: the server's name towards harnesses, which call a tool `mcp__the-loop__<tool>` or the like
_LARGEST = 10**12
_SHOWN = 60  #: characters of a wrong value that a refusal shows


class Kind(Enum):
    """What a parameter takes, by the words of JSON Schema but for SPAN."""

    TEXT = "string"
    NUMBER = "number"
    SPAN = "span"  #: a text such as 10m, or seconds
    INTEGER = "integer"
    TRUTH = "boolean"
    TEXTS = "array"


_TYPES: Mapping[Kind, tuple[type, ...]] = {
    Kind.TEXT: (str,),
    Kind.NUMBER: (int, float),
    Kind.SPAN: (str, int, float),
    Kind.INTEGER: (int,),
    Kind.TRUTH: (bool,),
    Kind.TEXTS: (list,),
}
_WORDS: Mapping[Kind, str] = {
    Kind.TEXT: "a text",
    Kind.NUMBER: "a number",
    Kind.SPAN: "a span such as 10m, or seconds",
    Kind.INTEGER: "a whole number",
    Kind.TRUTH: "true or false",
    Kind.TEXTS: "a list of texts",
}


@dataclass(frozen=True)
class Parameter:
    """One argument of a tool; one that is not required may be left out, or null."""

    name: str
    kind: Kind
    purpose: str
    required: bool = False
    longest: int = 4_000  #: characters of a text, or of each in a list
    most: int = 10  #: texts in a list

    def schema(self) -> dict[str, Any]:
        """Return it in the words of JSON Schema."""
        kind: Any = ["string", "number"] if self.kind is Kind.SPAN else self.kind.value
        told: dict[str, Any] = {"type": kind, "description": self.purpose}
        if self.kind is Kind.TEXT:
            told["maxLength"] = self.longest
        if self.kind is Kind.TEXTS:
            told |= {"items": {"type": "string", "maxLength": self.longest}, "maxItems": self.most}
        return told

    def check(self, value: Any) -> None:
        """Raise InvalidValue for what the parameter does not take."""
        wrong_truth = isinstance(value, bool) and self.kind is not Kind.TRUTH  # a bool is an int to Python
        if wrong_truth or not isinstance(value, _TYPES[self.kind]):
            raise InvalidValue(f"{self.name} is {_shown(value)}", f"give {_WORDS[self.kind]}")
        if isinstance(value, float | int) and not abs(value) <= _LARGEST:  # which no NaN is
            raise InvalidValue(f"{self.name} is no number of use", f"give {_WORDS[self.kind]}")
        texts = value if isinstance(value, list) else [value] if isinstance(value, str) else []
        if not all(isinstance(text, str) for text in texts):
            raise InvalidValue(f"{self.name} holds something else than texts", f"give {_WORDS[self.kind]}")
        if isinstance(value, list) and len(value) > self.most:
            raise InvalidValue(f"{self.name} holds {len(value):,} texts", f"give at most {self.most}")
        for text in texts:
            if len(text) > self.longest:
                raise InvalidValue(
                    f"{self.name} has {len(text):,} characters", f"give at most {self.longest:,} characters"
                )


@dataclass(frozen=True)
class ToolSpec:
    """A tool as its caller sees it. `purpose` is read by an agent: what it does, and what comes back."""

    name: str
    purpose: str
    verb: Verb  #: what its caller must be allowed to do
    parameters: tuple[Parameter, ...] = ()
    needs_thread: bool = False  #: of use to a session alone that has a thread
    reads: bool = False  #: changes nothing, so that it may be asked again

    @property
    def gist(self) -> str:
        """What it does, in its purpose's first sentence."""
        return self.purpose.partition(". ")[0].rstrip(".").partition(": ")[0]

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {parameter.name: parameter.schema() for parameter in self.parameters},
            "required": [parameter.name for parameter in self.parameters if parameter.required],
            "additionalProperties": False,
        }

    def listed(self) -> dict[str, Any]:
        """Return it as an MCP client is told of it."""
        return {
            "name": self.name,
            "description": self.purpose,
            "inputSchema": self.schema(),
            "annotations": {"readOnlyHint": self.reads, "openWorldHint": False},
        }

    def checked(self, arguments: Any) -> Mapping[str, Any]:
        """Return the arguments that were given, each of the kind that it should be. Raises InvalidValue."""
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, Mapping):
            raise InvalidValue(f"the arguments of {self.name} are {_shown(arguments)}", "give an object")
        known = {parameter.name: parameter for parameter in self.parameters}
        given = {name: value for name, value in arguments.items() if value is not None}
        for name in given:
            if name not in known:
                takes = ", ".join(known) or "no arguments"
                raise InvalidValue(f"{self.name} takes no {_shown(name)}", f"it takes {takes}")
        for parameter in self.parameters:
            if parameter.name in given:
                parameter.check(given[parameter.name])
            elif parameter.required:
                raise InvalidValue(f"{self.name} needs {parameter.name}", f"give {_WORDS[parameter.kind]}")
        return given


@dataclass(frozen=True)
class ToolAnswer:
    """What a call comes to: an object, and the same as text. `failed`: `{"error": {"code", "message", "remedy"}}`."""

    content: Mapping[str, Any]
    failed: bool = False

    @property
    def text(self) -> str:
        """The answer for a client that reads text alone."""
        if not self.failed:
            return json.dumps(self.content, ensure_ascii=False)
        error = self.content["error"]
        return f"{error['code']}: {error['message']}" + (f"; {error['remedy']}" if error["remedy"] else "")

    def to_json(self) -> dict[str, Any]:
        """Return it as MCP writes a result of `tools/call`."""
        return {
            "content": [{"type": "text", "text": self.text}],
            "structuredContent": dict(self.content),
            "isError": self.failed,
        }


def failure(code: str, message: str, remedy: str) -> ToolAnswer:
    """Return the answer of a call that was refused or failed."""
    return ToolAnswer({"error": {"code": code, "message": message, "remedy": remedy}}, failed=True)


def refused(error: CoreError) -> ToolAnswer:
    """Return the answer that an error of the product comes to."""
    return failure(error.code, error.message, error.remedy)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
