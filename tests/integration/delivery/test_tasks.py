"""A task becomes one session, in the thread of its message, whatever comes twice, ends, or is killed in between."""

from __future__ import annotations

import os
import subprocess
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base import failpoints
from core.chat.inbound import Inbound, NullMirror
from core.chat.outbound import OutboundWorker
from core.chat.tasks import NoWorktree, TaskIntake, TaskWorker, make_worktree, name_of, worktree_of
from core.config.settings import ChannelBlock
from core.lifecycle.create import create_standing
from core.lifecycle.recover import reconcile
from core.model.asking import Role
from core.model.channel import IncomingChange, IncomingReply, IncomingTask, Template, Verdict
from core.model.rows import Answer
from core.model.session import Status
from core.session.system import System
from core.store.tasks import Tasks
from tests.support.chat import HOME, TEAM, Chat
from tests.support.world import ACTOR, events, recorded

TS = "1795000000.000100"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Give a git repository with one commit, and a hook that must not run."""
    folder = tmp_path / "project"
    folder.mkdir()
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(("git", "-C", str(folder), *words), check=True)
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    return folder


class Here:
    """A chat's tasks."""

    def __init__(self, system: System, chat: Chat) -> None:
        block = ChannelBlock("slack", True, {"enabled": True, "channel": HOME})
        self.system = replace(system, settings=system.settings._replace(channels={"slack": block}))
        self.chat, self.tasks, wake = chat, Tasks(system.database), threading.Event()
        self.intake = TaskIntake(self.system, self.tasks, "slack", chat.has_role, wake)
        self.worker = TaskWorker(
            self.system, self.tasks, "slack", Inbound(self.system, chat.authorized, NullMirror()), wake
        )

    def post(self) -> None:
        """Let what waits be posted, channels' paces aside."""
        for _ in range(4):
            worker = OutboundWorker(self.system, self.chat)
            worker.turn()

    @property
    def name(self) -> str:
        """The name of the session that the task of these tests gets."""
        return name_of("fix", f"slack:{TEAM}:{HOME}:{TS}")


@pytest.fixture
def here(system: System) -> Here:
    """Give a chat in which U1 is a member."""
    return Here(system, Chat())


def task(root: Path, **changes: object) -> IncomingTask:
    """Return a task as a channel brings it."""
    message = IncomingReply("slack", TEAM, HOME, TS, TS, "U1", "alice", TEAM, False, False, "plain", "mend the login")
    template = Template("fix", "", str(root), True, "be careful", 0, Role.MEMBER)
    mine = {key: value for key, value in changes.items() if key in Template.__annotations__}
    others = {key: value for key, value in changes.items() if key not in mine}
    return IncomingTask(replace(message, **others), replace(template, **mine))  # type: ignore[arg-type]


def test_a_task_becomes_a_session_in_the_thread_of_its_message(here: Here, repository: Path, tmp_path: Path) -> None:
    """In a worktree of its own, with the template's brief; the task is a message of its author to it."""
    taken = here.intake.take(task(repository))
    here.worker.turn()
    here.post()

    record = recorded(here.system, here.name)
    binding = here.system.bindings.of_session(record.uid)
    row = here.system.inbox.of_key(f"slack:{TEAM}:{HOME}:{TS}")
    assert taken is Verdict.COMMITTED
    assert record.definition.cwd == str(worktree_of(repository, here.name))
    assert record.definition.prompt == "be careful"
    assert binding is not None
    assert (binding.channel, binding.thread) == (HOME, TS)
    root = next(message for message in here.chat.messages if message.thread == TS)
    assert (binding.head, here.name in root.text) == (root.ts, True)
    assert row is not None
    assert (row.message.uid, row.message.text, row.message.who) == (record.uid, "mend the login", "alice")
    assert row.message.address is not None
    assert (row.message.address.thread, row.message.address.ts) == (TS, TS)
    assert not (tmp_path / "ran").exists()


def test_the_same_message_twice_is_one_session(here: Here, repository: Path) -> None:
    """Before its session was made, and after."""
    first = here.intake.take(task(repository))
    second = here.intake.take(task(repository))
    here.worker.turn()
    third = here.intake.take(task(repository))
    here.worker.turn()

    assert (first, second, third) == (Verdict.COMMITTED, Verdict.DUPLICATE, Verdict.DUPLICATE)
    assert [event["name"] for event in events(here.system, "standing.created")] == [here.name]


def test_an_edit_before_the_session_has_its_task_counts(here: Here, repository: Path) -> None:
    """Only its author's; it reads as it is when the session gets it."""
    given = task(repository)
    here.intake.take(given)
    here.intake.change([IncomingChange(replace(given.message, text="mend the logout"), deleted=False)])
    here.intake.change([IncomingChange(replace(given.message, text="rm -rf", author="U2"), deleted=False)])
    here.worker.turn()

    row = here.system.inbox.of_key(f"slack:{TEAM}:{HOME}:{TS}")
    assert row is not None
    assert row.message.text == "mend the logout"


def test_a_task_that_is_deleted_before_its_session_has_it_starts_nothing(here: Here, repository: Path) -> None:
    """Neither now nor at the next turn, nor where the same message comes again."""
    given = task(repository)
    here.intake.take(given)
    here.intake.change([IncomingChange(replace(given.message, text=""), deleted=True)])
    here.worker.turn()
    again = here.intake.take(given)
    here.worker.turn()

    assert again is Verdict.DUPLICATE
    assert events(here.system, "standing.created") == []
    assert here.system.records.read(here.name) is None


def test_a_task_that_is_deleted_while_its_session_is_made_ends_it(
    here: Here, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session gets nothing, and is stopped at the next turn."""
    given = task(repository)

    def deleted_meanwhile(*arguments: Any) -> Answer:
        answer = create_standing(*arguments)
        here.intake.change([IncomingChange(replace(given.message, text=""), deleted=True)])
        return answer

    monkeypatch.setattr("core.chat.tasks.create_standing", deleted_meanwhile)
    here.intake.take(given)
    here.worker.turn()
    here.worker.turn()

    assert here.system.inbox.of_key(f"slack:{TEAM}:{HOME}:{TS}") is None
    assert recorded(here.system, here.name).status is Status.STOPPED
    assert here.tasks.open("slack") == ()


def test_a_task_that_is_deleted_during_an_attempt_that_fails_starts_nothing(
    here: Here, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt does not bring it back."""
    given = task(repository)

    def deleted_meanwhile(root: Path, name: str, environ: dict[str, str]) -> Path:
        here.intake.change([IncomingChange(replace(given.message, text=""), deleted=True)])
        raise NoWorktree("git made no worktree", "look at the repository")

    here.intake.take(given)
    with monkeypatch.context() as during:
        during.setattr("core.chat.tasks.make_worktree", deleted_meanwhile)
        here.worker.turn()
    here.worker.turn()

    assert events(here.system, "standing.created") == []
    assert here.tasks.open("slack") == ()


def test_an_edit_during_an_attempt_that_fails_counts(
    here: Here, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt gives the session what the message says now."""
    given = task(repository)

    def edited_meanwhile(root: Path, name: str, environ: dict[str, str]) -> Path:
        here.intake.change([IncomingChange(replace(given.message, text="mend the logout"), deleted=False)])
        raise NoWorktree("git made no worktree", "look at the repository")

    here.intake.take(given)
    with monkeypatch.context() as during:
        during.setattr("core.chat.tasks.make_worktree", edited_meanwhile)
        here.worker.turn()
    here.worker.turn()

    row = here.system.inbox.of_key(f"slack:{TEAM}:{HOME}:{TS}")
    assert row is not None
    assert row.message.text == "mend the logout"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"author": "U9"}, True),
        ({"author": "U9", "author_team": "T9"}, True),
        ({"role": Role.OPERATOR}, True),
        ({"is_bot": True}, False),
        ({"is_self": True}, False),
        ({"text": " "}, True),
        ({"confirm": "sent 3 h ago"}, True),
    ],
)
def test_who_may_not_starts_nothing(here: Here, repository: Path, changes: dict[str, object], told: bool) -> None:
    """A stranger, another team's member, a member where operators may, a bot; people are told, alone."""
    verdicts = {here.intake.take(task(repository, **changes)) for _ in range(2)}
    here.worker.turn()
    here.post()

    assert verdicts == {Verdict.DROPPED}
    assert events(here.system, "standing.created") == []
    assert len([message for message in here.chat.messages if "No session was started" in message.text]) == int(told)


def test_its_lifetime_ends_the_session_and_its_worktree_is_left(here: Here, repository: Path) -> None:
    """The hold says why, and where the worktree is; it is ended once."""
    here.intake.take(task(repository, lifetime_seconds=3600))
    here.worker.turn()
    assert recorded(here.system, here.name).status is Status.RUNNING
    [row] = here.tasks.open("slack")
    assert row.asked["message"]["text"] == ""
    here.tasks.move(row, row.state, here.system.clock.now() - timedelta(seconds=1))

    here.worker.turn()

    record = recorded(here.system, here.name)
    tree = worktree_of(repository, here.name)
    assert record.hold is not None
    assert record.hold.reason == f"its 1h are over; its worktree is left in {tree}"
    assert tree.is_dir()
    assert here.tasks.open("slack") == ()


def test_a_folder_that_is_no_repository_is_told_in_the_thread(here: Here, tmp_path: Path) -> None:
    """After a few attempts; nothing is left of it."""
    (tmp_path / "plain").mkdir()
    here.intake.take(task(tmp_path / "plain"))
    for _ in range(6):
        here.worker.turn()
    here.post()

    assert here.tasks.open("slack") == ()
    assert here.system.records.read(here.name) is None
    [note] = [message for message in here.chat.messages if message.thread == TS]
    assert "git made no worktree" in note.text


def test_a_worktree_that_was_cut_short_is_made_anew(repository: Path) -> None:
    """Whatever an earlier attempt has left in its place."""
    environ = dict(os.environ)
    first = make_worktree(repository, "fix-1", environ)
    (first / "half").touch()

    again = make_worktree(repository, "fix-1", environ)

    assert again == first
    assert not (again / "half").exists()


@pytest.mark.parametrize("point", ["task.commit:after", "task.worktree:after", "create.mark:after",
                                   "start.spawn:after", "task.hand_over:before", "task.hand_over:after"])  # fmt: skip
def test_a_kill_in_between_leaves_one_session(here: Here, repository: Path, point: str) -> None:
    """The next service finishes what the killed one began; Slack's retry is found to be the same task."""
    child = os.fork()
    if child == 0:  # a process of its own, which is killed at the point; nothing has opened the database before it
        failpoints._crash_at = point
        here.intake.take(task(repository))
        here.worker.turn()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)

    here.intake.take(task(repository))
    for _ in range(3):
        reconcile(here.system, ACTOR)
        here.worker.turn()

    record = recorded(here.system, here.name)
    assert len([pane for pane in here.system.runner.survey().panes if here.name in str(pane)]) == 1
    assert here.system.inbox.of_key(f"slack:{TEAM}:{HOME}:{TS}") is not None
    binding = here.system.bindings.of_session(record.uid)
    assert binding is not None
    assert binding.thread == TS
    assert here.tasks.open("slack")[0].state.value == "running"
