"""An agent's tools: their names, what they take, what they answer, and the text that their caller reads. No I/O."""

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from core.base.errors import CoreError, InvalidValue
from core.base.values import dataclass
from core.model.session import Verb

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


LIST = ToolSpec(
    "list_standing_sessions",
    "List the standing sessions of this machine, you among them, and how each is. "
    'Returns {"you": your name, "sessions": [row…]}; '
    "the keys of a row to look at: name, description, live, activity, hold, queued.",
    Verb.LIST,
    reads=True,
)
GET = ToolSpec(
    "get_standing_session",
    'Look at one standing session. Returns {"session": row}, with the keys of list_standing_sessions.',
    Verb.GET,
    (Parameter("name", Kind.TEXT, "The session's name.", required=True, longest=200),),
    reads=True,
)
SAY = ToolSpec(
    "say_to_standing_session",
    "Write a message to another standing session; it arrives in its terminal framed with your name. "
    'Waits up to `wait` seconds for it to be taken and returns {"name", "messageId", "state", "delivered", '
    '"reason", "messages"}; "delivered" is true only if a turn is known to have taken it, "reason" is a code, '
    'and state "queued" means that it will be taken later. An answer, if there is one, comes to you as a message of '
    "its own. A message starts no session, and how many you may write in an hour is bounded.",
    Verb.SAY,
    (
        Parameter("name", Kind.TEXT, "The other session's name.", required=True, longest=200),
        Parameter("text", Kind.TEXT, "What to say.", required=True, longest=100_000),
        Parameter("wait", Kind.NUMBER, "Seconds to wait until it is taken, 0 to 60; default 10."),
    ),
)
POST = ToolSpec(
    "post",
    "Post into your own thread in the middle of a turn; the last thing that you say in a turn is posted there anyway. "
    'Returns {"name", "postId"}; "redacted" and "said" tell how many values were taken out because they look like '
    "secrets. How often you may post in an hour is bounded.",
    Verb.POST,
    (
        Parameter("text", Kind.TEXT, "Markdown.", longest=12_000),
        Parameter("files", Kind.TEXTS, "Paths of files to attach, in your working folder; at most 5.", most=5),
    ),
    needs_thread=True,
)
ASK = ToolSpec(
    "ask",
    "Ask the people of your thread a question, and wait for an answer: a button, or a reply in the thread. "
    'Returns {"name", "answer", "by"}, "redacted" and "said" as post does; an error with the code no_answer if nobody '
    "answers in time.",
    Verb.ASK,
    (
        Parameter("question", Kind.TEXT, "What to ask; at most 1,000 characters.", required=True, longest=1_000),
        Parameter("options", Kind.TEXTS, "Answers to choose from, at most 10.", longest=200),
        Parameter("wait", Kind.NUMBER, "Seconds to wait at most; default: as long as your operator allows."),
    ),
    needs_thread=True,
)

_LOOP = '"loop", your session\'s "loops" and "said", a sentence that tells what was done'
_ID = Parameter("id", Kind.TEXT, "The loop's id, as list_loops tells it.", required=True, longest=200)
_REASON = Parameter("reason", Kind.TEXT, "Why; people read it.", longest=500)

CREATE_LOOP = ToolSpec(
    "create_loop",
    "Be prompted with an instruction again and again, so that work goes on which outlasts your turn. "
    "Give an interval, or cron; with neither it runs at once, and goes on only where each of its turns calls "
    "schedule_next_run. With keep_alive it goes on until you stop it: stop it once the work is done or given up. "
    f"Returns {{{_LOOP}}}.",
    Verb.LOOP,
    (
        Parameter("instruction", Kind.TEXT, "What to do at each run; at most 4,000 characters.", required=True),
        Parameter("interval", Kind.TEXT, "How far apart the runs are: 30s, 5m, 1.5h, 2 days.", longest=100),
        Parameter("cron", Kind.TEXT, "Five fields, instead of an interval.", longest=200),
        Parameter("time_zone", Kind.TEXT, "Of cron: a name such as Europe/Berlin; default UTC.", longest=100),
        Parameter("keep_alive", Kind.TRUTH, "Ends only when it is stopped, and its session is brought back."),
        Parameter("max_runs", Kind.INTEGER, "Complete after so many runs."),
    ),
)
LIST_LOOPS = ToolSpec(
    "list_loops",
    'List the loops of your session, those that have ended last. Returns {"loop": null, "loops": [loop…], "said"}.',
    Verb.LOOPS,
    reads=True,
)
STOP_LOOP = ToolSpec("stop_loop", f"End one of your loops for good. Returns {{{_LOOP}}}.", Verb.LOOP, (_ID, _REASON))
PAUSE_LOOP = ToolSpec(
    "pause_loop", f"Let one of your loops rest until it is resumed. Returns {{{_LOOP}}}.", Verb.LOOP, (_ID, _REASON)
)
RESUME_LOOP = ToolSpec(
    "resume_loop",
    f"Resume a loop that is paused, or blocked after failures. Returns {{{_LOOP}}}.",
    Verb.LOOP,
    (_ID, _REASON),
)
RUN_LOOP_NOW = ToolSpec(
    "run_loop_now",
    "Make one of your loops due at once, but no earlier than the minimum interval after its last run. It goes in when "
    f"your turn is over. Returns {{{_LOOP}}}.",
    Verb.LOOP,
    (_ID, _REASON),
)
SCHEDULE_NEXT_RUN = ToolSpec(
    "schedule_next_run",
    "Name the next run of a loop that has neither interval nor cron. Call it in each of its turns, or it ends. "
    f"Returns {{{_LOOP}}}.",
    Verb.LOOP,
    (
        _ID,
        Parameter("delay", Kind.SPAN, "A span such as 10m, or seconds.", required=True, longest=100),
        Parameter("reason", Kind.TEXT, "Why then; people read it.", required=True, longest=500),
    ),
)

INSTRUCTIONS = (
    "the-loop keeps long-lived agents, each in a terminal of its own and often with a thread in a chat; you are one of "
    "them. These tools look at the others, write to them, speak in your own thread, and have you prompted again. "
    "Starting, stopping, creating and deleting sessions is your operator's business."
)

EVERY_TOOL: Sequence[ToolSpec] = (
    LIST,
    GET,
    SAY,
    POST,
    ASK,
    CREATE_LOOP,
    LIST_LOOPS,
    STOP_LOOP,
    PAUSE_LOOP,
    RESUME_LOOP,
    RUN_LOOP_NOW,
    SCHEDULE_NEXT_RUN,
)


def tools_for(*, has_thread: bool) -> tuple[ToolSpec, ...]:
    """Return the tools that are of use to a session with or without a thread."""
    return tuple(spec for spec in EVERY_TOOL if has_thread or not spec.needs_thread)
