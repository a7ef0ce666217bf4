"""Harnesses (agent programs): what they can do, what they report, and how one is launched. No I/O."""

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from core.base.clock import iso
from core.base.values import dataclass, field
from core.model.activity import ActivityState, Capability, Failure
from core.model.pane import InputLine, View
from core.model.session import Definition

TOOL_SERVER = "toolbridge.py"  #: in a session's folder: serves its tools to its harness
TOOL_LIST = "tools.json"  #: there too: what its list of tools is


class IdPolicy(Enum):
    """When the conversation's id is known."""

    PREASSIGNED = "preassigned"  #: we choose it before the first start (Claude Code)
    LEARNT = "learnt"  #: the harness tells it after start (Codex, OpenCode)
    NONE = "none"  #: there is none, or we never learn it


class PasteStyle(Enum):
    """How text is written into the pane."""

    BRACKETED = "bracketed"  #: our own markers around it
    AUTO = "auto"  #: markers where tmux tells that the program has asked for them, and as PLAIN where it does not
    PLAIN = "plain"  #: no markers; several lines go by file
    KEYLESS = "keyless"  #: not by the keyboard at all: the adapter delivers it (a queue command, HTTP)


@dataclass(frozen=True)
class Echo:
    """How an input line shows what was pasted into it."""

    mark: str  #: stands at its beginning
    folded: str  #: a pattern of what it shows in the place of a long text


@dataclass(frozen=True)
class Traits:
    """What delivery and the gate must know of a harness."""

    id_policy: IdPolicy
    title: str = ""  #: what people call the program; "": by the harness's name
    paste: PasteStyle = PasteStyle.BRACKETED
    settle: float = 0.3  #: least seconds between the paste and its CR
    echo: Echo | None = None  #: its input line shows a paste once it was read: the CR waits for that; None: not looked
    queues_input: bool = False  #: takes messages while a turn runs
    evidence: bool = False  #: its own records show which messages a turn took
    recorded_within: float = 1.5  #: seconds from an Enter to its record of the text; then a second Enter is pressed
    boot_signal: bool = False  #: says by itself when it reads
    failure_hook: bool = True  #: a hook tells of a turn that failed; False: its own record alone does
    lacks: frozenset[Capability] = frozenset()  #: what none of its versions that were tried can do
    turn_gate: bool = False  #: a hook can block turns born inside the harness
    clear: bytes | None = None  #: keys that empty its composer; a write of their own, `settle` away from any paste
    clear_lines: int = 20  #: how many lines one such write empties for sure; more take several writes
    interrupt: bytes | None = None  #: a key that ends the running turn, or rejects the open dialog; None: there is none
    take_back: bytes | None = (
        None  #: a key that moves all that its own queue holds into the composer; None: there is none
    )
    stash: bytes | None = None  #: a key that puts half-typed text aside and brings it back after the next message
    inline_limit: int = 100_000  #: bytes; longer messages go by file
    paste_lines: int = 0  #: newlines of a paste that its model is still told is typed; 0: it knows no such limit
    paste_chars: int = 0  #: the same in UTF-16 units; a longer message goes in as several pastes
    paste_pieces: int = 0  #: so many pastes at once are read in a moment; what would need more goes by file
    keeps_tabs: bool = True  #: a tab that is pasted into it is one for its model; False: a text with such goes by file
    own_tags: tuple[str, ...] = ()  #: names of tags that it changes in what is typed; a text with one goes by file
    argument_limit: int = 96 * 1024  #: bytes of a boot prompt as an argument; longer ones go by file
    flush: float = 0.0  #: seconds after its last report in which a SIGTERM may lose the end of the conversation
    input_line: bool = False  #: its adapter can tell whether the screen shows the line in which a message is written
    plugin: str = ""  #: the file in a session's folder of a plugin that reports; "": its hooks run the reporter
    tools: bool = False  #: its adapter hands it our tools, which then ask for no permission
    remedies: Mapping[Failure, str] = field(default_factory=dict)  #: see `activity.remedy_of`
    prompt_argument: bool = True  #: takes the boot prompt as an argument; False: it is pasted like any message


@dataclass(frozen=True)
class Installed:
    """The program that a session's start would run, and the versions of it that were tried whole, oldest first.

    `version` is "" where it could not be asked for, and `trouble` says why.
    """

    version: str
    tried: tuple[str, ...]
    trouble: str = ""

    def note(self) -> str:
        """Return what a person should know of the version; "" for one that was tried."""
        if self.trouble:
            return f"its version could not be asked for: {self.trouble}"
        if self.version in self.tried:
            return ""
        if not self.tried:
            return "no version of it was tried in every case: what is told of its sessions may be wrong"
        oldest, newest = self.tried[0], self.tried[-1]
        tried = oldest if oldest == newest else f"{oldest} to {newest}"
        if numbers_of(self.version) > numbers_of(newest):
            found = f"newer than any that was tried ({tried})"
        elif numbers_of(self.version) < numbers_of(oldest):
            found = f"older than any that was tried ({tried})"
        else:
            found = f"never tried; tried were {', '.join(self.tried)}"
        return f"{found}: what is told of its sessions may be wrong"


def numbers_of(version: str) -> tuple[int, ...]:
    """Return a version's numbers, by which an older one comes first."""
    return tuple(int(number) for number in re.findall(r"\d{1,18}", version.partition("-")[0]))


@dataclass(frozen=True)
class SessionContext:
    """One instance of one session, as an adapter sees it. Paths are absolute."""

    name: str
    uid: str
    instance: str
    cwd: Path
    folder: Path  #: the session's own folder (0700)
    spool: Path  #: where this instance's hook reports go
    notify: Path  #: the FIFO that wakes the service
    args: tuple[str, ...]  #: the operator's harness arguments, resolved
    session_id: str | None  #: the conversation

    @property
    def token_file(self) -> Path:
        """The token by which its tools know the session: a path alone may stand in files, arguments and variables."""
        return self.folder / "mcp-token"

    @property
    def tool_server(self) -> tuple[str, ...]:
        """The command that serves its tools on standard input and output."""
        return (sys.executable, "-I", "-S", str(self.folder / TOOL_SERVER), str(self.token_file))

    @property
    def service_socket(self) -> Path:
        """Where the service is asked: beside the FIFO that wakes it."""
        return self.notify.with_name("service.sock")


@dataclass(frozen=True)
class Launch:
    """What the pane runs: argv without a shell, and variables added to the cleaned environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    keeps_rows: bool = False  #: draws each row by itself: the terminal cuts one that is too wide, and breaks none


MAIN = "main"  #: the agent of a harness that nobody named


@dataclass(frozen=True)
class Report:
    """One hook report: its file name (which orders them) and the JSON object that the harness gave."""

    instance: str
    name: str
    payload: Mapping[str, Any]
    by_record: bool = False  #: no hook wrote it: the conversation's own record tells the same

    @property
    def mode(self) -> str:
        """Return the permission mode that the harness is in; "" where it does not say."""
        found = self.payload.get("permission_mode")
        return found if isinstance(found, str) and len(found) <= 40 else ""

    @property
    def agent(self) -> str:
        """Return which agent within the harness it is about; "main" where it names none."""
        found = self.payload.get("agent_id")
        return found if isinstance(found, str) and found else MAIN


def stamped(name: str, fallback: datetime) -> datetime:
    """Return when a report of that name was written: it begins with nanoseconds since the epoch."""
    stamp = name.split("-", 1)[0]
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) == 19):
        return fallback
    return datetime.fromtimestamp(int(stamp) / 1e9, UTC)


@dataclass(frozen=True)
class Ready:
    """The harness reads its keyboard. `session_id` is the conversation that it is in now."""

    session_id: str | None
    source: str  #: startup | resume | clear | compact


@dataclass(frozen=True)
class PromptReported:
    """A hook says that the harness received this text. A receipt, and no proof that a turn took it.

    Some versions report a text when they put it into their queue, and not again when a turn takes it. `internal` when
    nobody typed it (a finished background task, whose id is `task`). `turn`: the id of the turn that it names, "" where
    it names none; that of a turn which runs already means that the text waits for it.
    """

    prompt: str
    internal: bool = False
    task: str | None = None
    turn: str = ""
    pasted: tuple[str, ...] = ()  #: parts of the text that its model gets as pasted from somewhere else, not as typed
    scheduled: bool = False  #: the harness's own schedule began it


@dataclass(frozen=True)
class TextTaken:
    """The conversation's own record holds this text: a turn took it.

    `begins`: a turn began with it; False: it was slipped into the running one. `at`: when (UTC), None where that is not
    told. `turn`: the turn's id, "" where it is not told.
    """

    prompt: str
    internal: bool = False
    begins: bool = True
    at: datetime | None = None
    turn: str = ""
    pasted: tuple[str, ...] = ()  #: see PromptReported


@dataclass(frozen=True)
class TextReturned:
    """The harness's own queue gave this text back into its input line: no turn took it. Both: see TextQueued."""

    prompt: str
    at: datetime | None = None


@dataclass(frozen=True)
class TextQueued:
    """The harness's own queue holds this text; it will be taken at the end of the turn or of the tool call.

    `prompt`: "" where its record does not name the text, which 2.1.332's does not while it compacts.
    `at`: since when (UTC), None where that is not told. A queue can be read about long after it was emptied.
    """

    prompt: str
    at: datetime | None = None
    pasted: tuple[str, ...] = ()  #: see PromptReported


@dataclass(frozen=True)
class TextBlocked:
    """A hook that is not ours has kept this text from beginning a turn. `why`: in its words. `at`: see TextQueued."""

    prompt: str
    why: str
    at: datetime | None = None


@dataclass(frozen=True)
class TurnEnded:
    """The turn is over. `pending_tasks` are background tasks that go on; `answer` is the last thing it said."""

    answer: str
    pending_tasks: tuple[str, ...] = ()
    turn: str = ""  #: the turn's id, "" where it is not told
    task_names: Mapping[str, str] = field(default_factory=dict)  #: what each of the tasks runs, where that is told


@dataclass(frozen=True)
class TurnFailed:
    """The turn ended in an error of the model's side (rate limit, billing, server)."""

    error: str  #: the harness's own name for it
    message: str
    failure: Failure = Failure.OTHER
    turn: str = ""  #: the turn's id, "" where it is not told


@dataclass(frozen=True)
class TurnSeen:
    """A turn as the conversation's own record shows it so far. Times are those of its lines (UTC)."""

    began_at: datetime
    turns: tuple[str, ...]  #: its ids: one for each text that it took together, or one for all; "" where none is told
    prompts: tuple[str, ...]  #: the texts that it began with
    internal: bool = False  #: nobody typed them
    answered: bool = False  #: the model has said something, or failed to
    answer: str = ""  #: the last thing that it said
    over_at: datetime | None = None
    failed: TurnFailed | None = None
    cut_off: bool = False  #: it was ended in the terminal
    abandoned: bool = False  #: and it left the conversation, with all that it had taken
    hook_trouble: str = ""  #: why a hook of it could not run, in the harness's words

    @property
    def turn(self) -> str:
        """The id that its end is told with."""
        return self.turns[-1]


@dataclass(frozen=True)
class Retry:
    """What a harness shows while it tries a request again by itself."""

    reason: str  #: in its words, "" where it has none
    attempt: int
    most: int


@dataclass(frozen=True)
class TurnBlocked:
    """The turn-start hook blocked a turn that nobody typed; its text is kept.

    `task`: the background task whose end it tells, None for a message of ours that waited in the harness's own queue,
    and for what its own schedule began.
    """

    prompt: str
    task: str | None = None
    cut_off: bool = False  #: the task had not finished: it was ended
    scheduled: bool = False  #: it is of the harness's own schedule


@dataclass(frozen=True)
class ToolStarted:
    """A tool call begins; a permission dialog may follow. `detail`: its command, its file or the like."""

    tool: str
    detail: str = ""
    turn: str = ""  #: the id of the turn that calls it, "" where it is not told
    call: str = ""  #: the id of the call, "" where it is not told


@dataclass(frozen=True)
class ToolEnded:
    """A tool call is over, and so is any dialog about it. `task` is the background task it left, if any."""

    tool: str
    task: str | None = None
    task_name: str = ""  #: what the task runs, "" where that is not told
    call: str = ""  #: the id of the call, "" where it is not told
    failed: bool = False  #: its harness says so; where it tells no outcome, it is taken to have gone well


@dataclass(frozen=True)
class DialogReported:
    """The harness waits for a person."""

    question: bool  #: False: a permission dialog, which an Enter would approve
    summary: str


@dataclass(frozen=True)
class Ended:
    """The harness is going away. `by_person` when somebody asked it to (`/exit`)."""

    reason: str
    by_person: bool


HarnessEvent = (
    Ready
    | PromptReported
    | TextTaken
    | TextQueued
    | TextReturned
    | TextBlocked
    | TurnEnded
    | TurnFailed
    | TurnBlocked
    | ToolStarted
    | ToolEnded
    | DialogReported
    | Ended
)


@dataclass(frozen=True)
class StatusProbe:
    """A second opinion of what a live harness does, from a source other than its hooks."""

    state: ActivityState
    asks: str = ""  #: in its words, what it waits for
    turn_over: bool = False  #: no turn runs and no dialog is open, whatever background tasks do
    written_at: datetime | None = field(default=None, compare=False)  #: when the source said so, where that is known
    session_id: str = field(default="", compare=False)  #: the conversation that it is in, "" where that is not told

    @property
    def between_turns(self) -> bool:
        """Return whether its background tasks alone keep it busy."""
        return self.turn_over and self.state is ActivityState.BUSY


class PlanState(Enum):
    """How far an agent is with an item of its plan."""

    PENDING = "pending"
    IN_PROGRESS = "in progress"
    DONE = "done"


@dataclass(frozen=True)
class PlanItem:
    """One item of an agent's plan, or of its to-do list."""

    text: str
    state: PlanState


@dataclass(frozen=True)
class Usage:
    """Tokens as the model's server counted them, and what they cost. The three counts have no token in common."""

    input: int = 0  #: sent, and not read from a cache
    output: int = 0  #: written by the model; what it thought belongs to it
    cached: int = 0  #: sent, and read from a cache
    cost: float | None = None  #: USD; None where the harness's records do not tell

    def __add__(self, other: "Usage") -> "Usage":
        """Return both together; what they cost only where it is known of both."""
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(self.input + other.input, self.output + other.output, self.cached + other.cached, cost)

    def to_json(self) -> dict[str, Any]:
        """Return `{input, output, cached, costUsd}`."""
        return {"input": self.input, "output": self.output, "cached": self.cached, "costUsd": self.cost}


@dataclass(frozen=True)
class Limit:
    """A limit of the account that was reached."""

    what: str  #: in the harness's words
    until: datetime | None = None  #: when it ends (UTC), None where that is not told


@dataclass(frozen=True)
class Working:
    """What an agent is doing, by its harness's own records. None: they do not say; it is never guessed."""

    plan: tuple[PlanItem, ...] | None = None  #: in its order; (): it has none, or has emptied it
    tool: str | None = None  #: the tool that runs now, with its command or file; "": none runs
    model: str | None = None
    context_used: int | None = None  #: tokens that the latest request to the model held: its answer is not among them
    context_size: int | None = None  #: tokens that one can hold
    turn: Usage | None = None  #: of the turn that runs, or ran last
    session: Usage | None = None  #: of the conversation so far
    by_model: Mapping[str, Usage] = field(default_factory=dict)  #: the same by model, where that is told
    limit: Limit | None = None  #: reached, and no answer has come since

    def to_json(self) -> dict[str, Any]:
        """Return `{plan, tool, model, context, usage, limit}`: what each surface shows, and what is stored."""
        plan = None if self.plan is None else [{"text": item.text, "state": item.state.value} for item in self.plan]
        until = iso(self.limit.until) if self.limit and self.limit.until else None
        return {
            "plan": plan,
            "tool": self.tool,
            "model": self.model,
            "context": {"used": self.context_used, "size": self.context_size},
            "usage": {
                "turn": self.turn and self.turn.to_json(),
                "session": self.session and self.session.to_json(),
                "byModel": {model: usage.to_json() for model, usage in self.by_model.items()},
            },
            "limit": self.limit and {"what": self.limit.what, "until": until},
        }


class Transcript(Protocol):
    """The harness's own record of one conversation, read forward from where it was opened."""

    def new_events(self) -> tuple[HarnessEvent, ...]:
        """Return what was added since the last call. Raises StoreBroken where it cannot be read."""
        ...


class TurnRecord(Protocol):
    """The turns of one conversation, by the harness's own record of it."""

    def new_turns(self) -> tuple[TurnSeen, ...]:
        """Return the turns of which something new was written since the last call, each as it stands now.

        In their order. Raises StoreBroken where the record cannot be read.
        """
        ...


class Harness(Protocol):
    """One agent program."""

    name: str
    traits: Traits

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse what cannot run. Raises HarnessNotInstalled, UnsupportedHarness, InvalidValue."""
        ...

    def dialog_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return which dialog the program would open at its start there, and what settles it; "" where none is known.

        It is a person's to answer, and nothing of ours does.
        """
        ...

    def installed(self) -> Installed | None:
        """Return which version of the program a start would run; None where none was ever tried against another."""
        ...

    def silence_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return what would keep a session there from telling what it does, and the remedy; "" for nothing known."""
        ...

    def new_session_id(self) -> str | None:
        """Return an id for a fresh conversation, or None where it is learnt later."""
        ...

    def resumable(self, context: SessionContext) -> bool:
        """Return whether the context's conversation can be resumed, by the harness's own files."""
        ...

    def missing(self, context: SessionContext) -> str:
        """Return why a conversation that is not resumable is not, in words that name the place that was looked at."""
        ...

    def answered(self, context: SessionContext) -> bool:
        """Return whether the context's conversation has had a turn. Asked of those alone whose records are evidence."""
        ...

    def prepare(self, context: SessionContext) -> None:
        """Write hook settings into the session's folder and pre-seed trust. Raises TrustFailed."""
        ...

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Return what the pane runs; `prompt` is the boot prompt, within the argument limit."""
        ...

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return what a hook report means; () for one that means nothing to us. Pure."""
        ...

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Open the conversation's record; None where the harness keeps none."""
        ...

    def turns(self, context: SessionContext, since: datetime) -> TurnRecord | None:
        """Open the record of the turns that were written down after that moment; None where none is kept.

        Raises StoreBroken where it cannot be read.
        """
        ...

    def end_recorded(self, context: SessionContext, since: datetime) -> bool:
        """Return whether the conversation's own record says that a turn has ended since then. False is no word."""
        ...

    def probe_status(self, context: SessionContext, pane_pid: int) -> StatusProbe | None:
        """Ask a source other than the hooks what the live harness does; None where none knows."""
        ...

    def working(self, context: SessionContext) -> Working | None:
        """Return what the agent is doing by the harness's own records; None where it keeps none that we can read.

        It is asked every few seconds while the session lives, by one thread. Only what is new since the last call is
        read, and a bounded part of it; what is not read to its end yet is answered as None.
        Raises StoreBroken where the records are there and cannot be read.
        """
        ...

    def input_line(self, view: View) -> InputLine | None:
        """Return the line in which a message is written; None where it is not shown. See Traits.input_line."""
        ...

    def remark(self, dialog: str) -> str:
        """Return what a person should know of a dialog of that text besides what it says itself; "" for nothing."""
        ...

    def screen_ready(self, screen: str) -> bool | None:
        """Return whether the screen shows that a harness without a boot signal reads; None if it has no ready sign."""
        ...

    def retry_shown(self, screen: str) -> Retry | None:
        """Return what the screen tells of a request that is tried again by itself; None where there is none."""
        ...
