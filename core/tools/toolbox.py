"""Handle calls of agents' tools, whichever way they come: rights, arguments, the tool, and an answer without secrets.

The loop tools act on the loops of the agent's own session, and it sees no others. Over the service's socket a call is
one line: `{"op": "tool", "token", "call", "name", "arguments"}`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from core.base.errors import CoreError, InvalidValue
from core.base.names import new_request_id
from core.base.paths import StatePaths
from core.base.redaction import redactor_of
from core.base.values import dataclass
from core.chat.speaking import post, question_of, redacted_in, redaction_told, told_answer, unanswered
from core.config.settings import Settings, secret_variables
from core.delivery.saying import say
from core.lifecycle.look import get_standing, list_standing
from core.loops.verbs import (
    Asker,
    LoopAnswer,
    create_loop,
    list_loops,
    pause_loop,
    resume_loop,
    run_loop_now,
    schedule_next_run,
    stop_loop,
)
from core.model import tools
from core.model.loop import LoopRequest
from core.model.session import ActorKind, SessionRecord, require
from core.model.tools import ToolAnswer, ToolSpec, failure, refused
from core.process.control import Listener, Peer
from core.session.commands import exact_for
from core.session.launching import session_of_token
from core.session.sessions import resolve
from core.session.system import System
from core.store.records import Records


class Caller(Protocol):
    """A session's agent that waits for the answer of one call."""

    @property
    def record(self) -> SessionRecord:
        """The session, by its token."""
        ...

    @property
    def call(self) -> str:
        """The call's id; whoever calls again under it means the same call."""
        ...

    def reply(self, answer: ToolAnswer) -> bool:
        """Hand the answer over, and tell whether that could be done."""
        ...

    def gone(self) -> bool:
        """Return whether nobody waits any more."""
        ...


@dataclass(frozen=True)
class Call:
    """One call as a tool sees it: its caller may use the tool, its arguments are of the right kinds."""

    record: SessionRecord
    id: str
    arguments: Mapping[str, Any]
    reply: Callable[[ToolAnswer], bool]
    gone: Callable[[], bool]

    @property
    def actor(self) -> str:
        """Who acts, for rows and events."""
        return f"agent:{self.record.name}"


#: Returns the answer; None where the tool has handed it over by `reply`. May raise CoreError.
Run = Callable[[Call], ToolAnswer | None]


@dataclass(frozen=True)
class Tool:
    """What a tool is, and what it does."""

    spec: ToolSpec
    run: Run


class Toolbox:
    """The tools of every session's agent. Its methods may be called from any thread."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], tools: Iterable[Tool]) -> None:
        self._settings = settings
        self._environ = environ
        self._tools = {tool.spec.name: tool for tool in tools}
        self._redactor = redactor_of(environ, secret_variables(settings, environ))

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return what each tool is."""
        return tuple(tool.spec for tool in self._tools.values())

    def serve(self, caller: Caller, name: str, arguments: Any) -> None:
        """Do what is asked, and hand the answer over; what cannot be done is an answer too."""

        def reply(answer: ToolAnswer) -> bool:
            return caller.reply(ToolAnswer(self._redactor.redact_all(answer.content), answer.failed))

        try:
            answer = self._answer(caller, name, arguments, reply)
        except CoreError as error:
            answer = self._told(error)
        if answer is not None:
            reply(answer)

    def _answer(
        self, caller: Caller, name: str, arguments: Any, reply: Callable[[ToolAnswer], bool]
    ) -> ToolAnswer | None:
        tool = self._tools.get(name)
        if tool is None:
            return failure("unknown_tool", f"there is no tool {name[:80]!r}", f"there are {', '.join(self._tools)}")
        require(ActorKind.AGENT, tool.spec.verb)
        return tool.run(Call(caller.record, caller.call, tool.spec.checked(arguments), reply, caller.gone))

    def _told(self, error: CoreError) -> ToolAnswer:
        answer = refused(error).content["error"]
        return failure(
            answer["code"],
            *(exact_for(self._settings, self._environ, answer[key]) for key in ("message", "remedy")),
        )


LONGEST_WAIT = 60.0  #: seconds that a message to another session is waited for
_WAIT = 10.0

Ask = Callable[[Mapping[str, Any], Listener], None]


def standard_tools(system: System, ask: Ask) -> Sequence[Tool]:
    """Return the tools; `ask` puts a question to people and speaks with whoever waits for the answer."""
    return (
        Tool(tools.LIST, lambda call: _list(system, call)),
        Tool(tools.GET, lambda call: _get(system, call)),
        Tool(tools.SAY, lambda call: _say(system, call)),
        Tool(tools.POST, lambda call: _post(system, call)),
        Tool(tools.ASK, lambda call: _ask(system, call, ask)),
    )


def _list(system: System, call: Call) -> ToolAnswer:
    return ToolAnswer({"you": call.record.name, "sessions": [row.to_json() for row in list_standing(system)]})


def _get(system: System, call: Call) -> ToolAnswer:
    return ToolAnswer({"session": get_standing(system, call.arguments["name"]).to_json()})


def _say(system: System, call: Call) -> ToolAnswer:
    wait = call.arguments.get("wait", _WAIT)
    if not 0 <= wait <= LONGEST_WAIT:
        raise InvalidValue("wait is out of its bounds", f"give 0 to {LONGEST_WAIT:g} seconds")
    said = say(system, call.arguments["name"], call.arguments["text"], actor=call.actor, wait=float(wait)).to_json()
    return ToolAnswer({key: value for key, value in said.items() if key != "exitCode"})


def _post(system: System, call: Call) -> ToolAnswer:
    cwd = resolve(call.record.definition, system.settings).cwd
    files = [cwd / path for path in call.arguments.get("files", ())]
    said = post(system, call.record, call.actor, call.arguments.get("text", ""), files, agent=True)
    return ToolAnswer({"name": call.record.name, "postId": said.post_id, **redaction_told(said.redacted)})


def _ask(system: System, call: Call, ask: Ask) -> None:
    given = call.arguments
    line = question_of(
        system, call.record, given["question"], given.get("options", ()), given.get("wait"), f"ask-{call.id}"
    )
    ask(
        line,
        _Asker(
            call,
            redaction_told(redacted_in(system.settings, system.environ, given["question"], *given.get("options", ()))),
        ),
    )


class _Asker:
    """Whoever asked a question, as the service's socket would see them: it hears the answer as that of its tool."""

    def __init__(self, call: Call, redaction: Mapping[str, Any]) -> None:
        self._call = call
        self._redaction = redaction

    def send(self, answer: Mapping[str, Any]) -> bool:
        """Hand over what decides; that somebody is asked now is no answer yet."""
        if "wait" in answer:
            return not self._call.gone()
        if "answer" in answer:
            told = {"name": self._call.record.name, **told_answer(answer["answer"]), **self._redaction}
            return self._call.reply(ToolAnswer(told))
        return self._call.reply(refused(unanswered(self._call.record, str(answer["undecided"]))))

    def gone(self) -> bool:
        """Return whether nobody waits any more."""
        return self._call.gone()


_Step = Callable[[System, Asker, str, str], LoopAnswer]


def loop_tools(system: System) -> Sequence[Tool]:
    """Return the tools."""

    def told(answer: LoopAnswer) -> ToolAnswer:
        content = answer.to_json()
        return ToolAnswer({**content, "said": exact_for(system.settings, system.environ, content["said"])})

    def step(verb: _Step) -> Callable[[Call], ToolAnswer]:
        def run(call: Call) -> ToolAnswer:
            return told(verb(system, _asker(call), call.arguments["id"], call.arguments.get("reason", "")))

        return run

    return (
        Tool(tools.CREATE_LOOP, lambda call: told(create_loop(system, _asker(call), "", _asked(call)))),
        Tool(
            tools.LIST_LOOPS, lambda call: told(list_loops(system.settings, system.records, system.loops, _asker(call)))
        ),
        Tool(tools.STOP_LOOP, step(stop_loop)),
        Tool(tools.PAUSE_LOOP, step(pause_loop)),
        Tool(tools.RESUME_LOOP, step(resume_loop)),
        Tool(tools.RUN_LOOP_NOW, step(run_loop_now)),
        Tool(tools.SCHEDULE_NEXT_RUN, lambda call: told(_schedule(system, call))),
    )


def _asker(call: Call) -> Asker:
    return Asker(call.actor, call.record.uid)


def _asked(call: Call) -> LoopRequest:
    given = call.arguments
    return LoopRequest(
        given["instruction"],
        given.get("interval"),
        given.get("cron"),
        given.get("time_zone"),
        given.get("keep_alive", False),
        given.get("max_runs"),
    )


def _schedule(system: System, call: Call) -> LoopAnswer:
    given = call.arguments
    return schedule_next_run(system, _asker(call), given["id"], given["delay"], given["reason"])


WAIT_SECONDS = 90.0  #: the most that any tool takes that waits for no person
_CALL = re.compile(r"[A-Za-z0-9-]{8,64}")


class ToolSocket:
    """Answers `tool`. `{"wait": seconds}` tells at once that the call was heard; then comes `{"result": …}`."""

    def __init__(self, settings: Settings, paths: StatePaths, records: Records, toolbox: Toolbox) -> None:
        self._settings = settings
        self._paths = paths
        self._records = records
        self._toolbox = toolbox

    def talk(self, line: Mapping[str, Any], peer: Peer) -> None:
        """Speak with one caller."""
        token, call, name = (str(line.get(key) or "") for key in ("token", "call", "name"))
        try:
            record = session_of_token(self._paths, self._records, token)
        except CoreError as error:
            peer.send({"result": refused(error).to_json()})
            return
        longest = max(WAIT_SECONDS, self._settings.limits.approval_wait_seconds)
        if peer.send({"wait": longest}):
            caller = _SocketCaller(record, call if _CALL.fullmatch(call) else new_request_id(), peer)
            self._toolbox.serve(caller, name, line.get("arguments"))


class _SocketCaller:
    def __init__(self, record: SessionRecord, call: str, peer: Peer) -> None:
        self.record = record
        self.call = call
        self._peer = peer

    def reply(self, answer: ToolAnswer) -> bool:
        return self._peer.send({"result": answer.to_json()})

    def gone(self) -> bool:
        return self._peer.gone()
