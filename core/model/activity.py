"""What a live session is doing, what its harness has been seen to support, and what a failed turn means. No I/O.

No capability is assumed from a version. It is proven once the instance has shown it, missing once it has shown the
opposite, and guessed until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from core.base.values import dataclass, field

if TYPE_CHECKING:
    from core.model.reasons import Because, Reason


class Capability(Enum):
    """What promises rest on."""

    BOOT_HOOK = "boot hook"  #: it says by itself that it reads
    TURN_EDGES = "turn edges"  #: hooks tell that a turn begins and ends
    QUEUE_EVIDENCE = "queue evidence"  #: what is queued in it can be told from what a turn has taken
    PERMISSION_HOOK = "permission hook"  #: a hook tells of a permission dialog, and can answer it
    MODE = "mode"  #: its reports name the permission mode
    TRANSCRIPT = "transcript form"  #: the conversation's record is found and understood
    RESUME = "resume"  #: it goes on with an earlier conversation
    MCP_APPROVAL = "MCP approval"  #: our tools are offered to its model without a dialog
    BACKGROUND_TASKS = "background tasks"  #: it tells of tasks that go on after a turn
    PLAIN_PASTES = "pasting"  #: what is pasted reaches the model as typed


class Grade(Enum):
    """How sure it is that an instance has a capability."""

    PROVEN = "proven"  #: this instance has shown it
    GUESSED = "guessed"  #: it was not needed yet
    MISSING = "missing"  #: this instance has shown that it lacks it


#: What follows for people where a capability is missing.
CONSEQUENCES: Mapping[Capability, str] = {
    Capability.BOOT_HOOK: "messages wait until its screen or another source shows that it is ready for input",
    Capability.TURN_EDGES: "its turns are known from its conversation's record and its status file, some seconds late",
    Capability.QUEUE_EVIDENCE: "a message sent during a turn is `accepted`, and it is not known when a turn takes it",
    Capability.PERMISSION_HOOK: "permission dialogs are recognised only on its screen, or answered in its terminal",
    Capability.MODE: "the current permission mode is not known",
    Capability.TRANSCRIPT: "nothing shows that a turn took a message: it is `accepted`, then `unknown`",
    Capability.RESUME: "a restart begins a new conversation",
    Capability.MCP_APPROVAL: "it may ask about our tools in a dialog, and nothing is typed meanwhile",
    Capability.BACKGROUND_TASKS: "a session with background tasks may look idle",
    Capability.PLAIN_PASTES: "its model gets long messages as pasted text, possibly not as the person's own words",
}

LONG_LINES, LONG_TEXT = 3, 800  #: a text of more line breaks or characters than this may arrive as pasted
OUR_TOOL = "mcp__the-loop"  #: begins the name of each of our tools, as a harness with MCP calls it

Shown = Mapping[Capability, bool]  #: what an instance has shown to have, and to lack


def graded(shown: Shown) -> dict[Capability, Grade]:
    """Return how sure each capability is, in the order of their declaration."""
    grades = {True: Grade.PROVEN, False: Grade.MISSING}
    return {each: grades[shown[each]] if each in shown else Grade.GUESSED for each in Capability}


def consequences(shown: Shown) -> tuple[str, ...]:
    """Return for each capability that is missing what follows for people."""
    return tuple(
        f"{each.value} is missing in this version: {CONSEQUENCES[each]}"
        for each, grade in graded(shown).items()
        if grade is Grade.MISSING
    )


class ActivityState(Enum):
    """The harness's own word; a dialog that no hook announced is all that is read off its screen."""

    STARTING = "starting"  #: spawned, and the harness has not said that it reads
    IDLE = "idle"  #: the harness said that its turn is over and no task is pending
    BUSY = "busy"  #: a turn runs, or a background task of it does
    PERMISSION = "permission"  #: it waits for a person's permission: an Enter would approve
    QUESTION = "question"  #: it waits for a person's answer
    DIALOG = "dialog"  #: a dialog is open that no hook announced: a key would answer it
    UNKNOWN = "unknown"  #: nothing is known; never taken for idle


#: an Enter would answer a dialog
ASKING_STATES = frozenset({ActivityState.PERMISSION, ActivityState.QUESTION, ActivityState.DIALOG})


def unfinished_text(tasks: tuple[str, ...]) -> str:
    """Return that these background tasks of an instance that is over had not finished; "" for none."""
    if not tasks:
        return ""
    shown = ", ".join(tasks[:_TASKS_SHOWN])
    more = f" and {len(tasks) - _TASKS_SHOWN} more" if len(tasks) > _TASKS_SHOWN else ""
    many = "1 background task" if len(tasks) == 1 else f"{len(tasks)} background tasks"
    return f"{many} had not finished when its program ended before: {shown}{more}"


_TASKS_SHOWN = 5


class Silence(Enum):
    """What a session's hooks did not tell, though it was so. Until they do, other sources are asked."""

    START = "start"  #: that it reads: another source shows it
    UNTOLD = "untold"  #: that it reads, and no other source tells
    TURNS = "turns"  #: the end of a turn


_IN_TURN = frozenset({ActivityState.PERMISSION, ActivityState.QUESTION, ActivityState.BUSY})


@dataclass(frozen=True)
class Activity:
    """One row a session: the state, since when (UTC), and the background tasks that are still open."""

    uid: str
    instance: str
    state: ActivityState
    since: datetime
    pending_tasks: tuple[str, ...] = ()
    task_names: Mapping[str, str] = field(default_factory=dict)  #: of those: what each runs, where it was told
    because: Because | None = None  #: why it is in that state, or what it asks
    remarks: tuple[Because, ...] = ()  #: what else there is to say: why its latest turn failed, when it will be stopped
    turn_started_at: datetime | None = None
    last_report_at: datetime | None = None
    mode: str = ""  #: its permission mode, by its harness's latest report that names one
    turn: str = ""  #: the harness's id of the turn that began last, "" where it named none
    turn_ended_at: datetime | None = None  #: when its harness last said that a turn was over
    ended_turn: str = ""  #: the id of that turn, "" where it named none
    shown: Mapping[Capability, bool] = field(default_factory=dict)  #: what it has shown to have (True), and to lack
    version: str = ""  #: of its program as this instance was started, "" where it was not told
    untried: str = ""  #: what a person should know of that version, "" for one that was tried
    failed: str = ""  #: why its latest turn failed, see Failure; "" once one went well
    composer_at: datetime | None = None  #: since when a text that no turn took may stand in its input line
    cut_off_tasks: tuple[str, ...] = ()  #: in words, the background tasks that ran when it ended, and ended with it
    earlier_tasks: tuple[str, ...] = ()  #: the same of the instance before it, until somebody has spoken to this one
    silence: Silence | None = None  #: its hooks are silent
    silent_since: datetime | None = None
    silent_why: Because | None = None  #: why, and what a person can do
    retrying: Because | None = (
        None  #: what its program meets and tries again by itself, None where it shows no such thing
    )

    @property
    def tried(self) -> bool:
        """Return whether its program is of a version that is known to have been tried."""
        return self.version != "" and self.untried == ""

    @property
    def untried_note(self) -> str:
        """Return what people should know of a version of its program that was never tried; "" for all others."""
        if not self.version:
            return self.untried  # it could not be asked for, and that says so
        return f"its program's version {self.version} is {self.untried}" if self.untried else ""

    @property
    def detail(self) -> str:
        """Return in words why it is in that state, and what else there is to say."""
        told = self.remarks if self.because is None else (self.because, *self.remarks)
        return "; ".join(text for each in told if (text := each.text))

    @property
    def reason(self) -> Reason | None:
        """Return the code of why it is in that state."""
        return self.because.reason if self.because is not None else None

    @property
    def between_turns(self) -> bool:
        """Return whether it is busy with background tasks alone."""
        return self.state is ActivityState.BUSY and self.reason is not None and self.reason is _codes().BETWEEN_TURNS

    @property
    def lingers(self) -> bool:
        """Return whether another source alone tells of background tasks: what a turn leaves may be gone in a moment."""
        return self.between_turns and not self.pending_tasks

    @property
    def is_cut_off(self) -> bool:
        """Return whether its latest turn was ended without its harness's word, and nothing is known since."""
        return self.reason is not None and self.reason is _codes().CUT_OFF

    @property
    def queue_left(self) -> bool:
        """Return whether its turn is over, and the next one begins with what its own queue holds."""
        return self.state is ActivityState.BUSY and self.reason is not None and self.reason is _codes().QUEUE_LEFT

    @property
    def ending(self) -> bool:
        """Return whether its hooks told that its turn is over, and another source does not say so yet."""
        return self.state is ActivityState.BUSY and self.reason is not None and self.reason is _codes().ENDING

    @property
    def at_work(self) -> bool:
        """Return whether it is busy by another source's word alone."""
        return self.state is ActivityState.BUSY and self.reason is not None and self.reason is _codes().AT_WORK

    @property
    def open_tasks(self) -> tuple[str, ...]:
        """Return its background tasks in words: what each runs, and its id."""
        names = self.task_names
        return tuple(f"{names[task]} ({task})" if names.get(task) else task for task in self.pending_tasks)

    @property
    def in_turn(self) -> bool:
        """Return whether a turn runs by the harness's word, or a dialog of it is open."""
        if self.state is ActivityState.DIALOG:  # a person may have opened it between two turns
            began, over = self.turn_started_at, self.turn_ended_at
            return began is not None and (over is None or over < began)
        return self.state in _IN_TURN and not (self.between_turns or self.queue_left or self.at_work)

    @property
    def waits_at_start(self) -> bool:
        """Return whether a dialog is open before it reads at all."""
        return (
            self.state is ActivityState.STARTING and self.reason is not None and self.reason is _codes().DIALOG_AT_START
        )

    @property
    def cut_off_at(self) -> datetime | None:
        """Return when its last turn was found cut off: the input line may hold that turn's text again."""
        return self.since if self.state is ActivityState.IDLE and self.is_cut_off else None


def _codes() -> type[Reason]:
    from core.model.reasons import Reason  # whoever lists sessions finds few that have one

    return Reason


_LONGEST = 300  #: characters of what the harness says itself
_LOOKED_AT = 1 << 14  #: of them, with blanks and secrets, which are taken out before they are cut to that


class Failure(Enum):
    """Why a turn failed on the model's side."""

    LOGIN = "not-logged-in"
    ACCOUNT = "account"  #: nobody may use it as it is
    LIMIT = "usage-limit"
    LENGTH = "too-long"
    MODEL = "no-such-model"
    SERVICE = "service"  #: the model's service is overloaded, down or cannot be reached
    OTHER = "refused"


_WHAT: Mapping[Failure, str] = {
    Failure.LOGIN: "its program is not logged in, or its key is not valid",
    Failure.ACCOUNT: "its account cannot be used",
    Failure.LIMIT: "its account has used up its limit",
    Failure.LENGTH: "its conversation is too long for the model",
    Failure.MODEL: "its model is not there for its account",
    Failure.SERVICE: "the model's service is overloaded or cannot be reached",
    Failure.OTHER: "the model's service refused the request",
}
_REMEDIES: Mapping[Failure, str] = {
    Failure.LOGIN: "log it in on {host}",
    Failure.ACCOUNT: "see to the account",
    Failure.LIMIT: "wait until the limit is over",
    Failure.LENGTH: "shorten it at its terminal, {attach}",
    Failure.MODEL: "choose another at its terminal, {attach}",
    Failure.SERVICE: "try again in some minutes",
    Failure.OTHER: "look at its terminal, {attach}",
}


def shortened(message: str) -> str:
    """Return the beginning of a program's words, several times as long as what `in_short` shows of them."""
    return " ".join(message[:_LOOKED_AT].split())


def in_short(message: str) -> str:
    """Return the harness's own words in one line, cut short where they are long."""
    said = " ".join(message.split())
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"


def what_failed(failure: Failure, message: str) -> str:
    """Return why the turn failed: our words, and the harness's own, `message`, where it has any."""
    said = in_short(message)
    return f"{_WHAT[failure]} ({said})" if said else _WHAT[failure]


def remedy_of(failure: Failure, remedies: Mapping[Failure, str], *, host: str, attach: str) -> str:
    """Return what a person can do. `remedies`: what the harness's adapter knows better; `attach`: a command."""
    return remedies.get(failure, _REMEDIES[failure]).format(host=host, attach=attach)
