"""Start a session for a task that somebody wrote in a channel, from a template of the operator's file.

The message is the task only: harness, folder, brief and lifetime are the template's. A task is committed under its
message's key before the chat is told that it arrived; a worker makes the session, and finds after any crash what was
made already: the name comes from the key, the record says which message it belongs to, and the inbox knows the key.
"""

import hashlib
import logging
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from core.base.errors import CoreError, InvalidValue, RecordUnreadable, Refused
from core.base.failpoints import Failpoint, failpoint
from core.base.names import new_message_id
from core.base.text import duration_text
from core.base.values import replace
from core.chat.creating import root_folder
from core.chat.inbound import Holds, Inbound, Passed, check_author, check_team, reply_key, text_of
from core.harness.programs import run_program
from core.lifecycle.create import create_standing
from core.lifecycle.stop import stop_standing
from core.model.asking import Role
from core.model.channel import IncomingChange, IncomingReply, IncomingTask, Template, Verdict
from core.model.message import Attachment
from core.model.posts import NewPost, OutboundKind
from core.model.session import Binding, ChatBinding, Definition, Phase, SessionRecord
from core.model.tasks import TaskRow, TaskState
from core.session.system import System
from core.store.tasks import Tasks

_LOG = logging.getLogger(__name__)
_GIT_SECONDS = 60.0
_LOOK_SECONDS = 5.0
_ATTEMPTS = 5
_KNOWN_DAYS = 2  #: at least: a chat may send a message again for a day
_BRANCH = "the-loop/"
_ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR")


class NoWorktree(CoreError):
    """git made no worktree."""

    code = "no_worktree"


def name_of(template: str, key: str) -> str:
    """Return the session's name for a task: the template's and eight letters of the message's key, always the same."""
    return f"{template}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def worktree_of(root: Path, name: str) -> Path:
    """Return where the worktree of a session is: beside the repository, so that nothing in that sees it."""
    return root.parent / f"{root.name}.worktrees" / name


def make_worktree(root: Path, name: str, environ: dict[str, str]) -> Path:
    """Return a new worktree of the repository, on a branch of its own, within a minute. Raises NoWorktree.

    No hook of the repository runs. What an attempt that was cut short has left is taken away first.
    """
    path = worktree_of(root, name)
    kept = {key: environ[key] for key in _ENVIRONMENT if key in environ} | {"GIT_TERMINAL_PROMPT": "0"}
    git = ("git", "-C", str(root), "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
    try:
        if path.exists():
            run_program((*git, "worktree", "remove", "-f", "-f", str(path)), kept, _GIT_SECONDS)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        code, said = run_program((*git, "worktree", "add", "-B", f"{_BRANCH}{name}", str(path)), kept, _GIT_SECONDS)
    except OSError as error:
        raise NoWorktree(f"git made no worktree of {root}: {error}", "look at the repository") from error
    if code != 0:
        raise NoWorktree(f"git made no worktree of {root}: {' '.join(said.split())[:300]}", "look at the repository")
    return path


class TaskIntake:
    """Takes tasks in. `holds` tells who has which role now."""

    def __init__(self, system: System, tasks: Tasks, kind: str, holds: Holds, wake: threading.Event) -> None:
        self._system = system
        self._tasks = tasks
        self._kind = kind
        self._holds = holds
        self._wake = wake

    def take(self, task: IncomingTask) -> Verdict:
        """Commit the task if its author may start one; who may not is told, once a day. Raises StoreBroken."""
        reply, template = task.message, task.template
        if check_author(reply) is not None:
            return Verdict.DROPPED
        if check_team(reply) is not None or not self._holds(reply.author, template.role):
            self._refuse(reply, template)
            return Verdict.DROPPED
        try:
            text_of(reply)
        except InvalidValue:
            if not reply.files:
                why = "there is no task in it. To do: mention me with a task"
                self._whisper(reply, template, f"empty:{reply_key(reply)}", why)
                return Verdict.DROPPED
        if reply.confirm:
            why = f"it was {reply.confirm}. To do: write it again"
            self._whisper(reply, template, f"late:{reply_key(reply)}", why)
            return Verdict.DROPPED
        key, now = reply_key(reply), self._system.clock.now()
        asked = {"message": _packed(reply), "template": _packed_template(template)}
        with failpoint(Failpoint.TASK_COMMIT):
            new = self._tasks.add(key, self._kind, name_of(template.name, key), asked, now)
        self._wake.set()
        return Verdict.COMMITTED if new else Verdict.DUPLICATE

    def change(self, changes: Sequence[IncomingChange]) -> None:
        """Apply what authors did to tasks that no session has yet: an edit counts, a deletion withdraws.

        What a session has is a message like any other. Raises StoreBroken.
        """
        for change in changes:
            row = self._tasks.get(reply_key(change.reply))
            if row is None or row.state is not TaskState.PENDING:
                continue
            before, _ = _unpacked(row)
            if change.deleted:
                self._tasks.move(row, TaskState.WITHDRAWN)
                self._wake.set()
            elif change.reply.author == before.author and not change.only_quotes:
                now = replace(before, text=change.reply.text, quoted=change.reply.quoted, files=change.reply.files)
                self._tasks.ask(row, {**row.asked, "message": _packed(now)})

    def _refuse(self, reply: IncomingReply, template: Template) -> None:
        self._system.events.emit(
            "channel.dropped", level="warning", actor=f"{self._kind}:{reply.author}", reason="unauthorized-actor",
            detail="task", message=reply.ts, channel=reply.channel, thread=reply.ts,
        )  # fmt: skip
        which = "operators" if template.role is Role.OPERATOR else "authorizedUsers"
        member = reply.author.rpartition(":")[2]
        why = f"you are not on the list of people who may start one here. Your member id is `{member}`. To do: ask the "
        why += f"operator of the-loop to add this id to `channels.{self._kind}.{which}`"
        self._whisper(reply, template, f"{self._kind}:{member}:{self._system.clock.now():%Y-%m-%d}", why)

    def _whisper(self, reply: IncomingReply, template: Template, once: str, why: str) -> None:
        """Tell the author alone, and `once`, why no session was started; nothing of the message is kept."""
        post = NewPost(
            id=f"p-untaken-{new_message_id()}",
            key=f"untaken:{once}",
            kind=OutboundKind.WHISPER,
            uid="",
            name=template.name,
            channel_kind=self._kind,
            text=f"No session was started: {why}.",
            channel=reply.channel,
            thread=reply.ts,
            only_for=reply.author.rpartition(":")[2],
        )
        self._system.outbox.add([post])
        self._system.notify()


class TaskWorker:
    """Makes the sessions of one chat's tasks, and ends them when their lifetime is over. One thread of the service."""

    def __init__(self, system: System, tasks: Tasks, kind: str, inbound: Inbound, wake: threading.Event) -> None:
        self._system = system
        self._tasks = tasks
        self._kind = kind
        self._inbound = inbound
        self._wake = wake

    def run(self, stopping: threading.Event) -> None:
        """Work until told to stop."""
        while not stopping.is_set():
            self._wake.clear()
            try:
                self.turn()
            except CoreError as error:
                _LOG.warning("tasks cannot be looked at", extra={"reason": str(error)})
            self._wake.wait(_LOOK_SECONDS)

    def turn(self) -> None:
        """Take the next step of each task. Raises StoreBroken."""
        days = max(self._system.settings.limits.retain_text_days, _KNOWN_DAYS)
        self._tasks.forget(self._system.clock.now() - timedelta(days=days))
        for row in self._tasks.open(self._kind):
            try:
                if row.state is TaskState.PENDING:
                    self._make(row)
                elif row.state is TaskState.WITHDRAWN:
                    self._withdraw(row)
                elif row.ends_at is not None and row.ends_at <= self._system.clock.now():
                    self._end(row)
            except CoreError as error:
                _LOG.warning("a task waits", extra={"session": row.name, "reason": str(error)})
                self._again(row, error)

    def _again(self, row: TaskRow, error: CoreError) -> None:
        if row.state is TaskState.PENDING and row.attempts + 1 >= _ATTEMPTS:
            self._fail(row, str(error))
        else:
            self._tasks.tried(row)

    def _make(self, row: TaskRow) -> None:
        reply, template = _unpacked(row)
        record = self._system.records.read(row.name)
        if record is None:
            cwd = root_folder(template.root)
            if template.worktree:
                with failpoint(Failpoint.TASK_WORKTREE):
                    cwd = make_worktree(cwd, row.name, dict(self._system.environ))
            answer = create_standing(self._system, self._definition(row, reply, template, cwd), _actor(row, reply))
            if not answer.ok:
                self._fail(row, answer.sessions[0].detail)
                return
            record = self._system.records.read(row.name)
        if record is None or record.phase in (Phase.CREATING, Phase.DELETING):
            return  # reconcile is at it
        if record.definition.binding.thread != reply.ts:
            self._fail(row, f"the name {row.name} belongs to another session")
            return
        self._hand_over(row, reply, template, record)

    def _hand_over(self, row: TaskRow, reply: IncomingReply, template: Template, record: SessionRecord) -> None:
        """Bind the thread, give the session its task, and let its lifetime begin, in one transaction."""
        now, system = self._system.clock.now(), self._system
        ends = now + timedelta(seconds=template.lifetime_seconds) if template.lifetime_seconds else None
        with failpoint(Failpoint.TASK_HAND_OVER), system.database.transaction(durable=True):
            latest = self._tasks.get(row.key) or row  # its author may have changed it while the session was made
            if latest.state is not TaskState.PENDING:
                return  # it was withdrawn: the next turn ends the session
            reply, _ = _unpacked(latest)
            binding = system.bindings.of_session(record.uid, self._kind)
            if binding is None:
                binding = Binding(self._kind, reply.team, reply.channel, reply.ts, record.uid, row.name, now)
                system.bindings.bind(binding)
            self._inbound.add(Passed(reply, record, text_of(reply) if reply.text.strip() else "", binding))
            self._tasks.move(latest, TaskState.RUNNING, ends)
        system.notify()

    def _withdraw(self, row: TaskRow) -> None:
        """End what was made for a task whose message was deleted before its session had it."""
        reply, _ = _unpacked(row)
        record = self._system.records.read(row.name)
        if record is not None and record.definition.binding.thread == reply.ts:
            answer = stop_standing(self._system, row.name, _actor(row, reply), "the message with its task was deleted")
            if not answer.ok:
                raise Refused(f"{row.name} was not stopped: {answer.sessions[0].detail}", "it is tried again")
        self._tasks.move(row, TaskState.OVER)

    def _definition(self, row: TaskRow, reply: IncomingReply, template: Template, cwd: Path) -> Definition:
        return Definition(
            name=row.name,
            description=f"from the template {template.name}, for {reply.author_name}",
            harness=template.harness,
            cwd=str(cwd),
            prompt=template.prompt or None,
            chat={self._kind: ChatBinding(True, reply.channel, None, reply.ts)},
        )

    def _fail(self, row: TaskRow, why: str) -> None:
        reply, template = _unpacked(row)
        with self._system.database.transaction(durable=True):
            if not self._tasks.move(row, TaskState.FAILED):
                return  # it was withdrawn meanwhile
            self._system.outbox.add([_failed(row, reply, template, why)])
        self._system.events.emit("standing.create_failed", level="error", name=row.name, reason=why)
        self._system.notify()

    def _end(self, row: TaskRow) -> None:
        """End the session of a task whose lifetime is over; its worktree stays, and its thread is told where."""
        _, template = _unpacked(row)
        try:
            record = self._system.records.read(row.name)
        except RecordUnreadable as error:
            raise Refused(str(error), "put the record back") from error
        if record is not None and record.phase is not Phase.DELETING:
            span = duration_text(timedelta(seconds=template.lifetime_seconds))
            left = f"; its worktree is left in {record.definition.cwd}" if template.worktree else ""
            answer = stop_standing(self._system, row.name, f"template:{template.name}", f"its {span} are over{left}")
            if not answer.ok:
                raise Refused(f"{row.name} was not stopped: {answer.sessions[0].detail}", "it is tried again")
        self._tasks.move(row, TaskState.OVER)


def _failed(row: TaskRow, reply: IncomingReply, template: Template, why: str) -> NewPost:
    return NewPost(
        id=f"p-unmade-{row.name}",
        key=f"unmade:{row.key}",
        kind=OutboundKind.NOTE,
        uid="",
        name=template.name,
        channel_kind=row.channel_kind,
        text=f"No session was started for this task: {why}",
        channel=reply.channel,
        thread=reply.ts,
    )


def _actor(row: TaskRow, reply: IncomingReply) -> str:
    return f"{row.channel_kind}:{reply.author}"


def _packed(reply: IncomingReply) -> dict[str, Any]:
    return {**reply.__dict__, "files": [file.__dict__ for file in reply.files]}


def _packed_template(template: Template) -> dict[str, Any]:
    return {**template.__dict__, "role": template.role.value}


def _unpacked(row: TaskRow) -> tuple[IncomingReply, Template]:
    message, template = dict(row.asked["message"]), dict(row.asked["template"])
    files = tuple(Attachment(**file) for file in message.pop("files"))
    return IncomingReply(**message, files=files), Template(**{**template, "role": Role(template["role"])})
