"""Permissions and questions that wait for a person: their content, how they end, how they are shown. No I/O.

A request belongs to the instance that asks. It ends once: answered by the first person who may, expired, or gone (it
was answered at the terminal, or the asking side has ended). Buttons below a post, and who may press them, are here too.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from core.base.text import moment_text, visible
from core.base.values import dataclass, field


class Role(Enum):
    """What somebody in a chat is, by the channel's lists."""

    MEMBER = "member"  #: may steer, look, pause, interrupt
    APPROVER = "approver"  #: may answer permission requests and questions
    OPERATOR = "operator"  #: may start and stop, too


class Press(Enum):
    """What a button does."""

    ALLOW = "allow"
    DENY = "deny"
    REMEMBER = "allow-and-remember"
    OPTION = "option"
    CHOOSE = "choose"  #: a choice of a dialog in the terminal, or a key of it
    CANCEL = "cancel"
    SEND_AGAIN = "send-again"
    CONFIRM = "confirm"
    INTERRUPT = "interrupt"
    START = "start"
    START_AND_SEND = "start-and-send"
    SCREEN = "screen"
    STATUS = "session-status"  #: this and the seven that follow: their target is a session's uid
    PAUSE = "pause-session"
    BREAK = "interrupt-session"
    RESUME = "resume-session"
    BRING_UP = "start-session"
    STOP = "stop-session"
    RESTART = "restart-session"
    ANEW = "new-conversation"
    STOP_LOOP = "stop-loop"  #: its target is a loop's id


NEEDS = {
    Press.ALLOW: Role.APPROVER,
    Press.DENY: Role.APPROVER,
    Press.REMEMBER: Role.APPROVER,
    Press.OPTION: Role.APPROVER,
    Press.CHOOSE: Role.APPROVER,
    Press.CANCEL: Role.MEMBER,
    Press.SEND_AGAIN: Role.MEMBER,
    Press.CONFIRM: Role.MEMBER,
    Press.INTERRUPT: Role.MEMBER,
    Press.SCREEN: Role.MEMBER,
    Press.STATUS: Role.MEMBER,
    Press.PAUSE: Role.MEMBER,
    Press.BREAK: Role.MEMBER,
    Press.RESUME: Role.MEMBER,
    Press.STOP_LOOP: Role.MEMBER,
    Press.BRING_UP: Role.OPERATOR,
    Press.STOP: Role.OPERATOR,
    Press.RESTART: Role.OPERATOR,
    Press.ANEW: Role.OPERATOR,
    Press.START: Role.OPERATOR,
    Press.START_AND_SEND: Role.OPERATOR,
}


@dataclass(frozen=True)
class Button:
    """A button. `target` is the durable id of what it is about: a request's, a message's or a session's; never text."""

    press: Press
    target: str
    label: str
    place: tuple[int, int] = (0, 0)  #: OPTION, CHOOSE: which question, and which of its options, from 0
    style: str = ""  #: "primary" | "danger" | ""

    @property
    def role(self) -> Role:
        """Return who may press it."""
        return NEEDS[self.press]

    @property
    def action(self) -> str:
        """Return what tells it from the others of its post: `allow`, `option-0-2`."""
        numbered = self.press in (Press.OPTION, Press.CHOOSE)
        return f"{self.press.value}-{self.place[0]}-{self.place[1]}" if numbered else str(self.press.value)


_LABELS = {
    Press.STATUS: "Status",
    Press.SCREEN: "Screen",
    Press.PAUSE: "Pause",
    Press.BREAK: "Interrupt",
    Press.RESUME: "Resume",
    Press.BRING_UP: "Start",
    Press.STOP: "Stop",
    Press.RESTART: "Restart",
    Press.ANEW: "New conversation",
}
LOOKS = frozenset({Press.STATUS, Press.SCREEN})  #: what changes nothing, and is shown to whoever presses it
OF_SESSION = frozenset({*_LABELS, Press.STOP_LOOP}) - LOOKS


def session_buttons(uid: str, *presses: Press) -> tuple[Button, ...]:
    """Return the buttons of a note that speaks of what they do to its session."""
    styles = {Press.STOP: "danger", Press.RESUME: "primary", Press.BRING_UP: "primary"}
    return tuple(Button(press, uid, _LABELS[press], style=styles.get(press, "")) for press in presses)


def announced_buttons(uid: str, *, lives: bool, paused: bool = False) -> tuple[Button, ...]:
    """Return the buttons of a session's announcement, by what the session does."""
    looks = (Press.STATUS, Press.SCREEN)
    if not lives:
        return session_buttons(uid, *looks, Press.BRING_UP)
    turns = (Press.RESUME,) if paused else (Press.PAUSE, Press.BREAK)
    return session_buttons(uid, *looks, *turns, Press.RESTART, Press.STOP)


@dataclass(frozen=True)
class Confirmation:
    """What is asked before something is done that cannot be taken back."""

    title: str  #: at most 100 characters
    text: str  #: plain; at most 300
    yes: str  #: at most 30, as `no`
    no: str = "Cancel"


_STOPPED = "The turn ends, and the messages that wait are cancelled. Nothing starts again until somebody starts it."


def confirmation_of(press: Press, name: str) -> Confirmation | None:
    """Return what is asked before a button counts, None for one that asks nothing."""
    match press:
        case Press.STOP:
            return Confirmation(f"Stop {name}?", _STOPPED, "Stop")
        case Press.RESTART:
            text = "The turn and the background jobs end. Then the same conversation is resumed."
            return Confirmation(f"Restart {name}?", text, "Restart")
        case Press.STOP_LOOP:
            return Confirmation("Stop the loop?", f"It ends for good; {name} goes on.", "Stop")
        case _:
            return None


def confirmation_of_one(verb: str) -> Confirmation | None:
    """Return what is asked before the verb counts for the session that was chosen from a list."""
    return Confirmation("Stop this session?", _STOPPED, "Stop") if verb == "stop" else None


def confirmation_of_all(verb: str, names: Sequence[str]) -> Confirmation:
    """Return what is asked before the verb counts for all of these sessions."""
    text = _STOPPED if verb == "stop" else "Turns that run go on to their end; no other begins. Messages wait."
    listed, word = ", ".join(names), verb.title()
    if len(names) == 1:
        return Confirmation(f"{word} {listed}?", text, word)
    shown = listed if len(listed) <= 150 else f"{listed[:149]}…"
    return Confirmation(f"{word} all {len(names)} sessions?", f"{shown}: {text}", f"{word} all")


QUESTION_TOOL = "AskUserQuestion"
REMEMBERED = "remembered"
_REMEMBER = "Allow and remember {rules}"
_LONGEST_BUTTON = 75  #: characters of a label; what is longer is cut in a chat
MAIN = "main"  #: the agent of a hook that names none
_SHOWN = 1_400  #: of a tool's input a request shows so much, by `_weight`
_VALUE = 700  #: of one of its values
_LOOKED_THROUGH = 20_000  #: characters of a value that are looked through for secrets; far fewer are shown
_LEFT_OUT = "… [{left} more characters are left out: look at the terminal]"
_MANY_BLANKS = re.compile(r"[ \t]*(?:\n[ \t]*){6,}|[ \t]{80,}")
_PARTED = "[hidden because it contains a secret: look at the terminal]"
_PROSE = {"Bash": "description"}  #: what a tool takes along and does not act on: it is not shown
_LONGEST_WAIT = 1e9  #: seconds; a client that says it waits longer has said nothing
_LONGEST_NAME = 200  #: characters of a tool's and an agent's; they are shown whole
_MOST_QUESTIONS, _MOST_OPTIONS = 8, 10
_LABEL, _DESCRIPTION, _QUESTION = 200, 300, 1_000  #: characters that are shown


class RequestKind(Enum):
    """Who asks for what."""

    PERMISSION = "permission"  #: the harness, before a tool runs
    QUESTION = "question"  #: the agent, by its question tool
    ASK = "ask"  #: the agent, by our command
    DIALOG = "dialog"  #: the harness's screen, by no hook: its options are what may be chosen there


class RequestState(Enum):
    """How a request stands."""

    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"  #: nobody answered in time; a dialog stays in the terminal
    GONE = "gone"  #: answered at the terminal, or nobody waits for the answer any more


@dataclass(frozen=True)
class Option:
    """One choice of a question."""

    label: str
    description: str = ""


@dataclass(frozen=True)
class Question:
    """One question; free text answers it, too."""

    text: str
    options: tuple[Option, ...] = ()
    several: bool = False  #: more than one option may be chosen


@dataclass(frozen=True)
class Unseen:
    """What of a tool's input the post does not show as it is."""

    values: int = 0  #: that look like secrets, and are taken out
    characters: int = 0  #: of these values
    missing: int = 0  #: characters that are left out for their number
    escaped: int = 0  #: characters that cannot be seen, and are written as escapes
    blanks: int = 0  #: blanks and empty lines, so many on end that their number stands for them
    above: int = 0  #: 1: rows of a dialog may have scrolled off the screen

    def __add__(self, other: "Unseen") -> "Unseen":
        return Unseen(*(getattr(self, name) + getattr(other, name) for name in _UNSEEN))

    def said(self) -> tuple[str, ...]:
        """Return a sentence, in Markdown, for each thing that whoever is to allow it must know."""
        told = []
        if self.values:
            are = "looks like a secret is hidden" if self.values == 1 else "look like secrets are hidden"
            length = _count(self.characters, "character")
            told.append(f"**{_count(self.values, 'value')} that {are}** ({length}): look at the terminal first")
        if self.missing:
            told.append(f"**{_count(self.missing, 'character')} left out**: look at the terminal first")
        if self.above:
            told.append("**Its beginning may have scrolled off the screen**: look at the terminal first")
        if self.blanks:
            told.append(
                f"{_count(self.blanks, 'space or empty line is', 'spaces or empty lines are')} replaced by a count"
            )
        if self.escaped:
            written = "is written as an escape" if self.escaped == 1 else "are written as escapes"
            told.append(f"{_count(self.escaped, 'character')} that cannot be seen {written}, such as `\\u202e`")
        return tuple(told)


_UNSEEN = ("values", "characters", "missing", "escaped", "blanks", "above")


def _count(number: int, what: str, several: str = "") -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {several or f'{what}s'}"


@dataclass(frozen=True)
class Request:
    """A request as it is stored. `key` is unique within the instance: asking again finds the same row."""

    id: str
    key: str
    uid: str
    name: str
    instance: str
    agent: str  #: which agent within the harness: a subagent's tools say nothing about the dialog of another
    kind: RequestKind
    asked_at: datetime
    expires_at: datetime
    tool: str = ""
    detail: str = ""  #: the tool's input, without secrets, shortened
    unseen: Unseen = Unseen()  #: what `detail` does not show
    rules: tuple[str, ...] = ()  #: a permission: by which its harness can allow the like from now on; shown whole
    questions: tuple[Question, ...] = ()
    digest: str = ""  #: of all that was asked: whoever asks the same under the key hears the same answer, nobody else
    state: RequestState = RequestState.OPEN
    allowed: bool = False  #: the answer to a permission
    answers: tuple[str, ...] = ()  #: to the questions, in their order; of a permission: REMEMBERED, or none
    by: str = ""  #: who answered, as people call them
    reason: str = ""  #: why it ended without an answer
    settled_at: datetime | None = None
    told: bool = False  #: whoever asked has the answer

    @property
    def remembered(self) -> bool:
        """Return whether the like is allowed from now on, too."""
        return self.kind is RequestKind.PERMISSION and self.allowed and REMEMBERED in self.answers

    @property
    def answerable_by_typing(self) -> bool:
        """Return whether a reply is its answer."""
        return self.state is RequestState.OPEN and self.kind in (RequestKind.QUESTION, RequestKind.ASK)

    @property
    def pending(self) -> Question | None:
        """Return the question that is to be answered next."""
        return self.questions[len(self.answers)] if len(self.answers) < len(self.questions) else None


# ---------------------------------------------------------------- what was asked


def view_of(
    tool: str, given: Mapping[str, Any], hide: Callable[[str], tuple[str, int, int]], missing: int = 0
) -> tuple[str, Unseen]:
    """Return a tool's input for people, and what they do not see: one line for each value, the command first.

    `hide` takes secrets out of a text, and returns it with how many there were and how long they are. `missing`: how
    many characters were left out already. Whatever is left out is counted, so that nobody approves what they take to
    be all of it; a value's lines but its first are indented, so that none of them is taken for another value.
    """
    command = given.get("command")
    first = [command] if isinstance(command, str) else []
    left = [key for key in given if not (first and key in ("command", _PROSE.get(tool)))]
    texts = [*first, *(f"{key}: {_plain(given[key])}".replace("\n", "\n  ") for key in left)]
    unseen, lines, room = Unseen(missing=missing), list[str](), _SHOWN + _VALUE
    for number, text in enumerate(texts):
        if room <= 0:
            rest = sum(map(len, texts[number:]))
            lines.append(_LEFT_OUT.format(left=f"{rest:,}"))
            unseen += Unseen(missing=rest)
            break
        shown, more = _shown(text, hide, min(room, _SHOWN if first and number == 0 else _VALUE))
        lines.append(shown)
        unseen += more
        room -= _weight(shown)
    return "\n".join(lines), unseen


def screen_of(text: str, hide: Callable[[str], tuple[str, int, int]], *, headless: bool = False) -> tuple[str, Unseen]:
    """Return what a terminal shows as people may see it, and what of it they do not; see `view_of`.

    A program breaks its lines where its terminal ends. Where that parts a secret, none of it is shown. Of what is long
    the middle is left out: the choices stand at the end. `headless`: there may be more above the screen.
    """
    text = text.replace("\xa0", " ")
    unbroken = "".join(line.strip(" │") for line in text.split("\n"))
    _, _, whole = hide(unbroken)
    above = Unseen(above=int(headless))
    if whole > hide(text)[2]:
        return _PARTED, Unseen(1, len(text)) + above
    shown, escaped = visible(text)
    shown, values, characters = hide(shown)
    room = _SHOWN + _VALUE
    end, begin = len(shown), len(shown)
    if _weight(shown) > room:
        end = _fitting(shown, room // 3)
        begin = len(shown) - _fitting(shown[:end:-1], room - room // 3)
    left = begin - end
    parts = [shown[:end], *([_LEFT_OUT.format(left=f"{left:,}")] if left else []), shown[begin:]]
    return "".join(parts), Unseen(values, characters, left, escaped) + above


def _shown(text: str, hide: Callable[[str], tuple[str, int, int]], room: int) -> tuple[str, Unseen]:
    """Return a text as it is shown in so much room, and what of it is not."""
    shown, escaped = visible(text[:_LOOKED_THROUGH])
    shown, values, characters = hide(shown)
    shown, blanks = _squeezed(shown)
    end = _fitting(shown, room)
    left = len(shown) - end + max(0, len(text) - _LOOKED_THROUGH)
    note = _LEFT_OUT.format(left=f"{left:,}") if left else ""
    return shown[:end] + note, Unseen(values, characters, left, escaped, blanks)


def _squeezed(text: str) -> tuple[str, int]:
    """Return the text with the number of blanks, or of empty lines, in the place of very many, and how many those are.

    Nobody reads on behind them, and a chat folds what is long.
    """
    gone = 0

    def number(found: re.Match[str]) -> str:
        nonlocal gone
        lines = found[0].count("\n") - 1
        gone += lines if lines > 0 else len(found[0])
        return f"\n[{lines:,} empty lines]\n" if lines > 0 else f" [{len(found[0]):,} blanks] "

    return _MANY_BLANKS.sub(number, text), gone


def _fitting(text: str, room: int) -> int:
    """Return how many characters from the first on fit into so much room."""
    end, weight = 0, 0
    while end < len(text) and weight + _weight(text[end]) <= room:
        weight += _weight(text[end])
        end += 1
    return end


def _weight(text: str) -> int:
    """Return how much room a text takes in a chat that escapes some characters and keeps fences apart."""
    beyond = sum(letter > "\uffff" for letter in text)
    return len(text) + beyond + text.count("`") + 4 * sum(text.count(sign) for sign in "&<>")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str, limit: int) -> str:
    """Return a text of a question as it is shown."""
    text = visible(text)[0]
    if len(text) <= limit:
        return text
    return text[:limit] + _LEFT_OUT.format(left=f"{len(text) - limit:,}")


def questions_of(given: Mapping[str, Any]) -> tuple[Question, ...]:
    """Return the questions of the question tool's input; () where there is none that could be understood."""
    listed = given.get("questions")
    if not isinstance(listed, list) or len(listed) > _MOST_QUESTIONS:
        return ()
    found = [_question(entry) for entry in listed if isinstance(entry, dict)]
    return tuple(question for question in found if question is not None) if len(found) == len(listed) else ()


def _question(entry: Mapping[str, Any]) -> Question | None:
    text = entry.get("question")
    if not isinstance(text, str) or not text.strip():
        return None
    options = entry.get("options")
    listed = [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []
    kept = [
        Option(str(option["label"]), str(option.get("description") or ""))
        for option in listed[:_MOST_OPTIONS]
        if isinstance(option.get("label"), str) and option["label"].strip()
    ]
    return Question(text, tuple(kept), entry.get("multiSelect") is True)


def understand(question: Question, text: str) -> str:
    """Return the answer that a typed text is: an option by its number or its label, several of them, or the text."""
    words = " ".join(text.split())
    if chosen := _chosen(question, words):
        return chosen
    parts = [part for part in re.split(r"[,;\s]+", words) if part]
    if question.several and len(parts) > 1:
        labels = [_chosen(question, part) for part in parts]
        if all(labels):
            return ", ".join(dict.fromkeys(label for label in labels if label))
    return text.strip()


def _chosen(question: Question, word: str) -> str | None:
    bare = word.strip(" .)")
    if bare.isascii() and bare.isdecimal() and len(bare) < 4:
        number = int(bare)
        return question.options[number - 1].label if 1 <= number <= len(question.options) else None
    found = [option.label for option in question.options if option.label.casefold() == word.casefold()]
    return found[0] if found else None


# ---------------------------------------------------------------- what is shown, in Markdown


def text_of(request: Request, terminal: str = "") -> str:
    """Return the post of an open request. `terminal`: where no reply is read, what leads to the session's terminal.

    Buttons speak for themselves, where there are any.
    """
    if request.kind is RequestKind.PERMISSION:
        return f"**{request.name}** asks for permission to use {_asked(request)}"
    if request.kind is RequestKind.DIALOG:
        return f"**{request.name}** shows a dialog in its terminal, and waits for a key{_seen(request)}"
    question = request.pending
    if question is None:
        return f"**{request.name}** asks"
    place = f" ({len(request.answers) + 1} of {len(request.questions)})" if len(request.questions) > 1 else ""
    lines = [
        f"{number}. {_cut(option.label, _LABEL)}"
        + (f" — {_cut(option.description, _DESCRIPTION)}" if _says_more(option) else "")
        for number, option in enumerate(question.options, 1)
    ]
    what = (
        "with numbers such as `1, 3`"
        if question.several
        else "with its number"
        if question.options
        else "in your words"
    )
    also = ", or in your own words" if question.options else ""
    how = f"Replies are not read here: answer it at its terminal, {terminal}" if terminal else f"Reply {what}{also}"
    return "\n".join([f"**{request.name}** asks{place}: {_cut(question.text, _QUESTION)}", *lines, "", f"_{how}._"])


def _says_more(option: Option) -> bool:
    described = option.description.strip()
    return bool(described) and described.casefold() != option.label.strip().casefold()


def buttons_of(request: Request) -> tuple[Button, ...]:
    """Return the buttons of an open request."""
    if request.state is not RequestState.OPEN:
        return ()
    if request.kind is RequestKind.PERMISSION:
        allow = Button(Press.ALLOW, request.id, "Allow", style="primary")
        remember = Button(Press.REMEMBER, request.id, _REMEMBER.format(rules=", ".join(request.rules)))
        deny = Button(Press.DENY, request.id, "Deny", style="danger")
        return (allow, remember, deny) if request.rules else (allow, deny)
    question, number = request.pending, len(request.answers)
    options = question.options if question is not None else ()
    if request.kind is RequestKind.DIALOG:
        return tuple(
            Button(Press.CHOOSE, request.id, visible(option.label)[0], (number, place))
            for place, option in enumerate(options)
        )
    return tuple(
        Button(Press.OPTION, request.id, f"{place}. {visible(option.label)[0]}", (number, place - 1))
        for place, option in enumerate(options, 1)
    )


def ended_text(request: Request) -> str:
    """Return the post of a request that is over, or whose present question was answered: what, by whom, when."""
    if request.kind is RequestKind.PERMISSION:
        asked = f"**{request.name}** asked for permission to use {_asked(request)}"
    elif request.kind is RequestKind.DIALOG:
        asked = f"**{request.name}** showed a dialog in its terminal{_seen(request)}"
    else:
        said = [
            f"- {_cut(question.text, _QUESTION)}" + (f"\n  → {answer}" if answer else "")
            for question, answer in zip(request.questions, _padded(request), strict=True)
        ]
        asked = "\n".join([f"**{request.name}** asked:", *said])
    return f"{asked}\n{_how_it_ended(request)}"


def _asked(request: Request) -> str:
    """Return the tool, what of its input is not seen, and the input; in this order, for a chat may cut the end off.

    The tool's name is code: `mcp__x__y` would else be read as bold.
    """
    name = visible(request.tool)[0].replace("`", "\\x60")
    head = f"`{name}`" if name else "a tool"
    return f"{head}{_seen(request)}"


def _seen(request: Request) -> str:
    notes = "".join(f"\n{said}" for said in request.unseen.said())
    return notes + (f"\n{fenced(request.detail)}" if request.detail else "")


def _padded(request: Request) -> Sequence[str]:
    return [*request.answers, *([""] * (len(request.questions) - len(request.answers)))]


def _how_it_ended(request: Request) -> str:
    at = f", {moment_text(request.settled_at)}" if request.settled_at else ""
    if request.state is RequestState.ANSWERED:
        if request.kind is RequestKind.DIALOG:
            return f"**{visible(request.answers[0])[0]}**: chosen by {request.by}{at}."
        if request.kind is not RequestKind.PERMISSION:
            return f"**Answered** by {request.by}{at}."
        if request.remembered:
            rules = ", ".join(f"`{rule}`" for rule in request.rules)
            return f"**Allowed** by {request.by}{at}. Until its program ends, it does not ask again for {rules}."
        return f"**{'Allowed' if request.allowed else 'Denied'}** by {request.by}{at}."
    return f"**{request.reason[:1].upper()}{request.reason[1:]}**{at}."


def fenced(text: str) -> str:
    """Return the text as a block of code that nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


# ---------------------------------------------------------------- as JSON


def payload_of(request: Request) -> str:
    """Return what was asked, as JSON."""
    asked: dict[str, Any] = {"tool": request.tool, "detail": request.detail, "digest": request.digest}
    asked["rules"] = list(request.rules)
    asked["unseen"] = [getattr(request.unseen, name) for name in _UNSEEN]
    asked["questions"] = [
        {
            "question": question.text,
            "multiSelect": question.several,
            "options": [{"label": option.label, "description": option.description} for option in question.options],
        }
        for question in request.questions
    ]
    return json.dumps(asked, ensure_ascii=False)


@dataclass(frozen=True)
class HookQuestion:
    """What a client on the service's socket asks, as far as it could be understood."""

    instance: str
    key: str
    kind: RequestKind
    agent: str = MAIN
    tool: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    questions: tuple[Question, ...] = ()
    digest: str = ""  #: of the agent, the tool, the whole input, and how much of it was left out
    missing: int = 0  #: characters of the input that the client has left out
    rules: tuple[str, ...] = ()  #: see Request
    wait: float | None = None  #: seconds, where the client wants less than the configured time


def asked_of(line: Mapping[str, Any]) -> HookQuestion | None:
    """Read a client's line; None where it makes no request."""
    try:
        return _asked_of(line)
    except RecursionError:  # JSON takes more levels than what looks through it
        return None


def _asked_of(line: Mapping[str, Any]) -> HookQuestion | None:
    instance, key = line.get("instance"), line.get("key")
    if not (isinstance(instance, str) and isinstance(key, str) and 0 < len(instance) <= 80 and 0 < len(key) <= 120):
        return None
    wait = line.get("wait")
    told = wait if isinstance(wait, int | float) and not isinstance(wait, bool) else 0
    seconds = float(told) if 0 < told <= _LONGEST_WAIT else None
    given = line.get("input")
    given = given if isinstance(given, dict) else {}
    tool, agent, missing = line.get("tool"), line.get("agent"), line.get("missing")
    name, who = tool if isinstance(tool, str) else "", agent if isinstance(agent, str) and agent else MAIN
    if len(name) > _LONGEST_NAME or len(who) > _LONGEST_NAME:
        return None
    questions = questions_of(given) if line.get("op") == "ask" or name == QUESTION_TOOL else ()
    kind = RequestKind.QUESTION if questions else RequestKind.PERMISSION
    if line.get("op") == "ask":
        if not questions:
            return None
        kind = RequestKind.ASK
    left_out = missing if isinstance(missing, int) and missing > 0 else 0
    digest = _digest([kind.value, who, name, given, line.get("whole"), *([left_out] if left_out else [])])
    rules = rules_of(line.get("rules")) if kind is RequestKind.PERMISSION else ()
    return HookQuestion(instance, key, kind, who, name, given, questions, digest, left_out, rules, seconds)


def rules_of(given: Any) -> tuple[str, ...]:
    """Return the rules as Claude Code writes them, `Bash(npm test:*)`; () unless a button shows all of them whole.

    Whoever allows more than what is asked must see what that is: nothing of it is cut, hidden, or looks like something
    else.
    """
    rules = tuple(_rule(rule) for rule in given) if isinstance(given, list) else ()
    if not all(rules):
        return ()
    label = _REMEMBER.format(rules=", ".join(rules))
    shown_whole = len(label) <= _LONGEST_BUTTON and visible(label)[1] == 0 and label == " ".join(label.split())
    return rules if shown_whole and "`" not in label else ()


def _rule(rule: Any) -> str:
    """Return a rule as it is written, "" for what is none."""
    if not isinstance(rule, dict) or set(rule) - {"toolName", "ruleContent"}:
        return ""
    tool, content = rule.get("toolName"), rule.get("ruleContent")
    if not isinstance(tool, str) or not tool or not isinstance(content, str | None):
        return ""
    return tool if content is None else f"{tool}({content})"


def _digest(asked: Any) -> str:
    import hashlib  # loads OpenSSL

    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
