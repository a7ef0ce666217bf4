"""`the-loop <chat> setup`: from nothing to a first reply, each step checked; what is done is not asked again."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING

from core.base.clock import Deadline, SystemClock
from core.base.errors import CoreError, InvalidValue, Refused
from core.cli.printing import EXIT_FAILED, EXIT_OK, has_colours, print_line, warn
from core.cli.session import Session
from core.cli.terminal import Progress
from core.commandtable import CHATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.model.rows import ServiceRow
    from core.model.session import SessionRecord
    from core.model.setup import SetUp
    from core.session.system import System

_CONNECT_SECONDS = 30.0
_THREAD_SECONDS = 120.0
_REPLY_SECONDS = 900.0
_POLL = 0.5
_ATTEMPTS = 5
_USUAL_NAME = "scribe"
_PROMPT = "Say in one sentence that you are ready, then wait for messages."


class NoConversation(Refused):
    """The setup is run where nobody can be asked, or the conversation was ended."""

    code = "no_conversation"

    def __init__(self, why: str, again: str) -> None:
        super().__init__(f"the setup talks with a person: {why}", f"run `{again}` in a terminal; it goes on from there")


class Conversation:
    """Somebody at the terminal; see core.model.setup.Person. Nothing is kept of what they answer."""

    def __init__(self, again: str, environ: Mapping[str, str]) -> None:
        self._again = again
        self._coloured = has_colours(sys.stdout, environ)
        self._steps = 0

    def step(self, title: str) -> None:
        """Begin a step."""
        self._steps += 1
        print_line("")
        self._mark("1", f"{self._steps}. {title}")

    def tell(self, text: str) -> None:
        """Say something."""
        print_line(f"   {text}")

    def done(self, text: str) -> None:
        """Say that something is well."""
        self._mark("32", f"   ok: {text}")

    def wrong(self, text: str, remedy: str) -> None:
        """Say that something is not well."""
        self._mark("31", f"   not yet: {text}")
        if remedy:
            print_line(f"   -> {remedy}")

    def ask(self, question: str, default: str = "") -> str:
        """Return the answer, or the default."""
        sys.stdout.write(f"   {question}{f' [{default}]' if default else ''}: ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            raise NoConversation("it was ended", self._again)
        return line.strip() or default

    def secret(self, question: str) -> str:
        """Return an answer that the terminal does not show."""
        sys.stdout.flush()
        try:
            return getpass.getpass(f"   {question} (not shown): ").strip()
        except EOFError as error:
            raise NoConversation("it was ended", self._again) from error

    def _mark(self, colour: str, text: str) -> None:
        if self._coloured:
            sys.stdout.write(f"\x1b[{colour}m")
        print_line(text)
        if self._coloured:
            sys.stdout.write("\x1b[0m")
            sys.stdout.flush()


def setup(kind: str, session: Session) -> int:
    """Run `the-loop <kind> setup`."""
    again = session.exact(f"`the-loop {kind} setup`").strip("`")
    if session.json:
        raise InvalidValue("the setup talks with a person", "leave --json out")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NoConversation("standard input or output is no terminal", again)
    person = Conversation(again, session.environ)
    _configured(person, session)
    session.acting(session.system)
    if session.settings.fleet.behind_gateway:
        _without_tokens(person, kind, session)
    else:
        _set_up_chat(person, kind, session)
    system = _fresh(session).system
    title = CHATS[kind]
    if not (_served(person, kind, title, system) and (record := _first_session(person, kind, title, session, system))):
        return EXIT_FAILED
    return EXIT_OK if _first_reply(person, kind, title, record, system) else EXIT_FAILED


def _fresh(session: Session) -> Session:
    """Return the same command line, which reads the configuration anew."""
    return Session(config=session.config, as_operator=session.as_operator, environ=session.environ)


def _configured(person: Conversation, session: Session) -> None:
    """See that there is a configuration file, and that nothing is wrong with it. Raises ConfigError."""
    from core.config import commands

    person.step("The configuration file")
    path = commands.where(session.config, session.environ).path
    if not path.exists():
        commands.init(session.config, session.environ)
        person.tell(f"{path} is written")
    person.done(str(session.settings.source or path))


def _without_tokens(person: Conversation, kind: str, session: Session) -> None:
    """Ask for no tokens, which are on the gateway's host. Raises InvalidValue where the chat is not enabled here."""
    from core.doctor.chats import NO_TOKENS

    person.step("The tokens")
    if not session.settings.channel(kind).enabled:
        raise InvalidValue(
            f"channels.{kind} is not enabled here, and this host of a fleet has no tokens to set it up with",
            f"copy channels.{kind} from the configuration of a host with `fleet.gateway: true`, then repeat this",
        )
    person.done(NO_TOKENS)


def _set_up_chat(person: Conversation, kind: str, session: Session) -> None:
    """Have the chat's package ask and check, and write what it yields at once."""
    from core.base.paths import StatePaths
    from core.config.channels import checked_block
    from core.config.chats import chat_info, load_part
    from core.config.editing import change_file
    from core.config.secrets import read_secrets, write_secrets
    from core.service.wiring import with_secrets

    settings, paths = session.settings, StatePaths(session.settings.state_root)
    file = paths.chat_secrets(kind)

    def keep(values: Mapping[str, str]) -> None:
        if values.items() <= read_secrets(file).items():
            return
        write_secrets(paths.root, file, values)
        person.tell(f"kept in {file}, which only you can read")
        for name in sorted(values):
            if session.environ.get(name, values[name]) != values[name]:
                person.wrong(f"the variable {name} is set in this shell, and wins over that file", f"`unset {name}`")

    set_up: SetUp = load_part(kind, chat_info(kind).setup)  # type: ignore[assignment]
    environ = with_secrets(kind, settings, session.environ)
    block = checked_block(kind, settings.channel(kind).raw, settings.source)
    for changes in set_up(person, block, environ, keep, SystemClock()):
        assert settings.source is not None, "there is a file: it was written above"
        change_file(settings.source, ("channels", kind), changes)
        person.tell(f"written into {settings.source}: {', '.join(changes)}")


def _served(person: Conversation, kind: str, title: str, system: System) -> bool:
    """Start the service, or one with the present configuration, and return whether it is connected."""
    from core.process.presence import running_service
    from core.service import hosting

    person.step("The service")
    row = hosting.connection_row(system, kind)
    if row is None or not row.running:
        ran = running_service(system.paths.service_lock) is not None
        person.tell("It is restarted, as it has another configuration; sessions live on." if ran else "It is started.")
        with Progress("starting the service", system.environ):
            if ran:
                hosting.end_service(system)
            hosting.start(system, "cli:setup", warn)
            row = _connected(kind, system)
    if row is not None and row.running:
        person.done(f"{title} is connected: {row.detail}")
        if not hosting.by_unit(system):
            person.tell("No systemd unit runs it, so it ends with your login at the latest: see deploy/README.md.")
        return True
    person.wrong(row.detail if row else "the service does not know the chat", f"see `the-loop {kind} check`")
    return False


def _connected(kind: str, system: System) -> ServiceRow | None:
    from core.service import hosting

    deadline = Deadline(system.clock, _CONNECT_SECONDS)
    while True:
        row = hosting.connection_row(system, kind)
        if (row is not None and row.running) or deadline.passed():
            return row
        system.clock.pause(_POLL)


def _first_session(
    person: Conversation, kind: str, title: str, session: Session, system: System
) -> SessionRecord | None:
    """Return a session with a thread in the chat that runs: one that there is, or one that is made now."""
    person.step("A session with a thread")
    record = _with_thread(kind, system)
    if record is not None:
        person.done(f"{record.name} has one")
        return record
    if not _made(person, kind, session, system):
        return None
    deadline = Deadline(system.clock, _THREAD_SECONDS)
    with Progress(f"waiting for its thread in {title}", system.environ):
        while (record := _with_thread(kind, system)) is None and not deadline.passed():
            system.clock.pause(_POLL)
    if record is None:
        person.wrong("it runs, and has no thread yet", f"`the-loop {kind} check`, and `the-loop events --last 20`")
    else:
        person.done(f"{record.name} is announced in {title}")
    return record


def _programs(system: System) -> list[str]:
    """Return the harnesses that could be started here, the small one of this package last."""
    from core.harness.catalogue import BUILT_IN
    from core.model.session import Definition

    def starts(name: str) -> bool:
        try:
            system.harnesses.get(name).check(Definition("first"), ())
        except CoreError:
            return False
        return True

    return sorted(filter(starts, BUILT_IN), key=lambda name: name == "bundled")


def _with_thread(kind: str, system: System) -> SessionRecord | None:
    from core.model.session import SessionRecord, Status

    bound = {binding.uid for binding in system.bindings.all(kind)}
    records = (entry for entry in system.records.all() if isinstance(entry, SessionRecord))
    return next((one for one in records if one.uid in bound and one.status is Status.RUNNING), None)


def _made(person: Conversation, kind: str, session: Session, system: System) -> bool:
    """Ask what the session is to be, until one is made and runs; False where that did not come about."""
    from pathlib import Path

    from core.base.paths import absolute_path
    from core.lifecycle.create import create_standing
    from core.model.session import ChatBinding, Definition

    programs = _programs(system)
    for _ in range(_ATTEMPTS):
        name = person.ask("Name of your first session", _USUAL_NAME)
        harness = person.ask(f"Its program ({', '.join(programs)})", programs[0])
        cwd = absolute_path(Path(person.ask("The folder in which it works", system.settings.routing.spawn_workdir)))
        chat = {kind: ChatBinding(enabled=True)}
        definition = Definition(name=name, harness=harness, cwd=str(cwd), prompt=_PROMPT, chat=chat)
        try:
            with Progress("starting the session", system.environ):
                answer = create_standing(system, definition, session.acting(system))
        except CoreError as error:
            person.wrong(error.message, error.remedy)
            continue
        if answer.ok:
            return True
        person.wrong("; ".join(row.detail for row in answer.sessions), "`the-loop doctor` looks at its program")
    return False


def _first_reply(person: Conversation, kind: str, title: str, record: SessionRecord, system: System) -> bool:
    """Return whether a reply in the session's thread has reached its agent."""
    person.step("A first reply")
    if not _answered(kind, record, system):
        person.tell(f"Reply in the thread of {record.name} in {title}, such as: What can you do?")
        deadline = Deadline(system.clock, _REPLY_SECONDS)
        with Progress("waiting for your reply", system.environ):
            while not _answered(kind, record, system) and not deadline.passed():
                system.clock.pause(_POLL)
    if _answered(kind, record, system):
        person.done(f"your reply is in {record.name}'s terminal; its answer comes in the thread")
        person.tell("All is set up. `the-loop status` shows whether it stays so, `the-loop doctor` what is wrong.")
        return True
    person.wrong("no reply has come", f"`the-loop doctor --live`, and `the-loop events --name {record.name}`")
    return False


def _answered(kind: str, record: SessionRecord, system: System) -> bool:
    from core.model.message import DELIVERED

    rows = system.inbox.with_states(record.uid, DELIVERED)
    return any(row.message.actor.startswith(f"{kind}:") for row in rows)
