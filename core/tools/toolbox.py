"""Calls of agents' tools, whichever way they come: rights, arguments, the tool, and an answer without secrets."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from core.commands import exact_for
from core.domain.rights import ActorKind, require
from core.domain.session import SessionRecord
from core.domain.tools import ToolAnswer, ToolSpec, failure, refused
from core.errors import CoreError
from core.redaction import redactor_of
from core.secretnames import secret_variables
from core.system import System
from core.values import dataclass


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
        """Tell whether nobody waits any more."""
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

    def __init__(self, system: System, tools: Iterable[Tool]) -> None:
        self._system = system
        self._tools = {tool.spec.name: tool for tool in tools}
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))

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
        return failure(answer["code"], *(exact_for(self._system, answer[key]) for key in ("message", "remedy")))
