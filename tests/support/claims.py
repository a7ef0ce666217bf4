"""Drives sessions whose program behaves in ways of its own, and finds what is claimed of them and is not so.

Each session runs the program of tests.fakes.claude, which writes down what it really does. Claims are what `say` and
the other verbs answer, the rows at any moment, and the events. A claim is false only if the program had done otherwise
for some time: what it does reaches its reader a moment later.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from core.base.errors import CoreError
from core.config.loading import load
from core.delivery.saying import say
from core.lifecycle.interrupt import interrupt_standing
from core.lifecycle.look import get_standing, list_standing
from core.lifecycle.pause import pause_standing, restart_standing, resume_standing
from core.model.activity import Capability, Grade
from core.model.message import MessageState
from core.model.reasons import Reason
from core.model.rows import Row
from core.model.session import Outcome
from core.model.texts import text as text_of
from core.service.wiring import build_system
from core.session.system import System
from embedded.workspace.thread import WorkspaceThread
from tests.fakes.claude import install
from tests.support.lines import entries
from tests.support.product import Product
from tests.support.talking import rows
from tests.support.tmux import PATIENCE, wait_until

ACTOR = "cli:ann"
LATENCY = 5.0  #: seconds in which what a program does must have reached the rows, on a slow machine too
REST = 2.0  #: seconds in which a paused session is watched
TICK = 0.01  #: seconds by which two clocks of one machine may seem to differ
QUIET = 2.0  #: seconds without any change after which a drive is over
_AS_PASTED = text_of(Reason.AS_PASTED)
UNDER_WAY = ("pending", "queued", "claimed", "pasted", "submitted", "accepted")
NOT_TAKEN = frozenset({MessageState.PENDING, MessageState.QUEUED, MessageState.UNKNOWN})


@dataclass(frozen=True)
class Deed:
    """One thing that the program did."""

    at: float
    what: str
    text: str


@dataclass(frozen=True)
class Told:
    """What a verb answered, and between which moments it ran."""

    verb: str
    began: float
    ended: float
    outcome: str
    detail: str = ""
    words: str = ""  #: of a say


@dataclass
class Case:
    """One session, and everything that was said to and of it."""

    behaviour: str
    name: str
    system: System
    truth: Path
    workspace: WorkspaceThread | None = None
    thread: str = ""
    told: list[Told] = field(default_factory=list)
    seen: list[tuple[float, float, Row]] = field(default_factory=list)  #: rows, and when the look began and ended
    trouble: str = ""
    tmux: Callable[..., str] | None = None

    # ---- acts

    def say(self, text: str, wait: float = 3.0) -> None:
        """Say it, and keep the answer."""
        began = time.time()
        try:
            said = say(self.system, self.name, text, actor=ACTOR, wait=wait)
        except CoreError as error:
            self.told.append(Told("say", began, time.time(), "refused", f"{text}: {error}"))
        else:
            self.told.append(Told("say", began, time.time(), said.state.value, text, " ".join(said.messages)))

    def type(self, text: str) -> None:
        """Type it at the terminal, and enter it."""
        assert self.tmux is not None
        target, received = f"=loop-standing-{self.name}:", len(self.deeds("received"))
        self.tmux("send-keys", "-t", target, "-l", text)
        time.sleep(0.3)  # a person's pace: read together they would be a paste
        self.tmux("send-keys", "-t", target, "Enter")
        self.wait("received", received + 1)

    def reply(self, text: str) -> None:
        """Say it in the thread."""
        assert self.workspace is not None
        self.workspace.say("alice", "agents", text, self.thread)

    def verb(self, name: str, act: Callable[[System], Any]) -> None:
        """Run a verb, and keep its answer."""
        began = time.time()
        try:
            [row] = act(self.system).sessions
        except CoreError as error:
            self.told.append(Told(name, began, time.time(), "refused", str(error)))
        else:
            self.told.append(Told(name, began, time.time(), row.outcome.value, row.detail))

    def busy(self, seconds: float = 60) -> None:
        """Let a turn run for so long, where it takes messages at all."""
        over, text = len(self.deeds("over")), f"sleep {seconds:g}"
        self.say(text)
        if self.told[-1].outcome in ("confirmed", "accepted"):
            self.wait("began", over + 1)
        else:  # a slow machine may take longer than a say waits
            wait_until(
                lambda: len(self.deeds("began")) > over or self.waits(text), f"{self.name} is busy, or takes none"
            )

    def wait(self, what: str, count: int = 1) -> None:
        """Wait until the program has done that so many times."""
        wait_until(lambda: len(self.deeds(what)) >= count, f"{self.name}: {count} times {what}; {self.deeds()}")

    # ---- eyes

    def deeds(self, *what: str) -> list[Deed]:
        """Return what the program did, of these kinds."""
        return [Deed(**each) for each in entries(self.truth) if not what or each["what"] in what]

    def in_turn(self, since: float, until: float) -> bool:
        """Return whether one turn ran throughout that time."""
        deeds = self.deeds("began", "over")
        ends = [*(deed.at for deed in deeds[1:]), float("inf")]
        return any(d.what == "began" and d.at <= since and until <= end for d, end in zip(deeds, ends, strict=False))

    def has(self, what: str) -> str:
        """Return all texts of that kind of deed."""
        return "\n".join(deed.text for deed in self.deeds(what))

    def waits(self, text: str) -> bool:
        """Return whether the message of that text waits in our own queue, for something that may take long."""
        found = [row.state for row in rows(self.system, self.name) if row.message.text == text]
        return found == [MessageState.QUEUED]

    def story(self) -> str:
        """Return what was said of it and what it did, in order, for whoever reads that a claim is false."""
        told = [(each.began, f"{each.verb} {each.detail!r}") for each in self.told]
        told += [(each.ended, f"{each.verb} answered {each.outcome}: {each.detail}") for each in self.told]
        told += [(each.at, f"did: {each.what} {each.text[:80]!r}") for each in self.deeds()]
        stood = [
            (row.updated_at.timestamp(), f"{row.message.text!r} is {row.state.value}: {row.detail}")
            for row in rows(self.system, self.name)
        ]
        return "\n".join(f"{at:.2f} {what}" for at, what in sorted([*told, *stood]))

    def states(self) -> tuple[str, ...]:
        """Return where its messages stand."""
        return tuple(f"{row.state.value} {row.updated_at}" for row in rows(self.system, self.name))


# ---------------------------------------------------------------- claims


def false_claims(case: Case, events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return every claim about the session that is not so, in words."""
    found = [case.trouble] if case.trouble else []
    found += _of_messages(case, [event for event in events if event.get("name") == case.name])
    found += of_answers(case)
    found += _of_thread(case)
    found += [claim for began, ended, row in case.seen if (claim := of_row(case, began, ended, row))]
    if case.deeds("entered"):
        found.append("an Enter of ours answered a dialog")
    return list(dict.fromkeys(found))


def untold(case: Case) -> list[str]:
    """Return the messages of which it is not known in the end that a turn took them."""
    return [row.message.text for row in rows(case.system, case.name) if row.state is not MessageState.CONFIRMED]


def _of_messages(case: Case, events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows(case.system, case.name):
        text, marker = row.message.text, f"#{row.message.marker}]"
        taken = [deed for deed in case.deeds("taken") if marker in deed.text]
        has = [deed for deed in case.deeds("received") if marker in deed.text]
        if len(taken) > 1:
            yield f"{text!r} was taken {len(taken)} times"
        if any(deed.text.count(" via cli #") > 1 for deed in taken):
            yield f"{text!r} was glued to another"
        for event in events:
            if event["event"] != "standing.confirmed" or event["message"] != row.message.id:
                continue
            proof = taken if event["detail"] == "confirmed" else has
            if is_wrapped(proof) is not (event.get("reason") == _AS_PASTED):
                yield f"the event of {text!r} told whether its model gets it as pasted, and it is not so"
            if not any(deed.at <= _epoch(event["ts"]) + TICK for deed in proof):
                yield f"{text!r} was told as {event['detail']} before it was so"
    yield from _of_states(case)


def is_wrapped(deeds: Sequence[Deed]) -> bool:
    """Return whether a model gets what these tell of as pasted from somewhere else."""
    return any("<pasted_content id=" in deed.text for deed in deeds)


def _of_states(case: Case) -> Iterator[str]:
    """Judge where the messages stand."""
    for row in rows(case.system, case.name):
        marker = f"#{row.message.marker}]"
        taken = any(marker in deed.text for deed in case.deeds("taken"))
        yield from _of_state(case, row.state, row.message.text, marker, taken=taken)


def _of_state(case: Case, state: MessageState, text: str, marker: str, *, taken: bool) -> Iterator[str]:
    if taken and state in (MessageState.CONFIRMED, MessageState.ACCEPTED, MessageState.UNKNOWN):
        return
    if taken:
        yield f"{text!r} is {state.value}, and a turn took it"
    elif state is MessageState.ACCEPTED:
        last = [deed.what for deed in case.deeds() if marker in deed.text or deed.what == "left"][-1:]
        if last != ["queued"]:
            yield f"{text!r} is accepted, and the program has it no more ({''.join(last) or 'it never had'})"
    elif state not in NOT_TAKEN:
        yield f"{text!r} is {state.value}, and no turn took it"


def _of_thread(case: Case) -> Iterator[str]:
    """Judge what the thread shows: a reply is ticked off only if a turn has had it, and repeated by no answer else."""
    if case.workspace is None:
        return
    over = len(case.deeds("over"))
    for message in case.workspace.replies("agents", case.thread):
        text = message["text"]
        has = any(f"] {text}" in deed.text for deed in case.deeds("taken"))
        marks = case.workspace.reactions("agents", message["ts"])
        if "bot_id" not in message and "white_check_mark" in marks and not (has and over):
            yield f"the thread ticks {text!r} off, and no turn has done it"
        if (
            "bot_id" not in message
            and "eyes" in marks
            and not any(text in deed.text for deed in case.deeds("received"))
        ):
            yield f"the thread shows {text!r} as taken in, and the program never had it"


def of_answers(case: Case) -> Iterator[str]:
    for told in case.told:
        if told.verb == "say" and told.outcome in ("confirmed", "accepted"):
            wanted = "taken" if told.outcome == "confirmed" else "received"
            had = [deed for deed in case.deeds(wanted) if told.detail in deed.text and deed.at <= told.ended + TICK]
            if not had:
                yield f"say answered {told.outcome} for {told.detail!r}, and it was not so"
            elif is_wrapped(had) is not (_AS_PASTED in told.words):
                yield f"say told of {told.detail!r} whether its model gets it as pasted, and it is not so"
        if told.verb == "interrupt" and told.outcome == Outcome.INTERRUPTED.value:
            over = [deed for deed in case.deeds("over") if told.began <= deed.at <= told.ended + TICK]
            if not over:
                yield "interrupt answered that the turn ended, and it did not"
        if told.verb == "pause" and told.outcome == Outcome.PAUSED.value:
            yield from _of_pause(case, told)


def _of_pause(case: Case, told: Told) -> Iterator[str]:
    """Judge a hard pause that was told as done: no turn runs, and none begins, until it is over."""
    ends = [each.began for each in case.told if each.verb == "resume" and each.began > told.ended]
    end = ends[0] if ends else time.time()
    if case.in_turn(told.ended + TICK, min(end, told.ended + REST)):
        yield "pause answered that it is paused, and its turn ran on"
    if [deed for deed in case.deeds("began") if told.ended + TICK < deed.at < end]:
        yield "a turn began while it was told as paused"


def of_row(case: Case, began: float, ended: float, row: Row, latency: float = LATENCY) -> str:
    """Judge a row: what it says must have been so at some moment shortly before, or while it was made."""
    since = began - latency
    dialogs = case.deeds("dialog")
    activity = row.activity.value if row.activity is not None else ""
    if activity == "idle" and case.in_turn(since, ended):
        return "the row says idle, and a turn runs"
    if activity in ("permission", "question") and not [deed for deed in dialogs if deed.at <= ended]:
        return f"the row says {activity}, and no dialog was ever open"
    return ""


def _epoch(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


# ---------------------------------------------------------------- drives


def say_when_idle(case: Case) -> None:
    """Say one thing after the other."""
    case.say("one thing")
    case.say("another thing")


def say_in_mid_turn(case: Case) -> None:
    """Say something while a turn runs that ends by itself."""
    case.busy(3)
    case.say("meanwhile")


def say_in_a_turn_of_its_queue(case: Case) -> None:
    """Say something in a turn that began with what a person had queued at the terminal: no hook tells of such."""
    taken = len(case.deeds("taken"))
    case.type("sleep 6")
    case.wait("taken", taken + 1)
    case.type("sleep 3")
    case.wait("taken", taken + 2)
    case.say("meanwhile", wait=10.0)


def restart_with_a_queue(case: Case) -> None:
    """Restart it while its own queue holds a message."""
    case.busy()
    case.say("over the restart")
    case.verb("restart", lambda system: restart_standing(system, case.name, ACTOR))


def pause_with_a_queue(case: Case) -> None:
    """Pause it at once while its own queue holds a message that is long work, and go on after a while."""
    case.busy()
    case.say("sleep 59")
    case.verb("pause", lambda system: pause_standing(system, case.name, ACTOR, hard=True))
    time.sleep(REST)  # what it is to do meanwhile is nothing
    case.verb("resume", lambda system: resume_standing(system, case.name, ACTOR))


def interrupt_with_a_queue(case: Case) -> None:
    """Interrupt its turn while its own queue holds a message."""
    case.busy()
    case.say("over the interruption")
    case.verb("interrupt", lambda system: interrupt_standing(system, case.name, ACTOR))


def say_at_a_dialog(case: Case) -> None:
    """Say something while a dialog is open that nobody answers."""
    case.say("ask permission", wait=1.0)
    case.wait("dialog")
    case.say("behind the dialog")


def reply_and_interrupt(case: Case) -> None:
    """Reply in the thread while a turn runs that a reply began, and interrupt that."""
    over = len(case.deeds("over"))
    case.reply("sleep 60")
    case.wait("began", over + 1)
    case.reply("into the queue")
    wait_until(lambda: "into the queue" in case.has("received") or case.waits("into the queue"), f"{case.name} has it")
    case.verb("interrupt", lambda system: interrupt_standing(system, case.name, ACTOR))


def reply_one_after_the_other(case: Case) -> None:
    """Reply twice in the thread, the second time once the first was answered."""
    for number, text in enumerate(("the first reply", "the second reply"), 1):
        case.reply(text)
        wait_until(lambda text=text: answers_to(case, text), f"{case.name} has answered {text!r}", PATIENCE)  # type: ignore[misc]
        wait_until(lambda number=number: _ticked(case) >= number, f"{case.name}: {number} are ticked off", PATIENCE)  # type: ignore[misc]


def answers_to(case: Case, text: str) -> list[str]:
    """Return what the thread got in answer to a reply."""
    assert case.workspace is not None
    found = [each for each in case.workspace.replies("agents", case.thread) if "bot_id" in each]
    return [each["text"] for each in found if each["text"].startswith("You said") and text in each["text"]]


def _ticked(case: Case) -> int:
    assert case.workspace is not None
    found = [each for each in case.workspace.replies("agents", case.thread) if "bot_id" not in each]
    return sum("white_check_mark" in case.workspace.reactions("agents", each["ts"]) for each in found)


class ClaimedProduct(Product):
    """A product whose sessions run the program of tests.fakes.claude, each with a behaviour of its own."""

    def __init__(self, folder: Path, behaviours: Sequence[str], workspace: WorkspaceThread | None = None) -> None:
        self.sessions = {behaviour.replace(" ", "-"): behaviour for behaviour in behaviours}
        super().__init__(folder, workspace)
        (folder / "bin").mkdir()
        (folder / "truth").mkdir()
        install(folder / "bin")

    def document(self) -> dict[str, Any]:
        """Return the usual configuration with a session a behaviour."""
        document = super().document()
        document["routing"]["defaultHarness"] = "claude"
        document["routing"]["tmux"]["startTimeoutSeconds"] = 5
        document["routing"]["tmux"]["commandTimeoutSeconds"] = 30  # twenty sessions start at the same time
        sessions = [
            {
                "name": name,
                "harnessArgs": ["--behave", behaviour, "--truth", str(self.truth(name))],
                "slack": {"enabled": self._workspace is not None},
            }
            for name, behaviour in self.sessions.items()
        ]
        return {**document, "standingSessions": {"enabled": True, "sessions": sessions}}

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the usual environment, in which the program is found."""
        environ = super().environ()
        return {**environ, "PATH": f"{self.folder / 'bin'}:{environ['PATH']}", **changes}

    def truth(self, name: str) -> Path:
        """Return the file in which the session's program writes what it does."""
        return self.folder / "truth" / f"{name}.jsonl"

    def system(self) -> System:
        """Return the ports of another process that works on the same state: each thread has its own."""
        environ = self.environ()
        return build_system(load(self.config, environ), environ)

    def case(self, name: str) -> Case:
        """Return the case of a session, with its thread where there is a workspace."""
        thread = self.root(name) if self._workspace is not None else ""
        system, truth = self.system(), self.truth(name)
        return Case(self.sessions[name], name, system, truth, self._workspace, thread, tmux=self.tmux)

    def drive(self, act: Callable[[Case], None], needless: Sequence[str] = ()) -> list[Case]:
        """Drive every session at the same time, each until it is quiet, and look at all of them meanwhile.

        `needless`: behaviours whose messages need not arrive, and are waited for a short time only.
        """
        cases = [self.case(name) for name in self.sessions]
        with self._watched(cases), ThreadPoolExecutor(len(cases)) as pool:
            list(pool.map(lambda case: _driven(case, act, needless=case.behaviour in needless), cases))
        return cases

    @contextmanager
    def _watched(self, cases: Sequence[Case]) -> Iterator[None]:
        over = threading.Event()
        by_name = {case.name: case for case in cases}

        def look() -> None:
            system = self.system()
            while not over.wait(0.3):
                began = time.time()
                for row in list_standing(system):
                    by_name[row.name].seen.append((began, time.time(), row))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _driven(case: Case, act: Callable[[Case], None], *, needless: bool) -> None:
    try:
        act(case)
        _wait_quiet(case, (5 if needless else 15) * QUIET)
        wait_until(lambda: not _now_false(case), f"{case.name}: {_now_false(case)}", every=0.2)
    except AssertionError as error:
        case.trouble = str(error)


def _now_false(case: Case) -> list[str]:
    """Return what is said that is not so, once all is quiet: of the row, and of where messages stand."""
    began = time.time()
    row = get_standing(case.system, case.name)
    claims = (of_row(case, began, time.time(), row, latency=0.0), _of_pasting(case, row))
    return [*_of_states(case), *(claim for claim in claims if claim)]


def _of_pasting(case: Case, row: Row) -> str:
    """Judge what the row says of how texts reach the model of the program that runs now."""
    ends = [deed.at for deed in case.deeds("left")]
    wrapped = is_wrapped([deed for deed in case.deeds("taken") if not ends or deed.at > ends[-1]])
    said = (row.capabilities or {}).get(Capability.PLAIN_PASTES.value) == Grade.MISSING.value
    return "" if said is wrapped else "the row says otherwise how texts reach its model"


def _wait_quiet(case: Case, patience: float) -> None:
    """Wait until neither the program nor a message has moved for a while; `patience` seconds where one is under way."""
    seen: list[tuple[float, object]] = [(time.monotonic(), None)]

    def quiet() -> bool:
        state = (len(case.deeds()), case.states())
        if state != seen[0][1]:
            seen[0] = (time.monotonic(), state)
        moves = any(word.startswith(UNDER_WAY) for word in case.states())
        return time.monotonic() - seen[0][0] >= (patience if moves else QUIET)

    wait_until(quiet, f"{case.name} is quiet", PATIENCE, every=0.1)
