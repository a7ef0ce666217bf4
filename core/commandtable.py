"""The table of commands: the words of each, who may give it, its arguments, its help, and the function that runs it.

The command line (core.cli), the slash command, its help and the manifest's usage hint (bot) and docs/commands.md are
made from this table, so a new command is one row here. `run` is what both surfaces do in the same way. What only one
surface can do (a terminal, standard input, rows as blocks) is bound by that surface, which does not import without it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from core.base.values import dataclass
from core.config.chats import has_setup, installed_kinds, title_of
from core.model.asking import Role
from core.model.session import Verb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from core.delivery.saying import Queue, Said
    from core.lifecycle.look import Screen
    from core.loops.verbs import Asker, LoopAnswer
    from core.model.rows import Answer
    from core.session.system import System

    Result = Answer | LoopAnswer | Queue | Said | Screen  #: each surface shows each of them
    Run = Callable[..., Result]  #: called with a Call, and with what the command takes by its name

_CHAT_SECONDS = 3.0  #: that somebody in a chat waits for their message's first fate


class Kind(Enum):
    """What an argument takes. The value stands for it in a usage line."""

    TEXT = "TEXT"
    PATH = "PATH"
    INTEGER = "INTEGER"
    NUMBER = "NUMBER"
    FLAG = "flag"  #: it is given or not
    SWITCH = "switch"  #: `--word` or `--no-word`


@dataclass(frozen=True)
class Argument:
    """One thing that a command takes at the command line: an option, or a word by its place."""

    word: str  #: `--reason`; by its place: what stands for it in help, `NAME`
    help: str = ""
    kind: Kind = Kind.TEXT
    required: bool = False
    many: bool = False  #: it may be repeated
    default: Any = None  #: a number is shown in help, unless it is 0
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    variable: str = ""  #: the environment variable that is read in its place
    shown: str = ""  #: what stands for an option's value in help; "": its kind
    name: str = ""  #: the parameter of what runs the command; "": as its word is

    @property
    def is_option(self) -> bool:
        """Return whether it is given by its word."""
        return self.word.startswith("--")

    @property
    def parameter(self) -> str:
        """Return the parameter of what runs the command."""
        return self.name or self.word.strip("-").replace("-", "_").lower()

    @property
    def value(self) -> str:
        """Return what stands for its value: `NAME`, `TEXT`, `never|on-failure`."""
        if not self.is_option:
            return self.word
        return "|".join(self.choices) or self.shown or self.kind.value

    @property
    def shows_default(self) -> bool:
        """Return whether help names the default."""
        return bool(self.default) and self.kind in (Kind.INTEGER, Kind.NUMBER)


@dataclass(frozen=True)
class Call:
    """Who gives a command, and to which system."""

    system: System
    actor: str  #: `cli:ann`, `agent:builder`, `<chat>:U1`
    who: str = ""  #: what a frame calls them; "": as `actor` does
    instance: str | None = None  #: the agent's, where one gives it in its own name

    @property
    def asker(self) -> Asker:
        """Return who asks about loops. Raises Refused; see `asker_of`."""
        from core.loops.verbs import asker_of

        return asker_of(self.system.records, self.actor, self.instance)


@dataclass(frozen=True)
class Command:
    """A row of the table. At least one of `cli` and `chat` is not ""."""

    cli: str  #: its words behind `the-loop`: "standing pause"; "": the command line has none such
    help: str  #: the first sentence stands in lists of commands
    right: Verb | None = None  #: by which an agent's command line is judged; None: it may
    takes: tuple[Argument, ...] = ()
    chat: str = ""  #: its usage behind `/the-loop`: "status", "pause NAME", "loops [NAME]", "say NAME TEXT"
    role: Role = Role.MEMBER  #: who may give it in a chat
    run: Run | None = None
    #: what a chat runs for many sessions, after it has asked which: called with a Call and their names
    several: Callable[..., Answer] | None = None
    slow: str = ""  #: what it is doing, where that may take seconds

    @property
    def group(self) -> str:
        """Return the group of the command line in which it stands; "": it stands alone."""
        return self.cli.rpartition(" ")[0]

    @property
    def word(self) -> str:
        """Return its verb in a chat."""
        return self.chat.partition(" ")[0]

    @property
    def names(self) -> bool:
        """Return whether a chat can name a session."""
        return "NAME" in self.chat

    @property
    def alone(self) -> bool:
        """Return whether a chat need not name a session."""
        return " NAME" not in self.chat

    @property
    def takes_text(self) -> bool:
        """Return whether a chat's words behind the session's name are its text."""
        return self.chat.endswith(" TEXT")

    @property
    def summary(self) -> str:
        """Return the first sentence of its help."""
        return self.help.partition(". ")[0].rstrip(".") + "."


class NoHandler(Exception):
    """A command is in the table, and nothing runs it on a surface that offers it."""

    def __init__(self, verb: str) -> None:
        super().__init__(f"`{verb}` has no handler: give its row a `run`, or bind one in the surface that offers it")


def in_chat(table: Iterable[Command]) -> Mapping[str, Command]:
    """Return the commands of a chat by their verbs, in their order."""
    return {command.word: command for command in table if command.chat}


def check_bound(verbs: Iterable[str], handlers: Iterable[str]) -> None:
    """Raise NoHandler for the first verb that has none."""
    bound = frozenset(handlers)
    for verb in verbs:
        if verb not in bound:
            raise NoHandler(verb)


# ---------------------------------------------------------------- what both surfaces run


def _say(call: Call, name: str, text: str) -> Said:
    from core.delivery.saying import say

    return say(call.system, name, text, actor=call.actor, who=call.who, wait=_CHAT_SECONDS)


def _screen(call: Call, name: str, lines: int = 40, history: bool = False, window: bool = False) -> Screen:
    from core.lifecycle.look import screen

    return screen(call.system, name, lines, history=history, window=window)


def _queue(call: Call, name: str) -> Queue:
    from core.delivery.saying import queue_of

    return queue_of(call.system, name)


def _delete(call: Call, name: str) -> Answer:
    from core.lifecycle.create import delete_standing

    return delete_standing(call.system, name, call.actor)


def _start(call: Call, name: str | None, fresh: bool = False, conversation: str = "") -> Answer:
    from core.base.errors import InvalidValue
    from core.lifecycle.start import start_standing

    if fresh or conversation:
        if name is None or (fresh and conversation):
            raise InvalidValue(
                "a conversation is chosen for one session, by one of the two options",
                "give NAME, and either --fresh or --conversation",
            )
        from core.lifecycle.pause import change_conversation

        return change_conversation(call.system, name, call.actor, conversation)
    return start_standing(call.system, name, call.actor)


def _begin_anew(call: Call, name: str) -> Answer:
    return _start(call, name, fresh=True)


def _stop(call: Call, name: str | None, reason: str = "") -> Answer:
    from core.lifecycle.stop import stop_standing

    return stop_standing(call.system, name, call.actor, reason)


def _stop_several(call: Call, names: Sequence[str]) -> Answer:
    from core.lifecycle.stop import stop_named

    return stop_named(call.system, names, call.actor)


def _restart(call: Call, name: str) -> Answer:
    from core.lifecycle.pause import restart_standing

    return restart_standing(call.system, name, call.actor)


def _pause(call: Call, name: str, hard: bool = False, reason: str = "") -> Answer:
    from core.lifecycle.pause import pause_standing

    return pause_standing(call.system, name, call.actor, reason, hard=hard)


def _pause_several(call: Call, names: Sequence[str]) -> Answer:
    from core.lifecycle.pause import pause_named

    return pause_named(call.system, names, call.actor)


def _resume(call: Call, name: str) -> Answer:
    from core.lifecycle.pause import resume_standing

    return resume_standing(call.system, name, call.actor)


def _interrupt(call: Call, name: str) -> Answer:
    from core.lifecycle.interrupt import interrupt_standing

    return interrupt_standing(call.system, name, call.actor)


def _announce(call: Call, name: str) -> Answer:
    from core.lifecycle.announce import announce_standing

    return announce_standing(call.system, name, call.actor)


def _list_loops(call: Call, name: str) -> LoopAnswer:
    from core.loops.verbs import list_loops

    return list_loops(call.system.settings, call.system.records, call.system.loops, call.asker, name)


def _create_loop(call: Call, name: str, **asked: Any) -> LoopAnswer:
    from core.loops.verbs import create_loop
    from core.model.loop import LoopRequest

    return create_loop(call.system, call.asker, name, LoopRequest(**asked))


def _stop_loop(call: Call, loop_id: str, reason: str) -> LoopAnswer:
    from core.loops.verbs import stop_loop

    return stop_loop(call.system, call.asker, loop_id, reason)


def _pause_loop(call: Call, loop_id: str, reason: str) -> LoopAnswer:
    from core.loops.verbs import pause_loop

    return pause_loop(call.system, call.asker, loop_id, reason)


def _resume_loop(call: Call, loop_id: str, reason: str) -> LoopAnswer:
    from core.loops.verbs import resume_loop

    return resume_loop(call.system, call.asker, loop_id, reason)


def _run_loop(call: Call, loop_id: str, reason: str) -> LoopAnswer:
    from core.loops.verbs import run_loop_now

    return run_loop_now(call.system, call.asker, loop_id, reason)


def _schedule_loop(call: Call, loop_id: str, delay: str, reason: str) -> LoopAnswer:
    from core.loops.verbs import schedule_next_run

    return schedule_next_run(call.system, call.asker, loop_id, delay, reason)


# ---------------------------------------------------------------- the table

CHATS: Mapping[str, str] = {kind: title_of(kind) for kind in installed_kinds()}  #: what people call each chat

GROUPS: Mapping[str, str] = {
    "standing": "Standing sessions: named agents that outlive the service.",
    "loop": "Loops: instructions that a session gets again and again. An agent has the loops of its own session.",
    "config": "The configuration file.",
    "fleet": "A fleet: several machines whose sessions share one chat. See fleet.md.",
    **{kind: f"The {title} channel." for kind, title in CHATS.items()},
}

_NAME = Argument("NAME", required=True)
_ANY = Argument("NAME")  #: None: every one
_OWN = Argument("NAME", default="")  #: "": an agent's own, or all of them
_MESSAGE = Argument("ID", required=True, name="message_id")
_LOOP = Argument("ID", required=True, name="loop_id")
_KEPT = Argument("--reason", "Stored with the loop.", default="")
_MARK = Argument("--reason", "Stored with the hold.", default="")
_LINES = Argument("--lines", "How many lines, from the end.", Kind.INTEGER, default=50, least=1, most=2000)


def thread_options(kind: str) -> tuple[str, str]:
    """Return the parameters of `standing create` that tell whether a session has a thread in a chat, and where."""
    stem = kind.replace("-", "_").lower()
    return stem, f"{stem}_channel"


def _thread_in(kind: str, title: str) -> tuple[Argument, Argument]:
    return (
        Argument(f"--{kind}", f"Whether the session gets a {title} thread.", Kind.SWITCH, default=False),
        Argument(f"--{kind}-channel", f"The channel's id; default: channels.{kind}.channel.", default=""),
    )


def _of_chat(kind: str, title: str) -> tuple[Command, ...]:
    """Return the commands of a chat's own group."""
    url = Argument("--url", f"With read.mode http: the https address that {title} calls.", shown="URL", default="")
    setup = Command(
        f"{kind} setup",
        "Set it up, from nothing to a first reply. Each step is checked, and what is done already is not asked again. "
        "Tokens are not shown as you type them; they are kept in a file that only you and the service can read.",
        Verb.CONFIGURE,
    )
    return (
        *((setup,) if has_setup(kind) else ()),
        Command(
            f"{kind} manifest",
            f'Print the app manifest. It goes into {title}\'s "create an app from a manifest".',
            takes=(url,),
        ),
        Command(
            f"{kind} check",
            f"Ask {title} whether everything is set up. It checks tokens, scopes, the channel and the listed people. "
            "Exit code 1 if anything is wrong.",
            Verb.STATUS,
            slow=f"asking {title}",
        ),
    )


COMMANDS: tuple[Command, ...] = (
    Command("", "Show which sessions run, and what they do.", chat="status"),
    Command(
        "start",
        "Start the service, and the sessions that start automatically.",
        Verb.START,
        slow="starting the service and its sessions",
    ),
    Command(
        "stop",
        "End every session gracefully, then the service. The next start resumes the conversations.",
        Verb.STOP,
        slow="ending the sessions, then the service",
    ),
    Command(
        "restart",
        "Stop everything, then start it again. Conversations are resumed, and everything that ran runs again.",
        Verb.RESTART,
        slow="ending everything, and starting it again",
    ),
    Command(
        "status", "Show whether everything is up. Exit code 0 only if everything that should run does.", Verb.STATUS
    ),
    Command(
        "doctor",
        "Check the whole installation, and say what helps. Exit code 1 if anything failed or could not be asked.",
        Verb.STATUS,
        (
            Argument(
                "--live",
                "Also post a message in each chat's channel, see that it comes back, and remove it.",
                Kind.FLAG,
            ),
            Argument("--strict", "Exit code 1 for warnings, too.", Kind.FLAG),
        ),
    ),
    Command(
        "top",
        "Show the sessions as a live table, with the screen of one. "
        "The arrows select a session, Enter shows its screen, q quits. Off a terminal it is printed once.",
        Verb.LIST,
        (
            Argument("NAME"),
            Argument("--interval", "Seconds between two looks.", Kind.NUMBER, default=2.0, least=0.5, most=3600),
            Argument("--once", "Print it once.", Kind.FLAG),
        ),
    ),
    Command(
        "page",
        "Print a link to the service's page. There, everything can be seen and done in a browser. "
        "A link is good for one login, within five minutes.",
        Verb.OPEN_PAGE,
        (Argument("--log-out", "Log all browsers out instead; unused links end, too.", Kind.FLAG),),
    ),
    Command(
        "standing list",
        "List all sessions, with their details.",
        Verb.LIST,
        (
            Argument("--all", "Those of all hosts of the fleet.", Kind.FLAG, name="everywhere"),
            Argument("--host", "Those of this host of the fleet.", shown="HOST", default=""),
        ),
        chat="list",
    ),
    Command("standing get", "Show everything about one session.", Verb.GET, (_NAME,)),
    Command(
        "standing create",
        "Create a session that the configuration does not declare. It is also started, unless --no-start is given.",
        Verb.CREATE,
        (
            _NAME,
            Argument("--harness", "The agent program; default: routing.defaultHarness.", default=""),
            Argument("--cwd", "The folder that the session works in; default: routing.spawnWorkdir.", default=""),
            Argument("--prompt", "The session's task."),
            Argument("--prompt-file", "A file with the session's task, read at each start with a new conversation."),
            Argument("--description", "What the session is for; lists show it.", default=""),
            Argument("--harness-arg", "An argument for the harness; may be repeated.", many=True, name="harness_args"),
            *(argument for kind, title in CHATS.items() for argument in _thread_in(kind, title)),
            Argument("--no-auto-start", "Do not start the session automatically.", Kind.FLAG),
            Argument(
                "--restart",
                "on-failure: resume it after a crash, at most limits.restartsPerHour times an hour.",
                choices=("never", "on-failure"),
                default="never",
            ),
            Argument("--no-start", "Only record the session; do not start it.", Kind.FLAG),
        ),
        chat="create",
        role=Role.OPERATOR,
        slow="making and starting the session",
    ),
    Command(
        "standing delete",
        "Stop a created session and remove it. The name can be used again when the deletion is complete.",
        Verb.DELETE,
        (_NAME,),
        run=_delete,
        slow="stopping the session, and removing it",
    ),
    Command(
        "standing say",
        "Type a message into the agent's terminal, once. `-` reads standard input. A message never starts a session. "
        "With --json, `delivered` is true only if a turn is known to have taken the message.",
        Verb.SAY,
        (
            _NAME,
            Argument("SOURCE"),
            Argument("--text", "What to say."),
            Argument("--file", "A file that holds what to say; - is standard input.", Kind.PATH),
            Argument("--actor", "Who says it, if not the user of this terminal."),
            Argument("--raw", "Leave out the frame that says who speaks.", Kind.FLAG),
            Argument("--wait", "Seconds to wait for confirmation from the agent.", Kind.NUMBER, default=30.0),
            Argument("--no-wait", "Store the message and do not wait.", Kind.FLAG),
            Argument(
                "--wait-answer",
                "Wait until the turn is over, and print its answer alone on standard output. "
                "Exit code 1 if there is none.",
                Kind.FLAG,
            ),
            Argument(
                "--answer-within",
                "With --wait-answer: how many seconds to wait for the answer.",
                Kind.NUMBER,
                default=600.0,
                least=0,
                most=86400,
            ),
        ),
        chat="say NAME TEXT",
        run=_say,
        slow="waiting until the agent takes it",
    ),
    Command(
        "standing attach",
        "Attach to the session's terminal. Read-only unless --write; with --json: print the command that attaches.",
        Verb.ATTACH,
        (_NAME, Argument("--write", "Your keys reach the agent, too.", Kind.FLAG)),
    ),
    Command(
        "standing screen",
        "Show what the session's terminal shows.",
        Verb.SCREEN,
        (
            _NAME,
            _LINES,
            Argument("--history", "All lines that tmux has kept, the last 10000 at most.", Kind.FLAG),
            Argument(
                "--window", "The window's size, how much history is kept, and the window's own options.", Kind.FLAG
            ),
        ),
        chat="screen NAME",
        run=_screen,
    ),
    Command(
        "standing logs",
        "Show the previous instance's last output, and the screen now. It also says how that instance ended.",
        Verb.LOGS,
        (_NAME, _LINES),
    ),
    Command(
        "standing history",
        "List the session's conversations, and how to take one up again. "
        "Without NAME: the sessions that were deleted, as far as the event log goes back.",
        Verb.HISTORY,
        (_OWN,),
    ),
    Command(
        "standing pause",
        "Pause a session: no new turn begins. New messages wait; background jobs go on.",
        Verb.PAUSE,
        (_NAME, Argument("--hard", "Interrupt the running turn; otherwise it ends by itself.", Kind.FLAG), _MARK),
        chat="pause [NAME]",
        run=_pause,
        several=_pause_several,
    ),
    Command(
        "standing resume",
        "End a pause. The waiting messages are delivered in order.",
        Verb.RESUME,
        (_NAME,),
        chat="resume NAME",
        run=_resume,
    ),
    Command(
        "standing interrupt",
        "End the running turn, or reject the open dialog. The session goes on.",
        Verb.INTERRUPT,
        (_NAME,),
        chat="interrupt NAME",
        run=_interrupt,
        slow="ending the turn",
    ),
    Command(
        "standing start",
        "Start a session, or every session that is not held. Its conversation is resumed if possible.",
        Verb.START,
        (
            _ANY,
            Argument(
                "--fresh",
                "Begin a new conversation. If the session runs, it is ended first. The old conversation is kept: "
                "`standing history NAME` lists it.",
                Kind.FLAG,
            ),
            Argument("--conversation", "Take up this earlier conversation.", default="", shown="ID"),
        ),
        chat="start NAME",
        role=Role.OPERATOR,
        run=_start,
        slow="starting",
    ),
    Command(
        "",
        "End the session's conversation and begin a new one. The old one is kept.",
        Verb.RESTART,
        chat="new NAME",
        role=Role.OPERATOR,
        run=_begin_anew,
    ),
    Command(
        "standing stop",
        "End a session gracefully, or every session. "
        "With NAME, its waiting messages are cancelled and it stays down until it is started.",
        Verb.STOP,
        (_ANY, _MARK),
        chat="stop [NAME]",
        role=Role.OPERATOR,
        run=_stop,
        several=_stop_several,
        slow="ending",
    ),
    Command(
        "standing restart",
        "End the session gracefully and resume the same conversation.",
        Verb.RESTART,
        (_NAME,),
        chat="restart NAME",
        role=Role.OPERATOR,
        run=_restart,
        slow="ending it, and starting it again",
    ),
    Command(
        "standing announce",
        "Update the session's announcement. If the session has no thread any more, a new one is opened.",
        Verb.ANNOUNCE,
        (_NAME,),
        run=_announce,
    ),
    Command(
        "standing queue",
        "List the messages that are being delivered or wait, in order.",
        Verb.QUEUE,
        (_NAME, Argument("--text", "Show the messages, not only their length.", Kind.FLAG)),
        chat="queue NAME",
        run=_queue,
    ),
    Command("standing cancel", "Discard a message that waits; `queue NAME` lists the ids.", Verb.CANCEL, (_MESSAGE,)),
    Command(
        "standing confirm",
        "Release a message that arrived late and needs confirmation. `queue NAME` lists the ids.",
        Verb.CONFIRM,
        (_MESSAGE,),
    ),
    Command(
        "loop list",
        "List a session's loops; without NAME, the open loops of all. Ended ones are listed last.",
        Verb.LOOPS,
        (_OWN,),
        chat="loops [NAME]",
        run=_list_loops,
    ),
    Command(
        "loop create",
        "Create a loop; an agent leaves NAME out.",
        Verb.LOOP,
        (
            _OWN,
            Argument("--instruction", "What to do at each run; `-` reads standard input.", required=True),
            Argument("--interval", "Time between its runs: 30s, 1.5h, 5 minutes."),
            Argument(
                "--cron",
                "A cron expression (five fields). Without --interval and --cron, the agent schedules each next run.",
            ),
            Argument("--time-zone", "The time zone of --cron: an IANA name such as Europe/Berlin; default: UTC."),
            Argument(
                "--keep-alive",
                "It has no age limit, and its session is restarted after a crash.",
                Kind.FLAG,
            ),
            Argument("--max-runs", "It is complete after this number of runs.", Kind.INTEGER),
        ),
        run=_create_loop,
    ),
    Command(
        "loop stop",
        "End a loop for good.",
        Verb.LOOP,
        (_LOOP, Argument("--reason", "Stored with the loop, and shown in the thread.", default="")),
        run=_stop_loop,
    ),
    Command("loop pause", "Pause a loop until it is resumed.", Verb.LOOP, (_LOOP, _KEPT), run=_pause_loop),
    Command(
        "loop resume",
        "Resume a loop that is paused, or blocked after failures. Missed runs are not repeated.",
        Verb.LOOP,
        (_LOOP, _KEPT),
        run=_resume_loop,
    ),
    Command(
        "loop run",
        "Make a loop due now. It runs when its session is idle.",
        Verb.LOOP,
        (_LOOP, _KEPT),
        run=_run_loop,
    ),
    Command(
        "loop schedule",
        "Set the next run of a loop whose agent chooses each run.",
        Verb.LOOP,
        (
            _LOOP,
            Argument("--in", "A time span such as 10m, or seconds.", required=True, name="delay"),
            Argument("--reason", "Why at that time.", required=True),
        ),
        run=_schedule_loop,
    ),
    Command(
        "post",
        "Post into a session's thread. An agent posts into its own thread and leaves NAME out.",
        Verb.POST,
        (
            _OWN,
            Argument("--text", "Markdown; `-` reads standard input.", default=""),
            Argument("--file", "A file to attach; an agent's file must be in its own folder.", Kind.PATH),
        ),
    ),
    Command(
        "ask",
        "Ask the people of a session's thread, and print the answer. Exit code 1 if nobody answers.",
        Verb.ASK,
        (
            _OWN,
            Argument("--question", "The question.", required=True),
            Argument("--option", "An answer to choose; may be repeated.", many=True, name="options"),
            Argument(
                "--wait", "Seconds to wait; default and maximum: limits.approvalWaitSeconds.", Kind.NUMBER, least=1
            ),
        ),
        slow="waiting for an answer",
    ),
    Command(
        "mcp",
        "Serve a session's tools (MCP) on standard input and output. A harness runs it inside the session.",
        takes=(
            Argument(
                "--token-file",
                "The session's file `mcp-token`; default: $THE_LOOP_MCP_TOKEN_FILE, which every session has.",
                variable="THE_LOOP_MCP_TOKEN_FILE",
            ),
        ),
    ),
    Command(
        "events",
        "Print the event log, oldest first. With --json, one object a line.",
        Verb.EVENTS,
        (
            Argument("--name", "Only this session's events."),
            Argument("--last", "Only this number of events, from the end.", Kind.INTEGER, least=1),
            Argument("--follow", "Continue with new events until interrupted.", Kind.FLAG),
        ),
    ),
    Command(
        "config check",
        "Report everything that is wrong with the file. Exit code 1 if anything is wrong. "
        "A missing default file is not an error.",
    ),
    Command("config show", "Print the configuration in effect, with every key."),
    Command("config schema", "Print the JSON Schema of the file, for editors."),
    Command("config init", "Write a commented configuration file. An existing one is not changed.", Verb.CONFIGURE),
    Command("config path", "Print which file is read, and why on standard error."),
    Command(
        "fleet init",
        "Make the fleet in its database, or bring it up to date. "
        "THE_LOOP_FLEET_ADMIN holds the admin's URL, which is never stored.",
        Verb.FLEET,
        slow="asking the fleet's database",
    ),
    Command(
        "fleet invite",
        "Print an invitation for a host, with THE_LOOP_FLEET_ADMIN. It works once, for one hour.",
        Verb.FLEET,
        (
            Argument("HOST", required=True),
            Argument("--gateway", "The host may be the one that speaks with the chat for all.", Kind.FLAG),
            Argument(
                "--address",
                "SERVER[:PORT], where the host reaches the database; default: as the admin's URL says.",
                default="",
            ),
            Argument(
                "--without-tls-check",
                "A server whose certificate the host need not check; may be repeated.",
                many=True,
                shown="SERVER",
            ),
        ),
        slow="asking the fleet's database",
    ),
    Command(
        "fleet join",
        "Make this machine a host of the fleet. The invitation is asked for, or read from standard input.",
        Verb.FLEET,
    ),
    Command("fleet list", "List the hosts of the fleet, as this machine's service knows them.", Verb.FLEET),
    Command(
        "fleet leave",
        "Take this machine out of the fleet. Refused while messages or posts wait.",
        Verb.FLEET,
        slow="asking the fleet's database",
    ),
    Command(
        "fleet evict",
        "Take a host out of the fleet at once, with THE_LOOP_FLEET_ADMIN. It cannot log in any more; what waits for it "
        "is kept.",
        Verb.FLEET,
        (Argument("HOST", required=True),),
        slow="asking the fleet's database",
    ),
    *(command for kind, title in CHATS.items() for command in _of_chat(kind, title)),
    Command(
        "completion",
        "Print the completion script of a shell. It completes commands, options and the names of sessions.",
        takes=(Argument("SHELL", required=True, choices=("bash", "zsh", "fish")),),
    ),
    Command(
        "serve",
        "Run the service in the foreground.",
        Verb.START,
        (Argument("--tmux", "Run only the tmux server (used by the unit the-loop-tmux).", Kind.FLAG),),
    ),
    Command(
        "demo",
        "Run the whole product here, without an account or network. It has a page, and a session in a terminal.",
        Verb.START,
        (
            Argument("--name", "The demo's name, if several run: each has its own state, session and page."),
            Argument(
                "--port",
                "Port of the workspace's page; default: the port of its last run.",
                Kind.INTEGER,
                default=0,
                least=0,
                most=65535,
            ),
        ),
    ),
    Command("", "Show the commands that you may use.", chat="help"),
)
