"""The API below /api/v1. Its addresses are made from the table of commands: what a command takes is what a request may
bring, and a command added there is served here.

`standing pause` is `POST /standing-sessions/pause`, `loop stop` is `POST /loops/stop`; what only reads is a GET. What a
row does not run by itself is bound here by its words, as the command line binds its own; NOT_SERVED is left out. What
is not in the table stands at the end: the requests that wait for a person, and one address for several verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, assert_never

from core.base.clock import iso
from core.base.errors import InvalidValue, NotPermitted, Refused, UnknownRequest, UnknownSession
from core.base.names import check_name
from core.base.redaction import redactor_of
from core.base.text import visible
from core.base.values import dataclass, field, replace
from core.chat.answering import Answering, Given
from core.chat.inbound import tell_refused
from core.chat.speaking import ask, post, redaction_told, speaker
from core.commandtable import CHATS, COMMANDS, Argument, Call, Command, Kind, NoHandler, thread_options
from core.config.settings import secret_variables
from core.delivery.answers import told_where
from core.delivery.permission_requests import Requests
from core.delivery.saying import Queue, Said, cancel_message, confirm_message, queue_of, say
from core.http.arguments import key_of
from core.http.principal import Principal
from core.lifecycle.create import create_standing
from core.lifecycle.history import history_of
from core.lifecycle.look import Screen, get_standing, list_standing, logs_of
from core.loops.verbs import LoopAnswer
from core.model.asking import Request, RequestKind, RequestState, Role
from core.model.message import InboxRow
from core.model.posts import OutboundKind, OutboxRow
from core.model.reasons import code_of
from core.model.rows import Answer
from core.model.session import READS, ChatBinding, Definition, Restart, stated
from core.session.commands import exact_for
from core.session.sessions import definition_of
from core.session.system import System

API = "/api/v1"
MOST_WAIT = 300.0  #: seconds that a request waits for a turn's word
MOST_EVENTS = 1000


@dataclass(frozen=True)
class Asked:
    """One request: who asks, and what of.

    `requests`: what waits for a person's answer; None outside of the service, which alone hears those that ask.
    """

    system: System
    principal: Principal
    status: Callable[[], Mapping[str, Any]]
    requests: Requests | None = None
    links: Mapping[str, Callable[[str, str], str]] = field(default_factory=dict)  #: see Facts

    @property
    def call(self) -> Call:
        """Return who gives a command of the table."""
        return Call(self.system, self.principal.actor, self.principal.who)

    @property
    def by(self) -> str:
        """Return what people call whoever asks."""
        return self.principal.who or self.principal.actor.partition(":")[2]

    def sees(self, name: str) -> bool:
        """Return whether they are shown anything of the session."""
        return self.principal.may(self.system.settings, self.system.records, Role.MEMBER, name)

    def check(self, what: str, role: Role | None, name: str | None) -> None:
        """Raise NotPermitted, or UnknownSession of a session that they may not know of; see core.chat.commands.

        `role` None: only the operator of this machine may.
        """
        principal, system = self.principal, self.system
        if principal.author is None:
            return
        if role is not None and not name:
            raise InvalidValue("no session is named", "give its name")
        if role is not None and name and principal.may(system.settings, system.records, role, check_name(name)):
            return
        tell_refused(system, principal.author.chat, principal.author.id, what, name=name or "")
        if name and not self.sees(name):
            raise UnknownSession(name)
        raise NotPermitted(f"you may not {what}", "ask an operator")


Run = Callable[[Asked, dict[str, Any]], Any]  #: called with what the request brings, by its names; returns JSON


@dataclass(frozen=True)
class Operation:
    """One address and what it does. `role`: who may besides the operator of this machine; None: nobody."""

    method: str
    path: str  #: below API
    help: str
    takes: tuple[Argument, ...]
    run: Run
    answers: str  #: what it answers with, by its name in the OpenAPI document
    role: Role | None = None
    chats: bool = False  #: it also takes a block for each chat: `{enabled, channel}`
    of_all: bool = False  #: it may be asked without the name of a session, and shows each person what they may see
    waits: bool = False  #: it may take as long as people or a turn take

    @property
    def word(self) -> str:
        """Return what it is called where it is refused."""
        return self.path.rpartition("/")[2]


# ---------------------------------------------------------------- what the table does not run by itself


def _list(asked: Asked, given: dict[str, Any]) -> Any:
    rows = list_standing(asked.system)
    return {"sessions": [row.to_json() for row in rows if asked.sees(row.name)]}


def _get(asked: Asked, given: dict[str, Any]) -> Any:
    return get_standing(asked.system, given["name"]).to_json()


def _create(asked: Asked, given: dict[str, Any]) -> Any:
    start = given.pop("start")
    threads = {kind: ChatBinding(**given.pop(kind)) for kind in CHATS}
    restart = Restart(given.pop("restart"))
    arguments = given.pop("harness_args") or None
    definition = Definition(**given, restart=restart, harness_args=arguments, chat=stated(threads))
    return create_standing(asked.system, definition, asked.principal.actor, start=start).to_json()


def _logs(asked: Asked, given: dict[str, Any]) -> Any:
    return logs_of(asked.system, given["name"], given["lines"]).to_json()


def _say(asked: Asked, given: dict[str, Any]) -> Any:
    name, text, actor, raw = given["name"], given["text"], given["actor"], given["raw"]
    if not asked.principal.is_operator and (actor or raw):
        raise NotPermitted("you speak in your own name", "leave actor and raw out")
    who = "" if actor else asked.principal.who
    speaks = (actor if ":" in actor else f"http:{actor}") if actor else asked.principal.actor
    said = say(asked.system, name, text, actor=speaks, who=who, raw=raw, wait=given["wait"])
    return {**said.to_json(), "answerComes": told_where(asked.system, said)}


def _queue(asked: Asked, given: dict[str, Any]) -> Any:
    return queue_of(asked.system, given["name"]).to_json(text=given["text"])


def _history(asked: Asked, given: dict[str, Any]) -> Any:
    system = asked.system
    return history_of(system.settings, system.records, system.events, given["name"]).to_json()


def _cancel(asked: Asked, given: dict[str, Any]) -> Any:
    return _message(cancel_message(asked.system, given["message_id"], asked.principal.actor))


def _confirm(asked: Asked, given: dict[str, Any]) -> Any:
    return _message(confirm_message(asked.system, given["message_id"], asked.principal.actor))


def _message(row: InboxRow) -> Mapping[str, Any]:
    told = {"id": row.message.id, "name": row.message.name, "state": row.state.value}
    return {**told, "reason": code_of(row.because), "detail": row.detail}


def _status(asked: Asked, given: dict[str, Any]) -> Any:
    return asked.status()


def _events(asked: Asked, given: dict[str, Any]) -> Any:
    log, last = asked.system.events, given["last"]

    def wanted(event: Mapping[str, Any]) -> bool:
        return sees_event(asked, event, given["name"])

    page = log.latest(last, wanted) if given["after"] is None else log.after(given["after"], last)
    events = [{"id": place, **event} for place, event in page.events if wanted(event)]
    return {"events": events, "end": page.end, "complete": page.complete, "lost": page.lost}


def sees_event(asked: Asked, event: Mapping[str, Any], name: str | None) -> bool:
    """Return whether an event is shown: of that session, if one is named, and to whom it may be shown."""
    of = event.get("name")
    if name is not None and of != name:
        return False
    return asked.principal.is_operator or (isinstance(of, str) and asked.sees(of))


def _post(asked: Asked, given: dict[str, Any]) -> Any:
    record = speaker(asked.system.settings, asked.system.records, None, given["name"])
    said = post(asked.system, record, asked.principal.actor, given["text"], agent=False)
    return {"name": record.name, "postId": said.post_id, **redaction_told(said.redacted)}


def _ask(asked: Asked, given: dict[str, Any]) -> Any:
    record = speaker(asked.system.settings, asked.system.records, None, given["name"])
    answer = ask(asked.system, record, given["question"], given["options"], given["wait"])
    return {"name": record.name, **answer}


#: What the API does in its own way, by the words of the command.
HANDLERS: Mapping[str, tuple[Run, str]] = {
    "standing list": (_list, "Sessions"),
    "standing get": (_get, "Session"),
    "standing create": (_create, "Answer"),
    "standing logs": (_logs, "Logs"),
    "standing say": (_say, "Said"),
    "standing queue": (_queue, "Queue"),
    "standing history": (_history, "History"),
    "standing cancel": (_cancel, "Message"),
    "standing confirm": (_confirm, "Message"),
    "status": (_status, "Status"),
    "events": (_events, "Events"),
    "post": (_post, "Posted"),
    "ask": (_ask, "Reply"),
}
#: What is left out: it takes over the caller's terminal. Of the commands without a group HANDLERS names what is served.
NOT_SERVED = frozenset({"standing attach"})
_PATHS = {"standing": "/standing-sessions", "loop": "/loops", "": ""}  #: by group of the table
_OWN_PATHS = {"standing list": "/standing-sessions", "standing get": "/standing-sessions/one", "loop list": "/loops"}
_LEFT_OUT = {
    "standing list": {"--all", "--host"},  # an address is one host's
    "standing say": {"SOURCE", "--no-wait", "--wait-answer", "--answer-within"},  # answers: GET /events
    "standing create": {f"--{key.replace('_', '-')}" for kind in CHATS for key in thread_options(kind)},
    "events": {"--follow"},
}
_CHANGED: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("standing say", "--text"): {"required": True},
    ("standing say", "--wait"): {"least": 0, "most": MOST_WAIT},
    ("standing history", "NAME"): {"required": True, "default": None},
    ("ask", "NAME"): {"required": True, "default": None},
    ("post", "NAME"): {"required": True, "default": None},
    ("post", "--text"): {"required": True, "default": None},
    ("events", "--last"): {"default": 100, "most": MOST_EVENTS},
}
_WAITING = frozenset({"standing say", "ask"})
_OF_ALL = frozenset({"standing list", "events"})


_ADDED: Mapping[str, tuple[Argument, ...]] = {
    "events": (
        Argument("--after", "Those behind this id (0-0: all); of a stream, if no Last-Event-ID is sent."),
        Argument(
            "--answers",
            "Of a stream: whoever reads it answers requests, so sessions without a thread ask here too.",
            Kind.FLAG,
        ),
    )
}


def _takes(command: Command) -> tuple[Argument, ...]:
    """Return what a request may bring: what a command takes but for files and the command line's own ways."""
    left_out = _LEFT_OUT.get(command.cli, set())
    kept = (one for one in command.takes if one.kind is not Kind.PATH and one.word not in left_out)
    changed = (_positive(replace(one, **_CHANGED.get((command.cli, one.word), {}))) for one in kept)
    return (*changed, *_ADDED.get(command.cli, ()))


def _positive(argument: Argument) -> Argument:
    """Return what is switched off by a word, such as `--no-start`, as what is on unless it is switched off."""
    if argument.kind is Kind.FLAG and argument.word.startswith("--no-"):
        word = f"--{argument.word.removeprefix('--no-')}"
        return Argument(word, f"false: {argument.help[0].lower()}{argument.help[1:]}", Kind.SWITCH, default=True)
    return argument


def _role(command: Command) -> Role | None:
    """Return who may besides the operator: whom a chat allows it, and whoever may steer may look.

    What a chat does by a form of its own (`create`) offers less there than this address takes: it is the operator's.
    """
    if command.chat and (command.run is not None or command.right in READS):
        return command.role
    names = any(one.word == "NAME" for one in command.takes)
    return Role.MEMBER if command.right in READS and names else None


def _operation(command: Command) -> Operation:
    run, answers = HANDLERS.get(command.cli) or (_run_by(command), _answers_of(command))
    path = _OWN_PATHS.get(command.cli, f"{_PATHS[command.group]}/{command.cli.removeprefix(command.group).strip()}")
    return Operation(
        "GET" if command.right in READS else "POST",
        path,
        command.help,
        _takes(command),
        run,
        answers,
        _role(command),
        chats=command.cli == "standing create",
        of_all=command.cli in _OF_ALL,
        waits=command.cli in _WAITING,
    )


def _answers_of(command: Command) -> str:
    if command.group == "loop":
        return "Loops"
    return "Screen" if command.cli == "standing screen" else "Answer"


def _run_by(command: Command) -> Run:
    does = command.run
    if does is None:
        raise NoHandler(command.cli)

    def run(asked: Asked, given: dict[str, Any]) -> Any:
        return told(asked, does(asked.call, **given), given.get("name") or "")

    return run


def told(asked: Asked, result: Answer | LoopAnswer | Queue | Said | Screen, name: str) -> Mapping[str, Any]:
    """Return what a row of the table answered."""
    match result:
        case Answer() | Said() | Queue():
            return result.to_json()
        case LoopAnswer():
            said = exact_for(asked.system.settings, asked.system.environ, result.said)
            return {**result.to_json(), "said": said}
        case Screen():
            window = {"window": result.window.to_json()} if result.window is not None else {}
            return {"name": name, "screen": result.text, "ended": result.ended, **window}
        case _:
            assert_never(result)


def from_table(table: Iterable[Command]) -> tuple[Operation, ...]:
    """Return the operations of the commands that are served. Raises NoHandler for one that nothing runs."""
    served = [row for row in table if row.cli and row.cli not in NOT_SERVED and (row.group in _PATHS)]
    served = [row for row in served if row.group or row.cli in HANDLERS]
    return tuple(_operation(row) for row in served)


# ---------------------------------------------------------------- what is not in the table


def control(operations: Sequence[Operation]) -> Operation:
    """Return the address that takes the verb as a value: what acts on a session and answers with its row."""
    prefix = "/standing-sessions/"
    verbs = {
        one.word: one
        for one in operations
        if one.answers == "Answer" and one.path.startswith(prefix) and one.word not in ("create", "delete")
    }
    takes = {key_of(one): one for verb in verbs.values() for one in verb.takes}
    takes["name"] = Argument("NAME", required=True)
    verb = Argument("--verb", "What to do.", required=True, choices=tuple(verbs))

    def run(asked: Asked, given: dict[str, Any]) -> Any:
        chosen = verbs[given.pop("verb")]
        known = {one.parameter for one in chosen.takes}
        for one in takes.values():
            if one.parameter not in known and given[one.parameter] not in (None, False, ""):
                raise InvalidValue(f"{chosen.word} takes no {key_of(one)}", "leave it out")
        asked.check(chosen.word, chosen.role, given["name"])
        return chosen.run(asked, {key: value for key, value in given.items() if key in known})

    return Operation(
        "POST", f"{prefix}control", "Do what a verb says.", (verb, *takes.values()), run, "Answer", Role.MEMBER
    )


def request_operations() -> tuple[Operation, ...]:
    """Return the addresses of the requests that wait for a person."""

    def waiting(asked: Asked, given: dict[str, Any]) -> Any:
        found = (one for one in asked.system.requests.open() if given["name"] in (None, one.name))
        return {"requests": [_request(asked, one) for one in found if asked.sees(one.name)]}

    def answer(asked: Asked, given: dict[str, Any]) -> Any:
        request = asked.system.requests.get(given["id"])
        if request is None or not asked.sees(request.name):
            raise UnknownRequest(given["id"])
        asked.check("answer", Role.APPROVER, request.name)
        said = Given(given["allow"], given["option"], given["answer"], given["question"], given["remember"])
        after = Answering(asked.system, _heard(asked)).answer(request.id, said, asked.by, asked.principal.actor)
        return _request(asked, after)

    return (
        Operation(
            "GET",
            "/requests",
            "List the permissions, questions and dialogs that wait for a person, oldest first.",
            (Argument("NAME", "Only this session's."),),
            waiting,
            "Requests",
            Role.MEMBER,
            of_all=True,
        ),
        Operation(
            "POST",
            "/requests/answer",
            "Answer a request. The first answer decides.",
            (
                Argument("ID", required=True),
                Argument("--allow", "A permission: whether it is given.", Kind.SWITCH),
                Argument("--remember", "Of a permission that is given: allow the like, by its rules.", Kind.FLAG),
                Argument("--option", "A question or dialog: the place of an option, from 0.", Kind.INTEGER, least=0),
                Argument("--answer", "A question: an answer in your own words."),
                Argument("--question", "Which question it answers, from 0; default: the next.", Kind.INTEGER, least=0),
            ),
            answer,
            "Request",
            Role.APPROVER,
            of_all=True,  # it looks itself whose request that is
        ),
    )


def _heard(asked: Asked) -> Requests:
    if asked.requests is None:
        raise Refused("the service alone hears those that ask", "ask it over HTTP: docs/http.md")
    return asked.requests


def _request(asked: Asked, request: Request) -> Mapping[str, Any]:
    """Return a request as JSON: what of it is not seen is counted, and said in Markdown."""
    hide = redactor_of(asked.system.environ, secret_variables(asked.system.settings, asked.system.environ))

    def shown(text: str) -> str:
        return hide.counted(visible(text)[0], asked=True).text

    return {
        "id": request.id,
        "name": request.name,
        "agent": request.agent,
        "kind": request.kind.value,
        "state": request.state.value,
        "askedAt": iso(request.asked_at),
        "expiresAt": iso(request.expires_at),
        "tool": visible(request.tool)[0],
        "detail": request.detail,
        "unseen": list(request.unseen.said()),
        "questions": [
            {
                "question": shown(question.text),
                "several": question.several,
                "options": [
                    {"label": shown(one.label), "description": shown(one.description)} for one in question.options
                ],
            }
            for question in request.questions
        ],
        "rules": list(request.rules),
        "answers": [shown(answer) for answer in request.answers if request.questions],
        "allowed": request.allowed if request.state is RequestState.ANSWERED and not request.questions else None,
        "remembered": request.remembered,
        "by": request.by,
        "reason": request.reason,
        "waits": request.kind is RequestKind.DIALOG or _heard(asked).waits(request),
    }


def conversation_operation() -> Operation:
    """Return the address of what a session was told, and what was said of and by it in its thread."""

    def read(asked: Asked, given: dict[str, Any]) -> Any:
        name, last = given["name"], given["last"]
        known = definition_of(asked.system.settings, asked.system.records, name)
        if known.unreadable is not None:
            raise known.unreadable
        uid = known.record.uid if known.record is not None else ""
        told = [_entry_of_message(row) for row in asked.system.inbox.latest(uid, last)]
        said = _entries_of_posts(asked.system.outbox.latest(uid, _SHOWN_POSTS, last))
        entries = sorted([*told, *said], key=lambda entry: str(entry["at"]))
        return {"name": name, "thread": _thread_of(asked, uid), "entries": entries[-last:]}

    takes = (
        Argument("NAME", required=True),
        Argument("--last", "How many, from the end.", Kind.INTEGER, default=50, least=1, most=500),
    )
    return Operation(
        "GET",
        "/standing-sessions/conversation",
        "Show the latest messages to a session, and its answers and the other posts of its thread, oldest first. "
        "A session without a thread in a chat has no posts.",
        takes,
        read,
        "Conversation",
        Role.MEMBER,
    )


def _thread_of(asked: Asked, uid: str) -> Mapping[str, Any] | None:
    """Return where the session's thread is; `url` is "" where its chat tells none."""
    bound = asked.system.bindings.of_session(uid)
    if bound is None:
        return None
    link = asked.links.get(bound.channel_kind)
    url = link(bound.channel, bound.thread) if link is not None else ""
    return {"kind": bound.channel_kind, "channel": bound.channel, "thread": bound.thread, "url": url}


_SHOWN_POSTS = (
    OutboundKind.BOOT,
    OutboundKind.ASKED,
    OutboundKind.ANSWER,
    OutboundKind.FILE,
    OutboundKind.REQUEST,
    OutboundKind.POST,
    OutboundKind.ATTACHMENT,
    OutboundKind.NOTE,
    OutboundKind.CLOSING,
)


def _entry_of_message(row: InboxRow) -> dict[str, Any]:
    message = row.message
    return {
        "id": message.id,
        "at": iso(message.created_at),
        "to": True,
        "kind": message.kind.value,
        "who": message.who,
        "actor": message.actor,
        "text": message.text,
        "state": row.state.value,
        "reason": code_of(row.because),
        "detail": row.detail,
    }


def _entries_of_posts(posts: Sequence[tuple[OutboxRow, datetime]]) -> list[dict[str, Any]]:
    """Return the posts; one that was edited has its latest text, in the place of the first."""
    found = dict[str, dict[str, Any]]()
    for row, at in posts:
        post = row.post
        if post.kind is OutboundKind.ASKED and post.about:
            continue  # repeats in the thread a message that is here already
        first = found.get(post.edits) or {"id": post.id, "at": iso(at), "to": False, "who": post.name, "actor": ""}
        path = {"file": post.path.rpartition("/")[2]} if post.path else {}
        found[first["id"]] = {
            **first,
            "kind": post.kind.value,
            "text": post.text,
            "state": row.state.value,
            "reason": code_of(row.because),
            "detail": row.detail,
            **path,
        }
    return list(found.values())


def operations_of(table: Sequence[Command] = COMMANDS) -> tuple[Operation, ...]:
    """Return every operation of the API. Raises NoHandler for a command that is served and that nothing runs."""
    derived = from_table(table)
    return (*derived, control(derived), *request_operations(), conversation_operation())
