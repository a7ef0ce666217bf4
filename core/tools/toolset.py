"""The tools that read sessions and speak: what each call does."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.conversation.speaking import post, question_of, redacted_in, redaction_told, told_answer, unanswered
from core.domain import toolspecs
from core.domain.tools import ToolAnswer, refused
from core.errors import InvalidValue
from core.process.controlsocket import Listener
from core.session.sessions import resolve
from core.standing.listing import get_standing, list_standing
from core.standing.saying import say
from core.system import System
from core.tools.toolbox import Call, Tool

LONGEST_WAIT = 60.0  #: seconds that a message to another session is waited for
_WAIT = 10.0

Ask = Callable[[Mapping[str, Any], Listener], None]


def standard_tools(system: System, ask: Ask) -> Sequence[Tool]:
    """Return the tools; `ask` puts a question to people and speaks with whoever waits for the answer."""
    return (
        Tool(toolspecs.LIST, lambda call: _list(system, call)),
        Tool(toolspecs.GET, lambda call: _get(system, call)),
        Tool(toolspecs.SAY, lambda call: _say(system, call)),
        Tool(toolspecs.POST, lambda call: _post(system, call)),
        Tool(toolspecs.ASK, lambda call: _ask(system, call, ask)),
    )


def _list(system: System, call: Call) -> ToolAnswer:
    return ToolAnswer({"you": call.record.name, "sessions": [row.to_json() for row in list_standing(system)]})


def _get(system: System, call: Call) -> ToolAnswer:
    return ToolAnswer({"session": get_standing(system, call.arguments["name"]).to_json()})


def _say(system: System, call: Call) -> ToolAnswer:
    wait = float(call.arguments.get("wait", _WAIT))
    if not 0 <= wait <= LONGEST_WAIT:
        raise InvalidValue(f"wait is {wait:g}", f"give 0 to {LONGEST_WAIT:g} seconds")
    said = say(system, call.arguments["name"], call.arguments["text"], actor=call.actor, wait=wait).to_json()
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
    ask(line, _Asker(call, redaction_told(redacted_in(system, given["question"], *given.get("options", ())))))


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
        """Tell whether nobody waits any more."""
        return self._call.gone()
